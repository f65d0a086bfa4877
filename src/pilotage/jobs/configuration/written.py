"""The fields of a `Configuration` as they are written in a file, and the effective values that they mean.

None is what was not given. Two defaults depend on the version: in v1beta2 waiting for readiness is on unless it is
switched off, for 30 minutes; in v1beta1 it is off unless `enable: true`, for 5 minutes, and then blocks admission.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pilotage.config.kinds import Problems
from pilotage.jobs.configuration.kinds import (
    DEFAULT_TIMEOUT_SECONDS,
    OLDER_API_VERSION,
    OLDER_DEFAULT_TIMEOUT_SECONDS,
    PREEMPTION_STRATEGIES,
    AdmissionFairSharing,
    FairSharingSettings,
    Integrations,
    MetricsOptions,
    ObjectRetentionPolicies,
    PreemptionStrategy,
    QueueingConfiguration,
    RequeuingStrategy,
    RequeuingTimestamp,
    ResourceSettings,
    WaitForPodsReady,
)
from pilotage.model.durations import Duration
from pilotage.model.selectors import LabelSelector

_GATE_THAT_SWITCHES_OFF: Final = "DisableWaitForPodsReady"
_GATE_OF_SHARES: Final = "AdmissionFairSharing"
_DEFAULTS: Final = QueueingConfiguration()


@dataclass(frozen=True, slots=True)
class _Requeuing:
    timestamp: RequeuingTimestamp | None = None
    backoff_limit_count: int | None = None
    backoff_base_seconds: int | None = None
    backoff_max_seconds: int | None = None

    def effective(self, draft: RequeuingTimestamp | None) -> RequeuingStrategy:
        given = {name: value for name, value in dataclasses.asdict(self).items() if value is not None}
        if draft is not None:
            given.setdefault("timestamp", draft)
        return RequeuingStrategy(**given)


@dataclass(frozen=True, slots=True)
class _Readiness:
    enable: bool | None = None
    timeout: Duration | None = None
    recovery_timeout: Duration | None = None
    block_admission: bool | None = None
    requeuing_strategy: _Requeuing = _Requeuing()
    requeuing_timestamp: RequeuingTimestamp | None = None

    def effective(self, is_older: bool) -> WaitForPodsReady:
        default = OLDER_DEFAULT_TIMEOUT_SECONDS if is_older else DEFAULT_TIMEOUT_SECONDS
        return WaitForPodsReady(
            timeout=self.timeout or default,
            recovery_timeout=self.recovery_timeout,
            block_admission=is_older if self.block_admission is None else self.block_admission,
            requeuing_strategy=self.requeuing_strategy.effective(self.requeuing_timestamp),
        )

    def problems(self) -> Problems:
        yield from self.effective(is_older=False).problems()
        timestamp = self.requeuing_strategy.timestamp
        if self.requeuing_timestamp is not None and timestamp not in (None, self.requeuing_timestamp):
            yield (
                "requeuingTimestamp",
                f'Invalid value: "{self.requeuing_timestamp}": requeuingStrategy.timestamp says "{timestamp}"; '
                f"keep that one and remove this",
            )


@dataclass(frozen=True, slots=True)
class _FairSharing:
    enable: bool = True
    preemption_strategies: tuple[PreemptionStrategy, ...] = PREEMPTION_STRATEGIES

    def effective(self) -> FairSharingSettings | None:
        return FairSharingSettings(self.preemption_strategies or PREEMPTION_STRATEGIES) if self.enable else None


@dataclass(frozen=True, slots=True)
class WrittenConfiguration:
    api_version: str = ""
    kind: str = ""
    namespace: str = _DEFAULTS.namespace
    manage_jobs_without_queue_name: bool = False
    managed_jobs_namespace_selector: LabelSelector | None = None
    wait_for_pods_ready: _Readiness | None = None
    integrations: Integrations = _DEFAULTS.integrations
    fair_sharing: _FairSharing | None = None
    admission_fair_sharing: AdmissionFairSharing | None = None
    resources: ResourceSettings = _DEFAULTS.resources
    object_retention_policies: ObjectRetentionPolicies = _DEFAULTS.object_retention_policies
    metrics: MetricsOptions = _DEFAULTS.metrics
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    # Only Kueue's own manager has a use for these.
    metadata: Any = None
    health: Any = None
    webhook: Any = None
    leader_election: Any = None
    controller: Any = None
    cache_sync_period: Any = None
    graceful_shutdown_timeout: Any = None
    pprof_bind_address: Any = None
    client_connection: Any = None
    internal_cert_management: Any = None
    multi_kueue: Any = None
    queue_visibility: Any = None

    def problems(self) -> Problems:
        selector = self.managed_jobs_namespace_selector
        if selector is not None and (problem := selector.problem()) is not None:
            yield "managedJobsNamespaceSelector", f"Invalid value: {problem}"
        parts = {
            "waitForPodsReady": self.wait_for_pods_ready,
            "admissionFairSharing": self.admission_fair_sharing,
            "fairSharing": None if self.fair_sharing is None else self.fair_sharing.effective(),
            "integrations": self.integrations,
            "resources": self.resources,
            "objectRetentionPolicies.workloads": self.object_retention_policies.workloads,
        }
        for name, part in parts.items():
            for path, message in part.problems() if part is not None else ():
                yield f"{name}.{path}", message

    def effective(self) -> QueueingConfiguration:
        return QueueingConfiguration(
            namespace=self.namespace,
            manage_jobs_without_queue_name=self.manage_jobs_without_queue_name,
            managed_jobs_namespace_selector=self.managed_jobs_namespace_selector,
            wait_for_pods_ready=self._readiness(),
            integrations=self.integrations,
            fair_sharing=self.fair_sharing.effective() if self.fair_sharing is not None else None,
            admission_fair_sharing=self._admission_sharing(),
            resources=self.resources,
            object_retention_policies=self.object_retention_policies,
            metrics=self.metrics,
            feature_gates=self.feature_gates,
        )

    def _admission_sharing(self) -> AdmissionFairSharing | None:
        return self.admission_fair_sharing if self.feature_gates.get(_GATE_OF_SHARES, True) else None

    def _readiness(self) -> WaitForPodsReady | None:
        is_older = self.api_version == OLDER_API_VERSION
        given = self.wait_for_pods_ready or _Readiness()
        is_on = not is_older if given.enable is None else given.enable
        if not is_on or self.feature_gates.get(_GATE_THAT_SWITCHES_OFF):
            return None
        return given.effective(is_older)
