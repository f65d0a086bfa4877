"""Pods that ask for what no plugin serves: an Event for their owners, one log line per field for the operator.

Accepted in silence it would look as if it were served. A plugin that serves such a field says so in `serves_fields`; in
profiles with it the field is like any other.
The line comes with the first such pod and again with every tenfold number, so that it says how many there are.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from pilotage.calls.recorder import EventRecorder
from pilotage.framework.profile import Profile
from pilotage.model import Pod
from pilotage.model.pod_spec import PodSpec
from pilotage.observe.metrics import Metrics

log = logging.getLogger(__name__)

REASON = "FieldNotServed"


class UnservedField(Struct, frozen=True):
    """A field, how to see that a pod uses it, and what that means for the pod."""

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


class UnservedPods:
    """Reports every pod that uses one of these fields, before its first attempt."""

    def __init__(self, recorder: EventRecorder, metrics: Metrics) -> None:
        self._recorder = recorder
        self._total = metrics.unserved_field_pods_total
        self._counts: Counter[tuple[str, str]] = Counter()

    def note(self, pod: Pod, profile: Profile) -> None:
        found = unserved_fields(pod, profile)
        if not found:
            return
        name = profile.scheduler_name
        note = ". ".join(field.sentence(name) for field in found)
        self._recorder.record(pod, "Warning", REASON, "Scheduling", note)
        for field in found:
            self._total.add(field.path)
            self._counts[field.path, name] += 1
            count = self._counts[field.path, name]
            if _is_power_of_ten(count):
                text = "pods ask for what no plugin serves: field=%s profile=%s pods=%d pod=%s consequence=%s"
                log.warning(text, field.path, name, count, pod.key, field.consequence)


def _is_power_of_ten(count: int) -> bool:
    return str(count).rstrip("0") == "1"
