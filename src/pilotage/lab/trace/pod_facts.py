"""What tells pods of a trace apart: who owns them, which group they are in, how large they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from pilotage.lab.trace.renaming import GROUP_LABELS
from pilotage.model.pod import Pod
from pilotage.model.pod_resources import pod_requests

GPU_COUNT: Final = "openb.pilotage.dev/gpu-count"
GPU_MILLI: Final = "openb.pilotage.dev/gpu-milli"
GPU_MODEL: Final = "openb.pilotage.dev/gpu-card-model"
"""Annotations of pods that ask for parts of GPUs, and (the model) a label of nodes."""
_KUEUE_GROUP: Final = "kueue.x-k8s.io/pod-group-name"
_HASH_LABEL: Final = "pod-template-hash"
_BINARY: Final = ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"))


class RequestShape(msgspec.Struct, frozen=True, order=True):
    """What a pod asks for: cpu in thousandths, everything else in units."""

    requests: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return " ".join(f"{name}={amount_text(name, amount)}" for name, amount in self.requests) or "nothing"


def shape_of(pod: Pod) -> RequestShape:
    requests = {name: amount for name, amount in pod_requests(pod.spec).items() if amount}
    if GPU_COUNT in pod.annotations:
        requests[GPU_MILLI] = gpu_milli(pod.annotations)
    return RequestShape(tuple(sorted(requests.items(), key=lambda item: (item[0] not in ("cpu", "memory"), item[0]))))


def gpu_milli(annotations: Mapping[str, str]) -> int:
    """Thousandths of GPUs that a pod asks for in annotations, all devices together; 0 if it is no number."""
    try:
        return int(annotations.get(GPU_COUNT, "0")) * int(annotations.get(GPU_MILLI, "1000"))
    except ValueError:
        return 0


def amount_text(resource: str, amount: int) -> str:
    """As people write it: 500m, 2, 16Gi."""
    if resource == "cpu":
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    for size, unit in _BINARY if "gpu" not in resource else ():
        if amount >= size and amount % size == 0:
            return f"{amount // size}{unit}"
    return str(amount)


def owner_of(pod: Pod) -> str:
    """The workload that the pod belongs to, such as "Deployment default/web"; pods without one are "Pod default/"."""
    owner = pod.controller
    if owner is None:
        return f"Pod {pod.namespace}/"
    template_hash = pod.labels.get(_HASH_LABEL, "")
    if owner.kind == "ReplicaSet" and template_hash and owner.name.endswith(f"-{template_hash}"):
        return f"Deployment {pod.namespace}/{owner.name.removesuffix(f'-{template_hash}')}"
    return f"{owner.kind} {pod.namespace}/{owner.name}"


def group_of(pod: Pod) -> str:
    """The group that is scheduled together with the pod, as "namespace/name"; "" if it is alone."""
    group = pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group is not None else ""
    labels = (*GROUP_LABELS, _KUEUE_GROUP)
    group = group or next((pod.labels[label] for label in labels if label in pod.labels), "")
    return f"{pod.namespace}/{group}" if group else ""
