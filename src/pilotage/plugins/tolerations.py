"""Does a pod tolerate a taint? Shared by the plugins that look at taints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pilotage.model.node import Taint
from pilotage.model.pod_spec import Toleration


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Effect and key empty or equal; Exists, or equal values."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def is_tolerated(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def first_untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The first taint that keeps the pod away (NoSchedule or NoExecute) and is not tolerated."""
    for taint in taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not is_tolerated(tolerations, taint):
            return taint
    return None


def toleration_fragment(tolerations: Sequence[Toleration]) -> tuple[tuple[str, str, str, str], ...]:
    """What of the tolerations matters for scheduling, as a signature fragment."""
    return tuple(sorted((t.key, t.operator, t.value, t.effect) for t in tolerations))
