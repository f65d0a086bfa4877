"""What older versions of the configuration had, and what to write now."""

from __future__ import annotations

from typing import Final

API_GROUP: Final = "kubescheduler.config.k8s.io"
API_VERSION: Final = f"{API_GROUP}/v1"
OLD_VERSIONS: Final = frozenset(
    f"{API_GROUP}/{version}" for version in ("v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v1beta3")
) | {"componentconfig/v1alpha1"}

REMOVED_PLUGINS: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
"""Removed by kube-scheduler within v1: it rejects them by name."""

_MERGED: Final = "merged into GenericWorkload in 1.37; write that alone"
GATES: Final = {"GangScheduling": _MERGED, "WorkloadAwarePreemption": _MERGED}

_SCORING: Final = "use NodeResourcesFit and set scoringStrategy.type in its pluginConfig args to"
PLUGINS: Final = {
    "NodeResourcesLeastAllocated": f"{_SCORING} LeastAllocated",
    "NodeResourcesMostAllocated": f"{_SCORING} MostAllocated",
    "RequestedToCapacityRatio": f"{_SCORING} RequestedToCapacityRatio",
    "NodePreferAvoidPods": "it no longer exists; remove it",
    "NodeLabel": "use NodeAffinity, with addedAffinity in its pluginConfig args",
    "ServiceAffinity": "use InterPodAffinity",
    "SelectorSpread": "use PodTopologySpread",
    "DefaultPodTopologySpread": "use PodTopologySpread",
    "VolumeSchedulingDecision": "use VolumeBinding",
    **dict.fromkeys(sorted(REMOVED_PLUGINS), "use NodeVolumeLimits"),
}

_ARGS: Final = "give it in profiles[].pluginConfig as"
FIELDS: Final = {
    "healthzBindAddress": "removed in v1; remove it",
    "metricsBindAddress": "removed in v1; remove it",
    "schedulerName": "moved in v1: write profiles: [{schedulerName: ...}]",
    "algorithmSource": "removed in v1: say with profiles[].plugins which plugins are enabled and disabled",
    "hardPodAffinitySymmetricWeight": f"moved in v1: {_ARGS} hardPodAffinityWeight of InterPodAffinity",
    "bindTimeoutSeconds": f"moved in v1: {_ARGS} bindTimeoutSeconds of VolumeBinding",
    "disablePreemption": "removed in v1: disable the plugin DefaultPreemption in profiles[].plugins.postFilter",
    "leaderElection.lockObjectName": "renamed in v1: write resourceName",
    "leaderElection.lockObjectNamespace": "renamed in v1: write resourceNamespace",
}


def version_problem(version: str) -> str | None:
    """Why this API version cannot be read, with what to change; None if it is the current one."""
    if version == API_VERSION:
        return None
    if version in OLD_VERSIONS:
        return (
            f'Unsupported value: "{version}": this version no longer exists; write "{API_VERSION}" '
            f"and change the fields and plugins named below, if any"
        )
    return f'Unsupported value: "{version}": supported values: "{API_VERSION}"'
