"""From the lists of a profile to the plugins of every extension point, in order, with the weights of the scores.

Two steps, as in kube-scheduler. Merging: the user's list of a point is laid over the default one (a default that is
named again keeps its place, `*` switches all defaults off, the rest comes last). Expansion: the plugins of multiPoint
are spread over the points that they serve, after those that the point itself names again and before its others.
Everything that is wrong is collected as problems with the places where it was written.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from pilotage.api.plugin import Plugin
from pilotage.config import obsolete
from pilotage.config.kinds import EVERYTHING, POINTS, PluginRef, PluginSet, ProfileConfiguration
from pilotage.config.problems import Problem
from pilotage.framework.extension_points import SPECIFIC_POINTS, serves, title
from pilotage.framework.registry import Registry
from pilotage.model.suggestions import suggestion

log = logging.getLogger(__name__)

_MAX_NODE_SCORE: Final = 100
_MAX_TOTAL_SCORE: Final = 2**63 - 1


class Catalog(Struct, frozen=True):
    """The plugins that there are, and which of them are on by default."""

    registry: Registry
    defaults: Sequence[PluginRef]
    """The default multiPoint list."""
    added: Sequence[PluginRef] = ()
    """Plugins that were loaded and that no configuration names: they come last in multiPoint, whatever is disabled."""
    not_built_yet: frozenset[str] = frozenset()
    """Plugins of kube-scheduler that may be named but do nothing here."""
    args_types: Mapping[str, type] = {}
    """Arguments of plugins whose classes do not declare them (yet)."""
    switched_off: Mapping[str, Mapping[str, str]] = {}
    """Per plugin the arguments that must not be given, with the feature gate that is off."""

    def args_type(self, name: str) -> type | None:
        declared = self.registry[name].args_type if name in self.registry else None
        return declared or self.args_types.get(name)

    def names(self) -> list[str]:
        return [*self.registry, *sorted(self.not_built_yet)]


class EnabledPlugins(Struct, frozen=True):
    """The plugins of a profile."""

    plugins: tuple[str, ...]
    """Everything that has to be instantiated."""
    points: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, int]


def lay_out(profile: ProfileConfiguration, catalog: Catalog, problems: list[Problem]) -> EnabledPlugins:
    """Which plugins run at which point; what is wrong is added to `problems`."""
    table = _Table(profile, catalog, problems)
    sets = {point: table.merged(point) for point in POINTS}
    multi_point = (*sets["multiPoint"].enabled, *catalog.added)
    points = {point: table.expanded(point, sets[point], multi_point) for point in SPECIFIC_POINTS}
    named = [*multi_point, *(ref for point in SPECIFIC_POINTS for ref in sets[point].enabled)]
    weights = table.weights([*sets["score"].enabled, *multi_point])
    table.check_numbers(points)
    table.report_lost_points(points, [ref.name for ref in multi_point])
    return EnabledPlugins(tuple(dict.fromkeys(ref.name for ref in named)), points, weights)


def merge(custom: PluginSet, defaults: Sequence[PluginRef]) -> PluginSet:
    """The user's list of a point laid over the default one; what is disabled stays known for the expansion."""
    disabled = {ref.name for ref in custom.disabled}
    named = {ref.name: ref for ref in custom.enabled}
    kept = [] if EVERYTHING in disabled else [ref for ref in defaults if ref.name not in disabled]
    merged = [named.get(ref.name, ref) for ref in kept]
    replacements = {id(ref) for ref in merged}
    return PluginSet((*merged, *(ref for ref in custom.enabled if id(ref) not in replacements)), custom.disabled)


