"""How attempts go, for people: metrics, the lines of `-v=2`, errors of plugins, Events.

Counted for every pod, so the lines of the histograms are looked up once, and what can be counted from them is. Lines
are written only if `log.isEnabledFor(ATTEMPTS)`: where it is off, asking is all that it costs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

from pilotage.api.preemption import Eviction
from pilotage.calls.recorder import EventRecorder
from pilotage.clock import Clock
from pilotage.cycle.failure import UNSCHEDULABLE, Failure
from pilotage.cycle.placement import Placed
from pilotage.cycle.unserved_pods import UnservedPods
from pilotage.framework.diagnosis import Rejected
from pilotage.framework.errors import PluginError
from pilotage.framework.plugin_meter import status_of
from pilotage.framework.waiting_pods import WaitingPod
from pilotage.model import Pod
from pilotage.observe.instruments import Distribution
from pilotage.observe.metrics import Metrics
from pilotage.observe.plugin_errors import PluginErrors
from pilotage.observe.verbosity import ATTEMPTS
from pilotage.queue.pod_groups import GroupTicket
from pilotage.queue.sub_queues import Ticket

log = logging.getLogger(__name__)

_MOST_ATTEMPTS: Final = 15


class Attempts:
    """Records every step of every attempt."""

    def __init__(self, metrics: Metrics, clock: Clock, recorder: EventRecorder, errors: PluginErrors) -> None:
        self.recorder = recorder
        self.skipped = metrics.skipped
        self.unserved = UnservedPods(recorder, metrics)
        self.clock = clock
        self.now = clock.monotonic
        """On the clock that never goes backwards: what durations are measured by."""
        self._metrics = metrics
        self._errors = errors
        self._searches = metrics.scheduling_algorithm_duration_seconds
        self._attempts_of_bound = metrics.pod_scheduling_attempts.child()
        self._duration = cache(metrics.scheduling_attempt_duration_seconds.child)
        self._sli = cache(self._sli_line)
        durations = metrics.scheduling_attempt_duration_seconds
        metrics.schedule_attempts_total.read_from(
            lambda: {labels: float(line.count) for labels, line in durations.lines().items()}
        )

    def searched(self, ticket: Ticket) -> None:
        """A node was found, or none."""
        self._searches.observe(self.now() - ticket.started)

    def group_searched(self, ticket: GroupTicket) -> None:
        """Places were found for enough members of a group, or not."""
        self._metrics.podgroup_scheduling_algorithm_duration_seconds.observe(self.now() - ticket.started)

    def group_ended(self, ticket: GroupTicket, result: str, profile: str) -> None:
        """The cycle of a group is over."""
        self._metrics.podgroup_schedule_attempts_total.add(result, profile)
        seconds = self.now() - ticket.started
        self._metrics.podgroup_scheduling_attempt_duration_seconds.observe(seconds, result, profile)
        if log.isEnabledFor(ATTEMPTS):
            text = "attempt of a pod group ended: podgroup=%s result=%s members=%d attempt=%d milliseconds=%.1f"
            entry = ticket.entry
            log.log(ATTEMPTS, text, entry.key, result, len(ticket.members), entry.attempts, seconds * 1000)

    @contextmanager
    def asking_about_group(self, point: str, profile: str) -> Iterator[list[str]]:
        """Until the block ends, plugins are asked about a group. It may put another status than Success into the list.

        What is raised is an error, and goes on.
        """
        since, status = self.now(), ["Success"]
        try:
            yield status
        except BaseException:
            status.append("Error")
            raise
        finally:
            seconds = self.now() - since
            self._metrics.framework_extension_point_duration_seconds.observe(seconds, point, status[-1], profile)
            if point == "PodGroupPostFilter":
                self._metrics.workload_preemption_attempts_total.add(status[-1])

    def placements_generated(self, count: int, profile: str) -> None:
        self._metrics.generated_placements_total.add(profile, amount=count)

    def placement_evaluated(self, fits: bool, profile: str, since: float) -> None:
        """A group was tried in one placement."""
        result = "feasible" if fits else "infeasible"
        self._metrics.placement_evaluations_total.add(result, profile)
        self._metrics.placement_evaluation_duration_seconds.observe(self.now() - since, result, profile)

    def placed(self, ticket: Ticket, placed: Placed, waiting: WaitingPod | None) -> None:
        """The pod has a node, and may have to wait for permission."""
        if log.isEnabledFor(ATTEMPTS):
            log.log(
                ATTEMPTS,
                "attempt found a node: pod=%s node=%s score=%d permit=%s attempt=%d milliseconds=%.1f",
                ticket.pod.key,
                placed.node_name,
                placed.score,
                "allowed" if waiting is None else f"wait:{','.join(waiting.pending_plugins)}",
                ticket.entry.attempts,
                self._milliseconds(ticket),
            )

    def failed(self, ticket: Ticket, failure: Failure) -> None:
        """The scheduling cycle ended without a node."""
        self._ended("unschedulable" if failure.reason == UNSCHEDULABLE else "error", ticket)
        if log.isEnabledFor(ATTEMPTS):
            diagnosis = failure.diagnosis
            log.log(
                ATTEMPTS,
                "attempt failed: pod=%s reason=%s plugins=%s nominated=%s attempt=%d milliseconds=%.1f message=%s",
                ticket.pod.key,
                failure.reason,
                ",".join(sorted({*diagnosis.rejectors, *diagnosis.pending})) if diagnosis else "",
                failure.nomination or "",
                ticket.entry.attempts,
                self._milliseconds(ticket),
                failure.message,
            )

    def permitted(self, seconds: float, rejected: Rejected | None) -> None:
        """A pod has waited for permission."""
        self._observe_permit(seconds, status_of(None if rejected is None else rejected.rejection))

    def permit_failed(self, seconds: float) -> None:
        """It waited, and was called away."""
        self._observe_permit(seconds, "Error")

    def _observe_permit(self, seconds: float, result: str) -> None:
        self._metrics.permit_wait_duration_seconds.observe(seconds, result)

    def binding_failed(self, ticket: Ticket, node_name: str, failure: Failure) -> None:
        """The binding cycle ended, and the pod is not bound."""
        self._ended("unschedulable" if failure.reason == UNSCHEDULABLE else "error", ticket)
        if log.isEnabledFor(ATTEMPTS):
            text = "binding failed: pod=%s node=%s reason=%s message=%s"
            log.log(ATTEMPTS, text, ticket.pod.key, node_name, failure.reason, failure.message)

    def bound(self, ticket: Ticket, pod: Pod, queue_now: float) -> None:
        """The pod has its node for good; `queue_now` is the time by which the queue counts."""
        entry = ticket.entry
        self._ended("scheduled", ticket)
        self._attempts_of_bound.observe(entry.attempts)
        if entry.first_attempt_at is not None:
            self._sli(entry.attempts).observe(queue_now - entry.first_attempt_at)
        if entry.was_flushed:
            self._metrics.pod_scheduled_after_flush_total.add()
        self.skipped.understood("Pod", pod.key)
        if log.isEnabledFor(ATTEMPTS):
            log.log(
                ATTEMPTS,
                "pod bound: pod=%s node=%s attempts=%d milliseconds=%.1f",
                pod.key,
                pod.node_name,
                entry.attempts,
                self._milliseconds(ticket),
            )
        text = f"Successfully assigned {pod.key} to {pod.node_name}"
        self.recorder.record(pod, "Normal", "Scheduled", "Binding", text)

    def plugin_failed(self, pod: Pod, error: PluginError) -> None:
        self._errors.note(error.plugin, error.point, error.__cause__ or error, pod.key)

    def _ended(self, result: str, ticket: Ticket) -> None:
        line = self._duration(result, ticket.pod.spec.scheduler_name)
        line.observe(self.now() - ticket.started)

    def _sli_line(self, attempts: int) -> Distribution:
        label = str(attempts) if attempts < _MOST_ATTEMPTS else f"{_MOST_ATTEMPTS}+"
        return self._metrics.pod_scheduling_sli_duration_seconds.child(label)

    def _milliseconds(self, ticket: Ticket) -> float:
        return (self.now() - ticket.started) * 1000


def log_preempted(eviction: Eviction) -> None:
    if log.isEnabledFor(ATTEMPTS):
        text = "pod preempted: pod=%s preemptor=%s node=%s plugin=%s"
        log.log(ATTEMPTS, text, eviction.victim.key, eviction.preemptor.key, eviction.node_name, eviction.plugin)
