"""The condition of a pod group, the Event when that changes, and what a group with too few members gives up."""

from __future__ import annotations

import logging
import math

from pilotage.api.group_members import PodGroups, group_key
from pilotage.calls.event import shortened, subject_of
from pilotage.calls.pod_group_status import PodGroupStatusPatch
from pilotage.calls.recorder import EventRecorder
from pilotage.calls.synchronous_calls import Calls
from pilotage.clock import Clock, rfc3339
from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import ProfileEngines
from pilotage.cycle.requeueing import Requeueing
from pilotage.escaping import visible
from pilotage.model.meta import TimedCondition
from pilotage.model.pod_group import POD_GROUP_SCHEDULED, PodGroup
from pilotage.queue.pod_groups import gate_text
from pilotage.queue.scheduling_queue import SchedulingQueue
from pilotage.queue.sub_queues import QueuedPodInfo, SubQueue

_REPORTER = "default-scheduler"
_LONGEST_MESSAGE = 32 * 1024
_MOST_REMEMBERED = 4096

log = logging.getLogger(__name__)


class GroupConditions:
    """Writes `PodGroupInitiallyScheduled`: once it is True it stays so."""

    def __init__(self, calls: Calls, recorder: EventRecorder, clock: Clock) -> None:
        self._calls = calls
        self._recorder = recorder
        self._clock = clock
        self._unserved: set[str] = set()
        """UIDs of groups with an Event that says that not all of their fields are served."""

    def note_unserved(self, group: PodGroup) -> None:
        """Say once of a group what is asked of it in vain."""
        parent = group.spec.parent_composite_pod_group_name
        if not parent or group.uid in self._unserved:
            return
        if len(self._unserved) >= _MOST_REMEMBERED:
            self._unserved.clear()
        self._unserved.add(group.uid)
        fact = f'spec.parentCompositePodGroupName has no effect: composite groups ("{parent}") are not supported'
        note = f"{fact}; the group is scheduled by itself"
        log.warning("group asks for what is not served: group=%s field=%s", group.key, "parentCompositePodGroupName")
        self._recorder.record_about(subject_of(group), _REPORTER, "Warning", "FieldNotServed", "Scheduling", note)

    def scheduled(self, group: PodGroup) -> None:
        """Enough members have their nodes."""
        self._write(group, "True", "Scheduled", "")

    def rejected(self, group: PodGroup, message: str) -> None:
        self._write(group, "False", "Unschedulable", message)

    def failed(self, group: PodGroup, message: str) -> None:
        self._write(group, "False", "SchedulerError", message)

    def waiting(self, group: PodGroup, message: str) -> None:
        """The group is not even tried; of one that has started, some members are waited for again."""
        if group.has_started:
            note = shortened(visible(message), _LONGEST_MESSAGE)
            self._recorder.record_about(subject_of(group), _REPORTER, "Normal", "WaitingForPods", "Scheduling", note)
        else:
            self._write(group, "False", "Unschedulable", message)

    def _write(self, group: PodGroup, status: str, reason: str, message: str) -> None:
        if group.has_started:
            return
        message = shortened(visible(message), _LONGEST_MESSAGE)
        now, generation = rfc3339(self._clock.time()), group.metadata.generation
        call = PodGroupStatusPatch(group, TimedCondition(POD_GROUP_SCHEDULED, status, reason, message, generation, now))
        if call.is_pointless():
            return
        self._calls.submit(call)
        type_, name = ("Normal", "Scheduled") if status == "True" else ("Warning", "FailedScheduling")
        note = message or "enough members have their nodes: their bindings begin"
        self._recorder.record_about(subject_of(group), _REPORTER, type_, name, "Scheduling", note)


class GatedGroups:
    """Says what a gated group waits for: at the second tick at which it waits, and when that has changed since.

    Most groups are gated for an instant only, while their pods are being created.
    """

    def __init__(self, queue: SchedulingQueue, engines: ProfileEngines, conditions: GroupConditions) -> None:
        self._queue = queue
        self._groups = engines.cluster.index(PodGroups)
        self._scheduler_names = engines
        self._conditions = conditions
        self._reported: dict[str, str] = {}
        """By UID what was written last; "" if nothing was."""

    def quiet_seconds(self) -> float:
        """How long `tick` will have nothing to do, unless the reason that a group has in its condition changes."""
        gated = (entry.group.uid for entry in self._queue.groups() if entry.home is SubQueue.GATED)
        return 0.0 if any(not self._reported.get(uid) for uid in gated) else math.inf

    def tick(self) -> None:
        """To be called every few seconds."""
        gated: dict[str, str] = {}
        for entry in self._queue.groups():
            if entry.home is not SubQueue.GATED:
                continue
            group = entry.group
            known = self._reported.get(group.uid)
            if known is None:
                gated[group.uid] = ""
                continue
            message = gate_text(entry, self._groups.count(entry.key, self._scheduler_names))
            if message != known:
                self._conditions.waiting(group, message)
            gated[group.uid] = message
        self._reported = gated


class KeptNodes:
    """Takes back the nodes that are kept for members of a group that has too few of them by now, or is gone.

    They were nominated when the group preempted. It will not be tried, and would keep the nodes from others for ever.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._nominations = cluster.nominations
        self._groups = cluster.index(PodGroups)
        self._held_back: dict[str, None] = {}
        """Keys of groups that were gated, or whose pods became incomplete."""

    def on_move(self, entry: QueuedPodInfo, _: str) -> None:
        """Listens to the queue, for pods that are held back."""
        if key := group_key(entry.pod):
            self._held_back[key] = None

    def quiet_seconds(self) -> float:
        """How long `take_back` will have nothing to do."""
        return 0.0 if self._held_back else math.inf

    def take_back(self, requeueing: Requeueing) -> None:
        """To be called every second or so."""
        held_back, self._held_back = self._held_back, {}
        if not len(self._nominations):
            return
        for key in held_back:
            group = self._groups.objects.get(key)
            waiting, scheduled = self._groups.waiting(key), self._groups.scheduled(key)
            if group is None or len(waiting.keys() | scheduled.keys()) < group.min_count:
                requeueing.withdraw_nominations([pod for uid, pod in waiting.items() if uid not in scheduled])
