"""What a pod may ask for and none of the default plugins serves; accepted in silence it would look as if it were.

A plugin that serves such a field says so in `serves_fields`; in profiles with it the field is like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pilotage.framework.profile import Profile
from pilotage.model import Pod
from pilotage.model.pod_spec import PodSpec


@dataclass(frozen=True, slots=True)
class UnservedField:
    """A field, how to tell that a pod uses it, and what that means for the pod."""

    path: str
    is_used: Callable[[PodSpec], bool]
    consequence: str

    def sentence(self, profile: str) -> str:
        return f'{self.path} has no effect: no plugin of profile "{profile}" serves it; {self.consequence}'


FIELDS: Final = (
    UnservedField(
        "spec.schedulingGroup",
        lambda spec: spec.scheduling_group is not None,
        "the pod is scheduled by itself, not together with its group",
    ),
    UnservedField(
        "spec.tolerations[].operator",
        lambda spec: any(toleration.operator in ("Lt", "Gt") for toleration in spec.tolerations),
        "a toleration with the operator Lt or Gt tolerates nothing",
    ),
)


def used_fields(spec: PodSpec) -> tuple[UnservedField, ...]:
    """Those of `FIELDS` that a spec uses; worked out once for all pods of equal spec."""
    known: tuple[UnservedField, ...] | None = spec.memo.get(UnservedField)
    if known is None:
        known = spec.memo[UnservedField] = tuple(field for field in FIELDS if field.is_used(spec))
    return known


def unserved_fields(pod: Pod, profile: Profile) -> list[UnservedField]:
    """What the pod asks for and no plugin of its profile serves."""
    used = used_fields(pod.spec)
    if not used:
        return []
    served = {path for plugin in profile.plugins for path in plugin.serves_fields}
    return [field for field in used if field.path not in served]
