"""Pods that ask for what no plugin serves: their owners are told by an Event, the operator by one line per field.

The line comes with the first such pod and again with every tenfold number, so that it tells how many there are.
"""

from __future__ import annotations

import logging
from collections import Counter

from pilotage.calls.recorder import EventRecorder
from pilotage.framework.profile import Profile
from pilotage.framework.unserved_fields import unserved_fields
from pilotage.model import Pod
from pilotage.observe.metrics import Metrics

log = logging.getLogger(__name__)

REASON = "FieldNotServed"


class UnservedPods:
    """Told of every pod that uses one of these fields, before its first attempt."""

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
