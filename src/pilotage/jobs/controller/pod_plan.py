"""What to do about a group of pods (or a pod alone): decided from its members, its workload and the flavors.

As for Jobs, with two differences. Pods cannot be suspended: they are held back by their gate before they start, and
stopping means deleting them. And their creator must make them again: until then the group is not complete and its
workload waits (WaitingForReplacementPods).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pilotage.jobs.adapters import marks, plain_pods
from pilotage.jobs.adapters.plain_pods import PodGroup
from pilotage.jobs.adapters.pod_set_info import PodSetConflict, pod_set_infos
from pilotage.jobs.adapters.workload_draft import Drafting, DraftProblem, WorkloadDraft
from pilotage.jobs.conditions import WAIT_FOR_RECOVERY
from pilotage.jobs.controller.steps import (
    CreateWorkload,
    PatchObject,
    RecordEvent,
    RemovePod,
    RemoveWorkload,
    ReportFinished,
    ReportPodsGone,
    ReportPodsReady,
    ReportReplacement,
    Step,
)
from pilotage.jobs.controller.workload_facts import (
    condition,
    followed,
    holds_quota,
    is_leaving,
    is_true,
    pending_checks_event,
    priority_followed,
    release_patch,
    should_run,
    why_stopped,
)
from pilotage.model.kueue import ResourceFlavor, Workload
from pilotage.model.pod import Pod

_WAITING = "WaitingForReplacementPods"
_TOO_MANY = ("ExcessPod", "The group has enough pods without it")


def pod_steps(
    members: PodGroup,
    workload: Workload | None,
    drafting: Drafting,
    flavors: Mapping[str, ResourceFlavor],
) -> Iterator[Step]:
    """`members` has at least one pod."""
    ending = plain_pods.run_facts(members).ending
    if workload is None:
        yield from _without_workload(members, drafting)
    elif is_leaving(workload):
        yield from _leaving(members, workload)
    elif is_true(workload, "Finished"):
        if (patch := release_patch(workload)) is not None:
            yield PatchObject(workload, patch)
    elif ending is not None:
        event = RecordEvent(members.pods[0], "FinishedWorkload", f"Workload '{workload.key}' is declared finished")
        yield ReportFinished(workload.key, ending.reason, ending.message, event)
    elif should_run(workload):
        yield from _admitted(members, workload, flavors)
        first = members.pods[0]
        yield from priority_followed(first, workload, drafting)
    else:
        yield from _stopped(members, workload, drafting)


def steps_without_pods(workload: Workload) -> Iterator[Step]:
    """All members are gone: an evicted group waits for new ones, any other is not wanted any more."""
    is_group = bool(workload.labels.get(marks.GROUP_NAME))
    evicted = condition(workload, "Evicted")
    if is_group and not is_leaving(workload) and evicted is not None and evicted.status == "True":
        yield from _replacement(workload, is_complete=False)
        if holds_quota(workload):
            yield ReportPodsGone(workload.key)
        return
    if not is_leaving(workload):
        yield RemoveWorkload(workload)
    if (patch := release_patch(workload)) is not None:
        yield PatchObject(workload, patch)


def _without_workload(members: PodGroup, drafting: Drafting) -> Iterator[Step]:
    first = members.pods[0]
    if plain_pods.run_facts(members).ending is not None:
        return
    running = _running(members)
    if running:
        yield from _removals(running, "WorkloadDeleted", "The workload is gone")
    elif members.problem:
        yield RecordEvent(first, "ErrWorkloadCompose", members.problem, "Warning")
    elif isinstance(draft := drafting(), DraftProblem):
        yield RecordEvent(first, draft.reason, draft.message, "Warning")
    elif not members.is_complete:
        there = len(plain_pods.usable(members.pods))
        text = f"{there} of {members.total} pods of its group are there; it is queued when all of them are"
        yield RecordEvent(first, "WaitsForGroup", text, is_recorded_once=True)
    else:
        yield from _removals(plain_pods.excess(members), *_TOO_MANY)
        yield CreateWorkload(
            draft, RecordEvent(first, "CreatedWorkload", f"Created Workload: {draft.namespace}/{draft.name}")
        )


def _leaving(members: PodGroup, workload: Workload) -> Iterator[Step]:
    facts = plain_pods.run_facts(members)
    if facts.ending is None and facts.has_active_pods:
        yield from _removals(_running(members), "WorkloadDeleted", "The workload is deleted")
    elif (patch := release_patch(workload)) is not None:
        yield PatchObject(workload, patch)


def _admitted(members: PodGroup, workload: Workload, flavors: Mapping[str, ResourceFlavor]) -> Iterator[Step]:
    found = pod_set_infos(workload, flavors)
    if isinstance(found, PodSetConflict):
        yield ReportFinished(workload.key, "FailedToStart", found.message)
        return
    yield from _removals(plain_pods.excess(members), *_TOO_MANY)
    infos = {info.name: info for info in found}
    admission = workload.status.admission
    queue = admission.cluster_queue if admission is not None else ""
    for pod in plain_pods.kept(members):
        info = infos.get(plain_pods.role_of(pod))
        if not plain_pods.is_gated(pod):
            continue
        if info is None:
            yield RecordEvent(pod, "ErrWorkloadCompose", "It differs from all pods that were admitted", "Warning")
        else:
            event = RecordEvent(pod, "Started", f"Admitted by clusterQueue {queue}")
            yield PatchObject(pod, plain_pods.start_patch(pod, info), event=event)
    ready = condition(workload, "PodsReady")
    has_started = ready is not None and (ready.status == "True" or ready.reason == WAIT_FOR_RECOVERY)
    are_ready = plain_pods.run_facts(members).are_pods_ready or (has_started and plain_pods.is_scaled_down(members))
    yield ReportPodsReady(workload.key, are_ready)


def _stopped(members: PodGroup, workload: Workload, drafting: Drafting) -> Iterator[Step]:
    evicted = is_true(workload, "Evicted") or not workload.spec.active
    if evicted or is_true(workload, _WAITING):
        yield from _replacement(workload, members.is_complete and not _running(members))
    running = _running(members)
    if running:
        reason = condition(workload, "Evicted") or condition(workload, "QuotaReserved")
        yield from _removals(running, reason.reason if reason is not None else "NotAdmitted", why_stopped(workload))
    elif members.is_complete and isinstance(draft := drafting(), WorkloadDraft):
        yield from _removals(plain_pods.excess(members), *_TOO_MANY)
        yield from followed(members.pods[0], workload, draft)
        yield from pending_checks_event(members.pods[0], workload)
    if not plain_pods.run_facts(members).has_active_pods and is_true(workload, "Evicted") and holds_quota(workload):
        yield ReportPodsGone(workload.key)


def _replacement(workload: Workload, is_complete: bool) -> Iterator[Step]:
    known = condition(workload, _WAITING)
    if (known is not None and known.status == "True") != (not is_complete):
        evicted = condition(workload, "Evicted")
        reason = evicted.reason if evicted is not None else "Deactivated"
        yield ReportReplacement(workload.key, not is_complete, "Replaced" if is_complete else reason)


def _running(members: PodGroup) -> list[Pod]:
    """Pods that were let go and have not ended."""
    return [pod for pod in members.pods if not plain_pods.is_gated(pod) and not pod.is_finished]


def _removals(pods: list[Pod], reason: str, why: str) -> Iterator[Step]:
    for pod in pods:
        if not pod.is_terminating:
            yield RemovePod(pod, reason, why, RecordEvent(pod, "Stopped", why))
