"""How the scheduler itself is doing: time per plugin and point, hints, slow plugins, sizes, gates, configuration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec
from markupsafe import Markup

from pilotage.console import pictures
from pilotage.console.source import ConsoleSource
from pilotage.console.view import PageView
from pilotage.framework.profile_spec import ProfileRecipe
from pilotage.observe.instruments import Distribution
from pilotage.pictures import duration
from pilotage.serve.console_door import Sight
from pilotage.serve.page import PageRequest

_MOST_ROWS: Final = 60
_FACTS: Final = (
    ("cache_size", "Known"),
    ("inflight_events", "Kept for pods in flight"),
    ("slow_plugin_total", "Plugins that kept others waiting"),
    ("cycle_budget_exceeded_total", "Cycles ended for their CPU time"),
    ("plugin_errors_total", "Errors of plugins"),
    ("queueing_hint_errors_total", "Errors of hints"),
    ("skipped_objects_total", "Objects that were skipped"),
    ("task_errors_total", "Errors of periodic tasks"),
)


def inside(source: ConsoleSource, sight: Sight, request: PageRequest) -> PageView:
    regions: dict[str, tuple[str, Mapping[str, Any]]] = {
        "plugins": ("inside_plugins.html", _plugins(source)),
        "hints": ("inside_hints.html", _hints(source)),
        "facts": ("inside_facts.html", _facts(source)),
        "settings": ("inside_settings.html", _settings(source, sight)),
    }
    return PageView("Inside", regions)


def _mean(total: float, count: int) -> float:
    return total / count if count else 0.0


def _plugins(source: ConsoleSource) -> dict[str, Any]:
    """Extension points by the time that went into them, plugins by how long they take each time."""
    points = [
        (labels[0], labels[2], line.count, line.sum, _mean(line.sum, line.count))
        for labels, line in source.metrics.framework_extension_point_duration_seconds.lines().items()
    ]
    sums: dict[tuple[str, str], list[Distribution]] = defaultdict(list)
    for labels, line in source.metrics.plugin_execution_duration_seconds.lines().items():
        sums[labels[0], labels[1]].append(line)
    plugins = []
    for (plugin, point), found in sums.items():
        count, total = sum(line.count for line in found), sum(line.sum for line in found)
        plugins.append((plugin, point, count, total, _mean(total, count)))
    whole, slowest = sum(row[3] for row in points), max((row[4] for row in plugins), default=0.0)
    points.sort(key=lambda row: -row[3])
    plugins.sort(key=lambda row: -row[4])
    return {
        "points": [(*row, _part(row[0], row[3], whole)) for row in points[:_MOST_ROWS]],
        "plugins": [(*row, _part(f"{row[0]} {row[1]}", row[4], slowest)) for row in plugins[:_MOST_ROWS]],
    }


def _part(name: str, seconds: float, whole: float) -> Markup:
    return pictures.bar(name, whole, [("time", "used", seconds)], duration)


def _hints(source: ConsoleSource) -> dict[str, Any]:
    asked: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for (plugin, event, hint), line in source.metrics.queueing_hint_execution_duration_seconds.lines().items():
        asked[plugin, event][hint] = line.count
    rows = [(plugin, event, answers) for (plugin, event), answers in sorted(asked.items())]
    narrowed = sorted(source.metrics.pre_queueing_hint_evaluations_total.values().items())
    return {"rows": rows[:_MOST_ROWS], "narrowed": narrowed[:_MOST_ROWS]}


def _facts(source: ConsoleSource) -> dict[str, Any]:
    facts = []
    for name, title in _FACTS:
        values = getattr(source.metrics, name).values()
        facts.append((title, [(", ".join(labels), value) for labels, value in sorted(values.items()) if value]))
    cpu = {
        "scheduling cycles": source.metrics.cycle_cpu_seconds_total.total(),
        "taking in watch events": source.metrics.intake_cpu_seconds_total.total(),
    }
    delays = [("last", source.delays[-1]), ("longest", max(source.delays))] if source.delays else []
    facts.insert(0, ("Pods in the queue", [*source.counts().items()]))
    contacts = source.metrics.watch_contact_age_seconds.values()
    heard = sorted(((labels[0], seconds) for labels, seconds in contacts.items()), key=lambda one: (-one[1], one[0]))
    return {"facts": facts, "cpu": cpu, "delays": delays, "heard": heard}


def _settings(source: ConsoleSource, sight: Sight) -> dict[str, Any]:
    gates = sorted(
        (labels[0], labels[1], bool(value))
        for labels, value in source.metrics.kubernetes_feature_enabled.values().items()
    )
    options = source.options
    # What it says in detail is for those who see the whole cluster; keys of extenders are for nobody.
    sees_all, options = sight == Sight(), source.options
    profiles = [
        (
            name,
            [
                (one.name, one.weight, _points(recipe, one.name), _as_text(one.args) if sees_all else "")
                for one in recipe.plugins
            ],
        )
        for name, recipe in options.profiles.items()
    ]
    extenders = options.extenders if sees_all else ()
    return {
        "gates": gates,
        "profiles": profiles,
        "options": options,
        "extenders": [(one.url_prefix, _as_text(replace(one, tls_config=None))) for one in extenders],
        "queueing": _as_text(options.queueing) if sees_all else "",
        "sampled": {name: one.percentage_of_nodes_to_score for name, one in options.profiles.items()},
    }


def _points(recipe: ProfileRecipe, plugin: str) -> str:
    """Extension points for which the configuration names the plugin."""
    return ", ".join(point for point, names in (recipe.points or {}).items() if plugin in names)


def _as_text(value: object) -> str:
    """Settings as JSON, without what is not said."""
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=1).decode() if value else ""
