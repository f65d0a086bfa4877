"""Kueue's `Configuration` (config.kueue.x-k8s.io): fields, defaults, and what values are allowed.

The classes hold effective values: what a file leaves out is filled in by `written`, because two defaults depend on the
version of the file. Fields that only matter to Kueue's own manager (webhooks, certificates, health probes) are
accepted, so that users' files work unchanged, and are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pilotage.config.kinds import Problems
from pilotage.model.durations import Duration, go_duration
from pilotage.model.quantity import parse_quantity
from pilotage.model.queue_admission import FRAMEWORKS
from pilotage.model.selectors import LabelSelector, LabelSelectorRequirement

KIND: Final = "Configuration"
API_GROUP: Final = "config.kueue.x-k8s.io"
API_VERSION: Final = f"{API_GROUP}/v1beta2"
OLDER_API_VERSION: Final = f"{API_GROUP}/v1beta1"

DEFAULT_TIMEOUT_SECONDS: Final = 1800.0
OLDER_DEFAULT_TIMEOUT_SECONDS: Final = 300.0

DEFAULT_SAMPLING_SECONDS: Final = 300.0

RequeuingTimestamp = Literal["Eviction", "Creation"]
PreemptionStrategy = Literal["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
PREEMPTION_STRATEGIES: Final[tuple[PreemptionStrategy, ...]] = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
KNOWN_FRAMEWORKS: Final = ("batch/job", "pod", *sorted(FRAMEWORKS - {"batch/job", "pod"}))
"""The job integrations that exist here."""


@dataclass(frozen=True, slots=True)
class RequeuingStrategy:
    """Where and when a workload that did not become ready in time is put back into its queue."""

    timestamp: RequeuingTimestamp = "Eviction"
    """Eviction: at the back of the queue. Creation: at its old place."""
    backoff_limit_count: int | None = None
    """How often a workload is requeued before it is deactivated; None: without limit, 0: never."""
    backoff_base_seconds: int = 60
    backoff_max_seconds: int = 3600
    """0: no cap."""

    def problems(self) -> Problems:
        for name, value in (
            ("backoffLimitCount", self.backoff_limit_count),
            ("backoffBaseSeconds", self.backoff_base_seconds),
            ("backoffMaxSeconds", self.backoff_max_seconds),
        ):
            if value is not None and value < 0:
                yield name, f"Invalid value: {value}: must not be negative"


@dataclass(frozen=True, slots=True)
class WaitForPodsReady:
    """How long admitted workloads may take until their pods are ready, and what happens then."""

    timeout: Duration = DEFAULT_TIMEOUT_SECONDS
    recovery_timeout: Duration | None = None
    """None: as `timeout`; 0: a workload that was ready once is not timed again."""
    block_admission: bool = False
    requeuing_strategy: RequeuingStrategy = RequeuingStrategy()

    @property
    def effective_recovery_timeout(self) -> float:
        """Seconds, 0 if recovery is not timed."""
        return self.timeout if self.recovery_timeout is None else self.recovery_timeout

    def problems(self) -> Problems:
        for name, seconds in (("timeout", self.timeout), ("recoveryTimeout", self.recovery_timeout)):
            if seconds is not None and seconds < 0:
                yield name, f'Invalid value: "{go_duration(seconds)}": must not be negative'
        for path, message in self.requeuing_strategy.problems():
            yield f"requeuingStrategy.{path}", message


@dataclass(frozen=True, slots=True)
class FairSharingSettings:
    """Its presence switches fair sharing on."""

    preemption_strategies: tuple[PreemptionStrategy, ...] = PREEMPTION_STRATEGIES

    def problems(self) -> Problems:
        given = self.preemption_strategies
        if len(given) > 1 and given != PREEMPTION_STRATEGIES:
            allowed = f"one strategy, or {PREEMPTION_STRATEGIES[0]} and then {PREEMPTION_STRATEGIES[1]}"
            yield "preemptionStrategies", f"Invalid value: {', '.join(given)}: write {allowed}"


@dataclass(frozen=True, slots=True)
class AdmissionFairSharing:
    """Serve LocalQueues by what they have used lately, where a ClusterQueue wants that (admissionScope)."""

    usage_half_life_time: Duration = 0.0
    """After so long usage counts half; 0: nothing is remembered."""
    usage_sampling_interval: Duration = DEFAULT_SAMPLING_SECONDS
    resource_weights: Mapping[str, float] = field(default_factory=dict)
    """1 for those that are not named."""

    def problems(self) -> Problems:
        if self.usage_half_life_time < 0:
            shown = go_duration(self.usage_half_life_time)
            yield "usageHalfLifeTime", f'Invalid value: "{shown}": must not be negative'
        if self.usage_sampling_interval <= 0:
            shown = go_duration(self.usage_sampling_interval)
            yield "usageSamplingInterval", f'Invalid value: "{shown}": must be greater than 0'
        for name, weight in self.resource_weights.items():
            if weight < 0:
                yield f"resourceWeights[{name}]", f"Invalid value: {weight:g}: must not be negative"


@dataclass(frozen=True, slots=True)
class Integrations:
    frameworks: tuple[str, ...] = KNOWN_FRAMEWORKS
    """Kueue's default is batch/job alone; whatever else is queued opts in by its label, so it does no harm to look."""
    external_frameworks: tuple[str, ...] = ()
    label_keys_to_copy: tuple[str, ...] = ()
    pod_options: Any = None

    def problems(self) -> Problems:
        seen: set[str] = set()
        for at, name in enumerate(self.frameworks):
            if name in seen:
                yield f"frameworks[{at}]", f'Duplicate value: "{name}"'
            seen.add(name)


