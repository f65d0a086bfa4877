"""The part of a pod's spec that scheduling reads, shared by all pods of equal content.

`PodSpecFields` is what stands on the wire; `PodSpec` adds `memo`, where the scheduler keeps facts that it derived from
the spec (requests, signature, ...). There is one PodSpec per distinct content (see `pod`), so a fact is worked out
once for a whole Deployment, and `old.spec is new.spec` tells that an update changed nothing that scheduling reads.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from pilotage.model.meta import LocalReference, Shape
from pilotage.model.node import Taint
from pilotage.model.quantity import Quantity
from pilotage.model.selectors import LabelSelector, NodeSelector, PreferredSchedulingTerm
from pilotage.model.volumes import Volume


class ResourceRequirements(Shape, frozen=True):
    requests: dict[str, Quantity] = msgspec.field(default_factory=dict)
    limits: dict[str, Quantity] = msgspec.field(default_factory=dict)


class ContainerPort(Shape, frozen=True):
    container_port: int = 0
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class VolumeMount(Shape, frozen=True):
    """Only what the node must support; names are left out because the token volume's is different in every pod."""

    bind_mount_options: tuple[str, ...] = ()


class RestartRule(Shape, frozen=True):
    action: str = ""


class Container(Shape, frozen=True):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[RestartRule, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()

    @property
    def is_sidecar(self) -> bool:
        """An init container that keeps running beside the main containers."""
        return self.restart_policy == "Always"


class Toleration(Shape, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Effect and key empty or equal; Exists, or equal values."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator in ("", "Equal"):
            return self.value == taint.value
        return self.operator == "Exists"


class TopologySpreadConstraint(Shape, frozen=True):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class NodeAffinity(Shape, frozen=True):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredSchedulingTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Shape, frozen=True):
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Shape, frozen=True):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Shape, frozen=True):
    """Used for pod affinity and for pod anti-affinity, which have the same shape."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Shape, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class PodResourceClaim(Shape, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodOS(Shape, frozen=True):
    name: str = ""


class SchedulingGroup(Shape, frozen=True):
    pod_group_name: str = ""


class PodSpecFields(Shape, frozen=True):
    scheduler_name: str = "default-scheduler"
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Container, ...] = ()
    overhead: dict[str, Quantity] = msgspec.field(default_factory=dict)
    resources: ResourceRequirements | None = None
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_gates: tuple[LocalReference, ...] = ()
    host_network: bool = False
    host_users: bool | None = None
    os: PodOS | None = None
    termination_grace_period_seconds: int | None = None
    scheduling_group: SchedulingGroup | None = None


class TemplateSpec(PodSpecFields, frozen=True):
    """The spec of a template: what a RuntimeClass adds to pods is not in it yet."""

    runtime_class_name: str = ""


class PodSpec(PodSpecFields, frozen=True, eq=False, weakref=True, gc=True, dict=True):
    """One object per distinct content: compared and hashed by identity.

    `memo` may hold anything derived from the spec, but nothing that leads to a Pod, such as a plugin: pods are
    invisible to the garbage collector, so that a spec which refers back to its pod would live for ever.
    """

    @cached_property
    def memo(self) -> dict[Any, Any]:
        """Beside the fields: it is not encoded, and a copy with other fields has one of its own."""
        return {}
