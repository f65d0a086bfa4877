"""What a Configuration may ask for that is not served here: said at `pilotage config check`, and at the start.

A file that was written for Kueue is still read: nothing in it stops the process, nothing in it is ignored in silence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pilotage.config.kinds import Problems
from pilotage.jobs.adapters.kinds.generic import is_kind_name
from pilotage.jobs.adapters.kinds.registry import JobKinds
from pilotage.jobs.configuration.kinds import KNOWN_FRAMEWORKS
from pilotage.jobs.configuration.written import WrittenConfiguration
from pilotage.model.suggestions import suggestion

_SWITCHED: Final = frozenset(
    {
        "AdmissionFairSharing",
        "DisableWaitForPodsReady",
        "LocalQueueDefaulting",
        "PrioritySortingWithinCohort",
        "WorkloadPriorityClassDefaulting",
    }
)
"""Gates that do here what they do there."""
_ALWAYS_ON: Final = frozenset(
    {
        "ConfigurableResourceTransformations",
        "FlavorFungibility",
        "HierarchicalCohorts",
        "LendingLimit",
        "LocalQueueMetrics",
        "ObjectRetentionPolicies",
        "PartialAdmission",
        "ReclaimablePods",
        "SparkApplicationIntegration",
        "TopologyAwareScheduling",
        "VisibilityOnDemand",
        "WorkloadRequestUseMergePatch",
    }
)
_NEVER_ON: Final = frozenset(
    {
        "ConcurrentAdmission",
        "DynamicResourceAllocation",
        "ElasticJobsViaWorkloadSlices",
        "FailureRecoveryPolicy",
        "FlavorFungibilityImplicitPreferenceDefault",
        "ManagedJobsNamespaceSelectorAlwaysRespected",
        "MultiKueue",
        "MultiKueueAdaptersForCustomJobs",
        "MultiKueueAllowInsecureKubeconfigs",
        "MultiKueueBatchJobWithManagedBy",
        "MultiKueueClusterProfile",
        "PropagateBatchJobLabelsToWorkload",
        "SanitizePodSets",
        "TASBalancedPlacement",
        "TASFailedNodeReplacement",
        "TASFailedNodeReplacementFailFast",
        "TASProfileLeastFreeCapacity",
        "TASProfileMixed",
        "TASReplaceNodeOnPodTermination",
    }
)

_RAY_SERVICE: Final = "ray.io/rayservice"
OF_THE_MANAGER: Final = (
    "health",
    "webhook",
    "leader_election",
    "controller",
    "cache_sync_period",
    "graceful_shutdown_timeout",
    "pprof_bind_address",
    "client_connection",
    "internal_cert_management",
    "queue_visibility",
)
"""Fields that say how Kueue's own process runs; ours has flags for that."""


def unserved(written: WrittenConfiguration) -> Problems:
    """Path and sentence of everything that is asked for and not served."""
    yield from _integrations(written)
    yield from _gates(written)
    if written.multi_kueue is not None:
        yield "multiKueue", "not supported: workloads are not sent to other clusters"
    if written.resources.device_class_mappings:
        yield "resources.deviceClassMappings", "not supported: claims for devices do not count against quota"
    if written.metrics.custom_labels:
        yield "metrics.customLabels", "not supported: metrics have the labels that they have"


def _integrations(written: WrittenConfiguration) -> Iterator[tuple[str, str]]:
    integrations = written.integrations
    for index, name in enumerate(integrations.frameworks):
        if name == _RAY_SERVICE:
            text = f'not needed: "{name}": its RayClusters are queued, as integration "ray.io/raycluster"'
            yield f"integrations.frameworks[{index}]", text
        elif name not in KNOWN_FRAMEWORKS:
            served = ", ".join(KNOWN_FRAMEWORKS)
            near = suggestion(name, KNOWN_FRAMEWORKS)
            yield (
                f"integrations.frameworks[{index}]",
                f'not supported: "{name}"{near}: jobs of it are not queued ({served})',
            )
    known = JobKinds()
    for index, name in enumerate(integrations.external_frameworks):
        path = f"integrations.externalFrameworks[{index}]"
        if not is_kind_name(name):
            yield path, f'not supported: "{name}": write Kind.version.group, such as Workflow.v1alpha1.example.com'
        elif name.partition(".")[0] in known:
            yield path, f'not supported: "{name}": a kind of that name is built in, see integrations.frameworks'
    if integrations.pod_options is not None:
        yield "integrations.podOptions", "not supported: pods are queued by their label alone, in every namespace"


def _gates(written: WrittenConfiguration) -> Iterator[tuple[str, str]]:
    for name, is_on in written.feature_gates.items():
        path = f"featureGates.{name}"
        if name in _ALWAYS_ON and not is_on:
            yield path, "not supported: it is always on here"
        elif name in _NEVER_ON and is_on:
            yield path, "not supported: it is always off here"
        elif name not in _SWITCHED | _ALWAYS_ON | _NEVER_ON:
            near = suggestion(name, sorted(_SWITCHED | _ALWAYS_ON | _NEVER_ON))
            yield path, f"not supported: a gate of this name is not known{near}"