ResourceStrategy = Literal["Retain", "Replace"]


@dataclass(frozen=True, slots=True)
class ResourceTransformation:
    """A resource that counts as others, e.g. one GPU slice as so many gigabytes of GPU memory."""

    input: str
    strategy: ResourceStrategy = "Retain"
    outputs: Mapping[str, str | int | float] = field(default_factory=dict)
    multiply_by: str = ""


@dataclass(frozen=True, slots=True)
class ResourceSettings:
    exclude_resource_prefixes: tuple[str, ...] = ()
    transformations: tuple[ResourceTransformation, ...] = ()
    device_class_mappings: tuple[Any, ...] = ()

    def problems(self) -> Problems:
        seen: set[str] = set()
        for at, transformation in enumerate(self.transformations):
            if transformation.input in seen:
                yield f"transformations[{at}].input", f'Duplicate value: "{transformation.input}"'
            seen.add(transformation.input)
            for name, amount in transformation.outputs.items():
                if not _is_amount(amount):
                    path = f"transformations[{at}].outputs[{name}]"
                    yield path, f'Invalid value: "{amount}": is not a quantity that is not negative, such as 2 or 500Mi'


def _is_amount(text: str | int | float) -> bool:
    try:
        return parse_quantity(text) >= 0
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class WorkloadRetention:
    """How long workloads are kept that are not needed any more; None: for ever."""

    after_finished: Duration | None = None
    after_deactivated_by_kueue: Duration | None = None

    def problems(self) -> Problems:
        for name, seconds in (
            ("afterFinished", self.after_finished),
            ("afterDeactivatedByKueue", self.after_deactivated_by_kueue),
        ):
            if seconds is not None and seconds < 0:
                yield name, f'Invalid value: "{go_duration(seconds)}": must not be negative'


@dataclass(frozen=True, slots=True)
class ObjectRetentionPolicies:
    workloads: WorkloadRetention = WorkloadRetention()


@dataclass(frozen=True, slots=True)
class MetricsOptions:
    enable_cluster_queue_resources: bool = False
    bind_address: str = ""
    custom_labels: Any = None


def _all_but_system(namespace: str) -> LabelSelector:
    unwanted = LabelSelectorRequirement(
        key="kubernetes.io/metadata.name", operator="NotIn", values=("kube-system", namespace)
    )
    return LabelSelector(match_expressions=(unwanted,))


@dataclass(frozen=True, slots=True)
class QueueingConfiguration:
    """What an administrator configures; read once at the start."""

    namespace: str = "kueue-system"
    manage_jobs_without_queue_name: bool = False
    managed_jobs_namespace_selector: LabelSelector | None = None
    wait_for_pods_ready: WaitForPodsReady | None = WaitForPodsReady()
    """None: off."""
    integrations: Integrations = Integrations()
    fair_sharing: FairSharingSettings | None = None
    admission_fair_sharing: AdmissionFairSharing | None = None
    """None: off."""
    resources: ResourceSettings = ResourceSettings()
    object_retention_policies: ObjectRetentionPolicies = ObjectRetentionPolicies()
    metrics: MetricsOptions = MetricsOptions()
    feature_gates: Mapping[str, bool] = field(default_factory=dict)

    @property
    def admitted_frameworks(self) -> frozenset[str]:
        """The integrations whose objects must not start by themselves when they name a queue."""
        return FRAMEWORKS & frozenset(self.integrations.frameworks)

    def manages_namespace(self, labels: Mapping[str, str]) -> bool:
        """Whether jobs without a queue label are managed in a namespace with these labels."""
        if not self.manage_jobs_without_queue_name:
            return False
        selector = self.managed_jobs_namespace_selector
        return (_all_but_system(self.namespace) if selector is None else selector).matches(labels)