class _Table:
    """One profile being laid out."""

    def __init__(self, profile: ProfileConfiguration, catalog: Catalog, problems: list[Problem]) -> None:
        self._profile = profile
        self._catalog = catalog
        self._problems = problems

    def merged(self, point: str) -> PluginSet:
        given = self._profile.plugin_set(point)
        custom = PluginSet(tuple(filter(self._is_usable, given.enabled)), given.disabled)
        for ref in given.disabled:
            if ref.name != EVERYTHING:
                self._is_known(ref)
        return merge(custom, self._catalog.defaults if point == "multiPoint" else ())

    def expanded(self, point: str, specific: PluginSet, multi_point: Sequence[PluginRef]) -> tuple[str, ...]:
        own = self._own(point, specific.enabled)
        disabled = {ref.name for ref in specific.disabled}
        if EVERYTHING in disabled:
            return own
        spread: list[str] = []
        for ref in multi_point:
            if not serves(self._class(ref), point) or ref.name in disabled or ref.name in own:
                continue
            if ref.name in spread:
                self._already_registered(ref, point)
            else:
                spread.append(ref.name)
        if point == "placementGenerate":
            # There can be one only: one that was loaded takes the place of the default one.
            added = [name for name in spread if any(ref.name == name for ref in self._catalog.added)]
            spread = added or spread
        everywhere = {ref.name for ref in multi_point}
        overriding = [name for name in own if name in everywhere]
        return (*overriding, *spread, *(name for name in own if name not in everywhere))

    def _own(self, point: str, enabled: Iterable[PluginRef]) -> tuple[str, ...]:
        """The plugins that the point itself names."""
        own: list[str] = []
        for ref in enabled:
            if ref.name in own:
                self._already_registered(ref, point)
            elif serves(self._class(ref), point):
                own.append(ref.name)
            else:
                self._problems.append(ref.place.problem(f'plugin "{ref.name}" does not extend {title(point)} plugin'))
        return tuple(own)

    def weights(self, refs: Iterable[PluginRef]) -> dict[str, int]:
        """The first that names a score plugin says its weight: the point itself comes before multiPoint."""
        weights: dict[str, int] = {}
        for ref in refs:
            if ref.name not in weights and serves(self._class(ref), "score"):
                weights[ref.name] = ref.weight or 1
        if sum(weights.values()) * _MAX_NODE_SCORE > _MAX_TOTAL_SCORE:
            self._reject_profile("total score of Score plugins could overflow")
        return weights

    def check_numbers(self, points: Mapping[str, Sequence[str]]) -> None:
        name, sorting = self._profile.scheduler_name, points["queueSort"]
        if len(sorting) != 1:
            self._reject_profile(
                f'only one queue sort plugin required for profile with scheduler name "{name}", '
                f"but got {len(sorting)}{_listed('queueSort', sorting)}"
            )
        generating = points["placementGenerate"]
        if len(generating) > 1:
            self._reject_profile(
                f'at most one placement generate plugin is allowed for profile with scheduler name "{name}", '
                f"but got {len(generating)}{_listed('placementGenerate', generating)}"
            )
        if not points["bind"]:
            self._reject_profile(f'at least one bind plugin is needed for profile with scheduler name "{name}"')

    def report_lost_points(self, points: Mapping[str, Sequence[str]], everywhere: Collection[str]) -> None:
        """A plugin that is named at some points only does not run at its others: that is easily overlooked."""
        defaults = {ref.name for ref in self._catalog.defaults}
        for name in dict.fromkeys(self._named_at(SPECIFIC_POINTS)):
            if name in everywhere or name in defaults or name not in self._catalog.registry:
                continue
            if EVERYTHING in self._disabled_at("multiPoint") or name in self._disabled_at("multiPoint"):
                continue
            cls = self._catalog.registry[name]
            running = [point for point in SPECIFIC_POINTS if name in points[point]]
            lost = [point for point in SPECIFIC_POINTS if serves(cls, point) and name not in points[point]]
            unsaid = [point for point in lost if name not in self._disabled_at(point)]
            if unsaid or not running:
                where = f"is named at {', '.join(running)} only" if running else "is only disabled, and runs nowhere"
                log.warning(
                    'profile "%s": plugin "%s" %s: it does not serve %s; name it under multiPoint, or disable it there',
                    self._profile.scheduler_name,
                    name,
                    where,
                    ", ".join(unsaid or lost),
                )

    def _named_at(self, points: Iterable[str]) -> Iterator[str]:
        for point in points:
            named = self._profile.plugin_set(point)
            yield from (ref.name for ref in (*named.enabled, *named.disabled) if ref.name != EVERYTHING)

    def _disabled_at(self, point: str) -> set[str]:
        return {ref.name for ref in self._profile.plugin_set(point).disabled}

    def _class(self, ref: PluginRef) -> type[Plugin]:
        return self._catalog.registry[ref.name]

    def _is_usable(self, ref: PluginRef) -> bool:
        if not self._is_known(ref):
            return False
        if ref.name in self._catalog.registry:
            return True
        log.warning(
            'profile "%s": plugin "%s" does not exist here yet, skipped', self._profile.scheduler_name, ref.name
        )
        return False

    def _is_known(self, ref: PluginRef) -> bool:
        known = ref.name in self._catalog.registry or ref.name in self._catalog.not_built_yet
        if not known:
            self._problems.append(ref.place.problem(self._unknown(ref.name)))
        return known

    def _unknown(self, name: str) -> str:
        return unknown_plugin(self._profile.scheduler_name, name, self._catalog)

    def _already_registered(self, ref: PluginRef, point: str) -> None:
        self._problems.append(ref.place.problem(f'plugin "{ref.name}" already registered as "{title(point)}"'))

    def _reject_profile(self, message: str) -> None:
        self._problems.append(self._profile.place.problem(message))


def unknown_plugin(profile: str, name: str, catalog: Catalog) -> str:
    """The complaint about a name that no plugin has, with what was probably meant."""
    instead = obsolete.PLUGINS.get(name)
    hint = f" ({instead})" if instead else suggestion(name, catalog.names())
    return f'profile "{profile}": unknown plugin "{name}"{hint}'


def _listed(point: str, names: Sequence[str]) -> str:
    return f" ({', '.join(names)}: disable what is too many under plugins.{point})" if names else ""
