"""Toleration of taints by pods. Shared by the plugins that look at taints."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final

from pilotage.model.node import Taint
from pilotage.model.pod_spec import PodSpec, Toleration
from pilotage.plugins.fragments import fragment_of

_MANY: Final = 8
_DEFAULT_OPERATORS: Final = ("", "Equal")


class ManyTolerations:
    """Tolerations that are looked up: by key, effect and value, any of which may be left open."""

    __slots__ = ("_equal", "_exist")

    def __init__(self, tolerations: Iterable[Toleration]) -> None:
        self._exist: set[tuple[str, str]] = set()
        self._equal: set[tuple[str, str, str]] = set()
        for toleration in tolerations:
            if toleration.operator in _DEFAULT_OPERATORS:
                self._equal.add((toleration.key, toleration.effect, toleration.value))
            elif toleration.operator == "Exists":
                self._exist.add((toleration.key, toleration.effect))

    def tolerate(self, taint: Taint) -> bool:
        for key in (taint.key, ""):
            for effect in (taint.effect, ""):
                if (key, effect) in self._exist or (key, effect, taint.value) in self._equal:
                    return True
        return False


def is_tolerated(spec: PodSpec, taint: Taint) -> bool:
    tolerations = spec.tolerations
    if len(tolerations) <= _MANY:
        return any(toleration.tolerates(taint) for toleration in tolerations)
    known: ManyTolerations | None = spec.memo.get(ManyTolerations)
    if known is None:
        known = spec.memo[ManyTolerations] = ManyTolerations(tolerations)
    return known.tolerate(taint)


def first_untolerated(taints: Sequence[Taint], spec: PodSpec) -> Taint | None:
    """The first taint that keeps the pod away (NoSchedule or NoExecute) and is not tolerated."""
    for taint in taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not is_tolerated(spec, taint):
            return taint
    return None


def untolerated_preferences(taints: Sequence[Taint], spec: PodSpec) -> int:
    """How many PreferNoSchedule taints are not tolerated."""
    return sum(taint.effect == "PreferNoSchedule" and not is_tolerated(spec, taint) for taint in taints)


def toleration_fragment(tolerations: Sequence[Toleration]) -> Hashable:
    """What of the tolerations matters for scheduling, as a signature fragment."""
    return fragment_of(tuple(sorted((t.key, t.operator, t.value, t.effect) for t in tolerations)))
