"""Make a volume for a pod before it is bound: KEP-624's use case "dynamic resource binding", with Filter and PreBind.

    pilotage sandbox --plugin examples/plugins/volume_provisioning.py -f examples/plugins/volume_provisioning.yaml
    kubectl get pods,pvc -o wide    # the pod is where volumes can be made, and its volume is there

A pod asks for scratch space with the annotation example.com/scratch-space: 5Gi. The filter leaves only nodes that can
make volumes (label example.com/makes-volumes=true). PreBind then creates a claim for the chosen node and waits until it
is bound; only then is the pod bound. If the volume does not come in time the pod goes back to the queue, and the claim
is there for its next attempt.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from pilotage.api import (
    KINDS,
    Action,
    ApiCall,
    ApiWriter,
    CycleState,
    Filter,
    Handle,
    Hint,
    Lane,
    Node,
    NodeView,
    Plugin,
    Pod,
    PreBind,
    PreFlight,
    Reason,
    Rejection,
    Reject,
    Relevance,
    Resource,
    Skip,
    on_event,
)

WANTED = "example.com/scratch-space"
ABLE = "example.com/makes-volumes"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
ALREADY_EXISTS = 409


@dataclass(frozen=True)
class VolumeProvisioningArgs:
    storage_class: str = "standard"
    timeout_seconds: float = 60.0
    poll_seconds: float = 0.25


class VolumeProvisioning(Plugin, Filter, PreBind):
    """Scratch space for pods that ask for it."""

    args_type = VolumeProvisioningArgs
    pure_hints = True

    def __init__(self, handle: Handle, args: VolumeProvisioningArgs) -> None:
        self._handle = handle
        self._args = args

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        if WANTED not in pod.annotations or node.labels.get(ABLE) == "true":
            return None
        return Reject(Reason("NoVolumesHere", "node(s) cannot make volumes", unresolvable=True))

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        return Hint.QUEUE if new.labels.get(ABLE) == "true" else Hint.SKIP

    def sign(self, pod: Pod) -> Hashable:
        return WANTED in pod.annotations

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> PreFlight | Skip:
        """Most pods want nothing; those that do may be served beside the work of other plugins."""
        return PreFlight(allow_parallel=True) if WANTED in pod.annotations else Skip()

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        """Coroutines may wait: other pods are scheduled meanwhile, and this one keeps its place."""
        await self._handle.perform(ClaimCreation(pod, node_name, self._args.storage_class))
        deadline = self._handle.clock.monotonic() + self._args.timeout_seconds
        while self._handle.clock.monotonic() < deadline:
            claim: Any = self._handle.objects("PersistentVolumeClaim").get(f"{pod.namespace}/{claim_name(pod)}")
            if claim is not None and claim.status.phase == "Bound":
                return None
            await self._handle.clock.sleep(self._args.poll_seconds)
        return Reject(Reason("NoVolume", f"no volume after {self._args.timeout_seconds:g} s"))


class ClaimCreation(ApiCall):
    """POST a claim for a pod; one that exists already is the same claim from an earlier attempt."""

    kind: ClassVar[str] = "scratch_claim"
    lane: ClassVar[Lane] = Lane.VOLUME
    relevance: ClassVar[int] = Relevance.BINDING

    def __init__(self, pod: Pod, node_name: str, storage_class: str) -> None:
        self._pod = pod
        self._node_name = node_name
        self._storage_class = storage_class

    @property
    def object_key(self) -> str:
        return f"{self._pod.uid}/scratch"

    async def perform(self, writer: ApiWriter) -> None:
        pod = self._pod
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
        claim = {
            "metadata": {
                "name": claim_name(pod),
                "annotations": {SELECTED_NODE: self._node_name},
                "ownerReferences": [owner],
            },
            "spec": {
                "storageClassName": self._storage_class,
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": pod.annotations[WANTED]}},
            },
        }
        try:
            await writer.create(KINDS["persistentvolumeclaims"], pod.namespace, msgspec.json.encode(claim))
        except Exception as error:
            if getattr(error, "code", None) != ALREADY_EXISTS:
                raise


def claim_name(pod: Pod) -> str:
    return f"{pod.name}-scratch"
