"""Whatever is in a configuration file, it is either read or rejected with lines; nothing else comes out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.assembly import catalog_for, options_from_configuration
from pilotage.config.feature_gates import FeatureGates
from pilotage.config.kinds import POINTS
from pilotage.config.load import configuration_of, default_configuration, parse_configuration
from pilotage.config.problems import ConfigError, Problem
from pilotage.config.render import render
from pilotage.framework.extension_points import SERVED_BY, serves
from pilotage.framework.plugin_sets import lay_out
from pilotage.plugins import DEFAULT_PLUGINS

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
EXAMPLES = [path.read_text() for path in sorted(CONFIGS.glob("*.yaml"))]
RECORDED = [msgspec.json.decode(line) for line in (CONFIGS / "recorded.jsonl").read_text().splitlines()]
NAMES = [cls.plugin_name() for cls, _ in DEFAULT_PLUGINS]
CATALOG = catalog_for(default_configuration(), [], FeatureGates())

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(NAMES)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner))


def spoilt(value: Any, data: st.DataObject) -> Any:
    """The value with something replaced, renamed or removed somewhere in it."""
    if not isinstance(value, dict | list) or not value or data.draw(st.integers(0, 3)) == 0:
        return data.draw(values)
    if isinstance(value, list):
        at = data.draw(st.integers(0, len(value) - 1))
        return [*value[:at], spoilt(value[at], data), *value[at + 1 :]]
    key = data.draw(st.sampled_from(sorted(value)))
    rest = {name: item for name, item in value.items() if name != key}
    match data.draw(st.sampled_from(["value", "value", "name", "gone"])):
        case "value":
            return {**rest, key: spoilt(value[key], data)}
        case "name":
            return {**rest, data.draw(st.text(max_size=8)): value[key]}
    return rest


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(RECORDED), st.data())
def test_a_spoilt_configuration_is_read_or_rejected(config: dict[str, Any], data: st.DataObject) -> None:
    changed = spoilt(config, data)
    try:
        options_from_configuration(configuration_of(changed if isinstance(changed, dict) else {"x": changed}, "f"))
    except ConfigError as error:
        assert error.lines
        assert all(line.startswith("f: ") and "\n" not in line for line in error.lines)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(EXAMPLES), st.integers(0, 2000), st.integers(0, 40), st.text(max_size=6))
def test_a_garbled_text_is_read_or_rejected(text: str, start: int, length: int, new: str) -> None:
    at = start % len(text)
    try:
        parse_configuration(text[:at] + new + text[at + length :], "f")
    except ConfigError as error:
        assert error.lines


@pytest.mark.parametrize("config", RECORDED[::10])
def test_what_is_written_means_the_same_when_read(config: dict[str, Any]) -> None:
    before = configuration_of(config)
    after = parse_configuration(render(before))
    assert options_from_configuration(after).profiles == options_from_configuration(before).profiles


refs = st.builds(dict, name=st.sampled_from(NAMES), weight=st.integers(0, 20))
plugin_sets = st.fixed_dictionaries(
    {},
    optional={
        "enabled": st.lists(refs, max_size=4, unique_by=lambda ref: ref["name"]),
        "disabled": st.lists(st.builds(dict, name=st.sampled_from([*NAMES, "*"])), max_size=4),
    },
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(POINTS), plugin_sets, max_size=4))
def test_a_laid_out_profile_keeps_the_rules(sets: dict[str, Any]) -> None:
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    try:
        profile = configuration_of({**header, "profiles": [{"plugins": sets}]}).scheduler.profiles[0]
    except ConfigError:
        return
    problems: list[Problem] = []
    layout = lay_out(profile, CATALOG, problems)
    multi_point = profile.plugin_set("multiPoint")
    off = {ref.name for ref in multi_point.disabled}
    everywhere = {ref.name for ref in multi_point.enabled} | {n for n in NAMES if n not in off and "*" not in off}
    for point in SERVED_BY:
        order, own = layout.points[point], profile.plugin_set(point)
        named = [ref.name for ref in own.enabled if serves(CATALOG.registry[ref.name], point)]
        disabled = {ref.name for ref in own.disabled}
        assert len(set(order)) == len(order)
        assert set(named) <= set(order)
        assert all(serves(CATALOG.registry[name], point) for name in order)
        assert all(name in layout.plugins for name in order)
        for name in set(order) - set(named):
            assert name not in disabled and "*" not in disabled
            assert name in everywhere
    assert set(layout.weights) <= set(layout.plugins)
    assert all(weight >= 1 for weight in layout.weights.values())
