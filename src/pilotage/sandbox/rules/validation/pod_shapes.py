"""The fields of pods that validation reads, with their types."""

from __future__ import annotations

from msgspec import field

from pilotage.sandbox.rules.validation.metadata import AnyObject, Metadata
from pilotage.sandbox.rules.validation.shapes import Int32, Int64, Labels, Quantities, Shape

Anything = dict[str, object]
"""An object that is not looked into."""


class SelectorRequirement(Shape):
    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class LabelSelector(Shape):
    match_labels: Labels | None = None
    match_expressions: list[SelectorRequirement] | None = None


class NodeSelectorTerm(Shape):
    match_expressions: list[SelectorRequirement] | None = None
    match_fields: list[SelectorRequirement] | None = None


class NodeSelector(Shape):
    node_selector_terms: list[NodeSelectorTerm] | None = None


class PreferredNodes(Shape):
    weight: Int32 | None = None
    preference: NodeSelectorTerm | None = None


class NodeAffinityTerms(Shape):
    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredNodes] | None = field(default=None, name="preferredDuringSchedulingIgnoredDuringExecution")


class PodAffinityTerm(Shape):
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    topology_key: str | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodAffinityTerm(Shape):
    weight: Int32 | None = None
    pod_affinity_term: PodAffinityTerm | None = None


class PodAffinity(Shape):
    required: list[PodAffinityTerm] | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[WeightedPodAffinityTerm] | None = field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Shape):
    node_affinity: NodeAffinityTerms | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Shape):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: Int64 | None = None


class TopologySpreadConstraint(Shape):
    max_skew: Int32 | None = None
    topology_key: str | None = None
    when_unsatisfiable: str | None = None
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class NameReference(Shape):
    name: str | None = None


class Resources(Shape):
    requests: Quantities | None = None
    limits: Quantities | None = None
    claims: list[NameReference] | None = None


class ContainerPort(Shape):
    name: str | None = None
    container_port: Int32 | None = None
    host_port: Int32 | None = None
    protocol: str | None = None


class VolumeMount(Shape):
    name: str | None = None
    mount_path: str | None = None


class VolumeDevice(Shape):
    name: str | None = None
    device_path: str | None = None


class EnvVar(Shape):
    name: str | None = None
    value: str | None = None
    value_from: Anything | None = None


class Container(Shape):
    name: str | None = None
    image: str | None = None
    image_pull_policy: str | None = None
    ports: list[ContainerPort] | None = None
    env: list[EnvVar] | None = None
    resources: Resources | None = None
    restart_policy: str | None = None
    volume_mounts: list[VolumeMount] | None = None
    volume_devices: list[VolumeDevice] | None = None
    termination_message_policy: str | None = None


class ClaimName(Shape):
    claim_name: str | None = None


class SecretName(Shape):
    secret_name: str | None = None


class HostPath(Shape):
    path: str | None = None


class DriverName(Shape):
    driver: str | None = None


class ClaimTemplate(Shape):
    metadata: Metadata | None = None
    spec: Anything | None = None


class EphemeralVolume(Shape):
    volume_claim_template: ClaimTemplate | None = None


class Volume(Shape):
    """A volume's own name and those of its sources that have a required field."""

    name: str | None = None
    persistent_volume_claim: ClaimName | None = None
    secret: SecretName | None = None
    config_map: NameReference | None = None
    host_path: HostPath | None = None
    csi: DriverName | None = None
    ephemeral: EphemeralVolume | None = None


class PodResourceClaim(Shape):
    name: str | None = None
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(Shape):
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    ephemeral_containers: list[Container] | None = None
    volumes: list[Volume] | None = None
    restart_policy: str | None = None
    dns_policy: str | None = None
    scheduler_name: str | None = None
    service_account_name: str | None = None
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    node_name: str | None = None
    node_selector: Labels | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    scheduling_gates: list[NameReference] | None = None
    resource_claims: list[PodResourceClaim] | None = None
    resources: Resources | None = None
    overhead: Quantities | None = None
    host_network: bool | None = None
    hostname: str | None = None
    subdomain: str | None = None
    priority: Int32 | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    runtime_class_name: str | None = None


class Pod(AnyObject):
    spec: PodSpec | None = None


class PodTemplateSpec(Shape):
    """The template inside a workload."""

    metadata: Metadata | None = None
    spec: PodSpec | None = None
