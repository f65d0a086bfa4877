"""Plain pods and groups of pods, held back by a scheduling gate until their workload is admitted.

A pod takes part if it carries the queue label and the gate kueue.x-k8s.io/admission (no one can add a gate to a pod
that exists, and there is no webhook that would add it at creation). Pods with the same group name are one workload, in
which members of the same shape form a pod set. A pod that is stopped is deleted: it cannot be suspended again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from pilotage.jobs.adapters import marks
from pilotage.jobs.adapters.batch_job import map_patch, plain_tolerations
from pilotage.jobs.adapters.facts import JobEnding, RunFacts
from pilotage.jobs.adapters.kinds import leader_worker_set
from pilotage.jobs.adapters.pod_set_info import PodSetInfo
from pilotage.jobs.adapters.pod_templates import queued_spec
from pilotage.model.kueue import PodSet
from pilotage.model.meta import ObjectMeta
from pilotage.model.pod import Pod
from pilotage.model.pod_spec import Container
from pilotage.model.workloads import PodTemplate

_HASH_DIGITS = 8
_ORDINAL = "apps.kubernetes.io/pod-index"
SINGLE = "main"
"""The pod set of a pod that belongs to no group."""


def takes_part(pod: Pod) -> bool:
    """Whether the pod waits for admission, or was admitted by us."""
    return marks.QUEUE_NAME in pod.labels and (is_gated(pod) or pod.labels.get(marks.MANAGED) == "true")


def is_gated(pod: Pod) -> bool:
    return any(gate.name == marks.GATE for gate in pod.spec.scheduling_gates)


def group_of(pod: Pod) -> str:
    """The name of its group; "" if it is queued by itself."""
    name = pod.labels.get(marks.GROUP_NAME, "") or leader_worker_set.group_of(pod)
    return "" if name and _came_later(pod) else name


def _came_later(pod: Pod) -> bool:
    """Whether a StatefulSet was scaled up by it: the group has as many replicas as it was counted with."""
    index, total = pod.labels.get(_ORDINAL, ""), pod.annotations.get(marks.GROUP_TOTAL_COUNT, "")
    return index.isdecimal() and total.isdecimal() and int(index) >= int(total)


def role_of(pod: Pod) -> str:
    """The pod set of a pod: the same for pods of the same shape."""
    known = pod.annotations.get(marks.ROLE_HASH)
    if known is not None:
        return known
    if not group_of(pod):
        return SINGLE
    spec = queued_spec(pod.spec)
    if _ORDINAL in pod.labels:
        # A new image is rolled out under the quota that the set has.
        spec = replace(spec, containers=_without_images(spec.containers))
        spec = replace(spec, init_containers=_without_images(spec.init_containers))
    shape = msgspec.json.encode([pod.labels.get(marks.PRIORITY_CLASS), spec], order="sorted")
    return hashlib.sha256(shape).hexdigest()[:_HASH_DIGITS]


def _without_images(containers: Sequence[Container]) -> tuple[Container, ...]:
    return tuple(replace(one, image="") for one in containers)


def ungate_patch(pod: Pod) -> dict[str, Any]:
    """Let it go as it is; other gates stay."""
    gates = [{"name": gate.name} for gate in pod.spec.scheduling_gates if gate.name != marks.GATE]
    identity = {"uid": pod.uid, "resourceVersion": pod.resource_version}
    return {"metadata": identity, "spec": {"schedulingGates": gates or None}}


def start_patch(pod: Pod, info: PodSetInfo) -> dict[str, Any]:
    """Steer the pod and let it go to the scheduler; other gates stay."""
    gates = [{"name": gate.name} for gate in pod.spec.scheduling_gates if gate.name != marks.GATE]
    added = tuple(one for one in info.tolerations if one not in pod.spec.tolerations)
    selector = {**pod.spec.node_selector, **info.node_selector}
    spec: dict[str, Any] = {"schedulingGates": gates or None}
    if info.node_selector:
        spec["nodeSelector"] = map_patch(pod.spec.node_selector, selector)
    if added:
        spec["tolerations"] = plain_tolerations((*pod.spec.tolerations, *added))
    annotations = {**info.annotations, marks.ROLE_HASH: info.name}
    metadata = {
        "uid": pod.uid,
        "resourceVersion": pod.resource_version,
        "labels": {**info.labels, marks.MANAGED: "true"},
        "annotations": annotations,
    }
    return {"metadata": metadata, "spec": spec}


# --- groups -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PodGroup:
    """The pods that are one workload: a pod alone, or all members of a group."""

    name: str
    """"" for a pod alone."""
    total: int
    pods: tuple[Pod, ...]
    problem: str = ""
    """Why they cannot be queued as they are."""

    @property
    def is_complete(self) -> bool:
        """All members exist, or the first one may stand for all."""
        first = self.pods[0] if self.pods else None
        is_fast = first is not None and first.annotations.get(marks.GROUP_FAST_ADMISSION) == "true"
        return bool(self.pods) and not self.problem and (is_fast or len(usable(self.pods)) >= self.total)


def group(name: str, pods: Sequence[Pod]) -> PodGroup:
    """The group of these pods, oldest first."""
    members = tuple(sorted(pods, key=lambda pod: (pod.creation_timestamp or "", pod.name)))
    if not name:
        return PodGroup("", 1, members)
    counts = {pod.annotations.get(marks.GROUP_TOTAL_COUNT, "") or leader_worker_set.total_count(pod) for pod in members}
    queues = {pod.labels.get(marks.QUEUE_NAME, "") for pod in members}
    problem = ""
    [count] = counts if len(counts) == 1 else [""]
    if not count.isdecimal() or int(count) < 1:
        found = ", ".join(sorted(f'"{one}"' for one in counts))
        problem = f"annotation {marks.GROUP_TOTAL_COUNT} must be the same number on all members; found {found}"
    elif len(queues) > 1:
        problem = f"members name different queues: {', '.join(sorted(queues))}"
    return PodGroup(name, 0 if problem else int(count), members, problem)


def usable(pods: Sequence[Pod]) -> list[Pod]:
    """Pods that count as members: failed and leaving ones may be replaced."""
    return [pod for pod in pods if not pod.is_terminating and pod.status.phase != "Failed"]


def pod_sets(members: PodGroup) -> tuple[PodSet, ...]:
    """Members of the same shape form a pod set; what is missing (fast admission) is as the first."""
    roles: dict[str, list[Pod]] = {}
    for pod in kept(members):
        roles.setdefault(role_of(pod), []).append(pod)
    counts = {role: len(pods) for role, pods in roles.items()}
    if roles:
        first = next(iter(roles))
        counts[first] += max(members.total - sum(counts.values()), 0)
    return tuple(
        PodSet(name=role, template=_template(pods[0]), count=counts[role]) for role, pods in sorted(roles.items())
    )


def _template(pod: Pod) -> PodTemplate:
    asked = {name: pod.annotations[name] for name in marks.TOPOLOGY if name in pod.annotations}
    return PodTemplate(metadata=ObjectMeta(annotations=asked), spec=queued_spec(pod.spec))


def kept(members: PodGroup) -> list[Pod]:
    """The members that stay if there are more than wanted: let go already, then older ones."""
    ranked = sorted(usable(members.pods), key=lambda pod: (is_gated(pod), pod.creation_timestamp or "", pod.name))
    return ranked[: members.total]


def excess(members: PodGroup) -> list[Pod]:
    staying = {pod.uid for pod in kept(members)}
    return [pod for pod in usable(members.pods) if pod.uid not in staying] if not members.problem else []


def run_facts(members: PodGroup) -> RunFacts:
    pods = members.pods
    alive = [pod for pod in pods if not pod.is_finished and not is_gated(pod)]
    ready = [pod for pod in usable(pods) if pod.status.phase == "Succeeded" or _is_ready(pod)]
    staying = usable(pods)
    return RunFacts(
        is_suspended=any(is_gated(pod) for pod in staying) or not staying,
        has_active_pods=bool(alive),
        are_pods_ready=len(staying) >= members.total and len(ready) == len(staying),
        ending=_ending(members),
    )


def is_scaled_down(members: PodGroup) -> bool:
    """Whether the first replicas of a StatefulSet are there and ready, and only the last ones are not there at all."""
    staying = usable(members.pods)
    ordinals = sorted(pod.labels.get(_ORDINAL, "") for pod in staying)
    are_first = ordinals == sorted(str(at) for at in range(len(staying)))
    return bool(staying) and are_first and all(map(_is_ready, staying))


def _is_ready(pod: Pod) -> bool:
    condition = pod.status.condition("Ready")
    return condition is not None and condition.status == "True"


def _is_serving(pod: Pod) -> bool:
    return pod.annotations.get(marks.GROUP_SERVING) == "true" or bool(leader_worker_set.group_of(pod))


def _ending(members: PodGroup) -> JobEnding | None:
    pods = members.pods
    if not pods or any(map(_is_serving, pods)):
        return None
    succeeded = sum(pod.status.phase == "Succeeded" for pod in pods)
    if succeeded >= members.total > 0:
        return JobEnding(True, "Pods succeeded: " + f"{succeeded}/{members.total}.")
    all_ended = all(pod.is_finished for pod in pods)
    is_final = not members.name or any(pod.annotations.get(marks.RETRIABLE_IN_GROUP) == "false" for pod in pods)
    if all_ended and is_final:
        return JobEnding(False, f"Pods succeeded: {succeeded}/{members.total}.")
    return None
