"""The table of kinds that every sandbox serves, one row each.

The rows say what discovery lists (names, short names, categories, subresources) and what the server needs to
know: whether a change of spec raises `metadata.generation`, and whether a delete answers with the deleted object.
"""

from __future__ import annotations

from typing import Any, Final

from pilotage.sandbox.kinds.kueue_schemas import kueue_schema
from pilotage.sandbox.kinds.resources import ResourceRegistry, ResourceType
from pilotage.sandbox.kinds.structural_schema import ObjectRules

_CREATE_ONLY: Final = ("create",)
_SCALABLE: Final = ("scale", "status")


def builtin_registry() -> ResourceRegistry:
    """A registry of its own for one server."""
    return ResourceRegistry(BUILTIN_TYPES)


def _kind(group_version: str, kind: str, plural: str, short_names: str = "", **options: Any) -> ResourceType:
    group, _, version = group_version.rpartition("/")
    options.setdefault("namespaced", True)
    names = tuple(short_names.split())
    return ResourceType(group, version, plural, kind.lower(), kind, short_names=names, **options)


_ALL: Final[dict[str, Any]] = {"categories": ("all",)}
_STATUS: Final[dict[str, Any]] = {"subresources": ("status",)}
_GENERATION: Final[dict[str, Any]] = {"tracks_generation": True}
_CLUSTER: Final[dict[str, Any]] = {"namespaced": False}
_WORKLOAD: Final[dict[str, Any]] = {**_ALL, **_GENERATION, "subresources": _SCALABLE}
_ECHO: Final[dict[str, Any]] = {"returns_deleted": True}
_NO_NETWORK: Final[dict[str, Any]] = {"no_effect": "there is no network"}
_FLOWS: Final[dict[str, Any]] = {
    **_CLUSTER,
    **_GENERATION,
    **_STATUS,
    "no_effect": "requests are not queued by priority",
}
_SCALER: Final[dict[str, Any]] = {**_ALL, **_STATUS, "no_effect": "there are no metrics to scale by"}
_ONE_RANGE: Final = "addresses of Services come from one range"
_KUEUE: Final[dict[str, Any]] = {**_GENERATION, **_STATUS, "is_custom": True, "categories": ("kueue",)}
_POD_SUBRESOURCES: Final = (
    "attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize", "status",
)  # fmt: skip


def _in_both_versions(kind: str, plural: str, **options: Any) -> tuple[ResourceType, ResourceType]:
    """Kinds of pod groups are stored as v1beta1 and served with the same fields as v1alpha3 too."""
    stored = _kind("scheduling.k8s.io/v1beta1", kind, plural, **options)
    return stored, _kind("scheduling.k8s.io/v1alpha3", kind, plural, storage_api_version=stored.api_version, **options)


_CORE: Final = (
    _kind("v1", "Binding", "bindings", verbs=_CREATE_ONLY),
    _kind("v1", "ConfigMap", "configmaps", "cm"),
    _kind("v1", "Endpoints", "endpoints", "ep"),
    _kind("v1", "Event", "events", "ev"),
    _kind("v1", "LimitRange", "limitranges", "limits"),
    _kind("v1", "Namespace", "namespaces", "ns", namespaced=False, subresources=("finalize", "status")),
    _kind("v1", "Node", "nodes", "no", **_CLUSTER, **_STATUS),
    _kind("v1", "PersistentVolume", "persistentvolumes", "pv", **_CLUSTER, **_STATUS, **_ECHO),
    _kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", **_STATUS, **_ECHO),
    _kind("v1", "Pod", "pods", "po", **_ALL, **_GENERATION, **_ECHO, subresources=_POD_SUBRESOURCES),
    _kind("v1", "PodTemplate", "podtemplates", **_GENERATION, **_ECHO),
    _kind("v1", "ReplicationController", "replicationcontrollers", "rc", **_WORKLOAD),
    _kind("v1", "ResourceQuota", "resourcequotas", "quota", **_STATUS, **_ECHO),
    _kind("v1", "Secret", "secrets"),
    _kind("v1", "Service", "services", "svc", **_ALL, **_STATUS, **_ECHO),
    _kind("v1", "ServiceAccount", "serviceaccounts", "sa", **_ECHO, subresources=("token",)),
)

_APPS: Final = (
    _kind("apps/v1", "ControllerRevision", "controllerrevisions"),
    _kind("apps/v1", "DaemonSet", "daemonsets", "ds", **_ALL, **_GENERATION, **_STATUS),
    _kind("apps/v1", "Deployment", "deployments", "deploy", **_WORKLOAD),
    _kind("apps/v1", "ReplicaSet", "replicasets", "rs", **_WORKLOAD),
    _kind("apps/v1", "StatefulSet", "statefulsets", "sts", **_WORKLOAD),
)

_BATCH_AND_POLICY: Final = (
    _kind("batch/v1", "CronJob", "cronjobs", "cj", **_ALL, **_GENERATION, **_STATUS),
    _kind("batch/v1", "Job", "jobs", **_ALL, **_GENERATION, **_STATUS),
    _kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", **_GENERATION, **_STATUS),
    _kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", "pc", **_CLUSTER, **_GENERATION),
    *_in_both_versions("PodGroup", "podgroups", **_GENERATION, **_STATUS),
    *_in_both_versions("Workload", "workloads", **_GENERATION),
)

_STORAGE: Final = (
    _kind("storage.k8s.io/v1", "CSIDriver", "csidrivers", **_CLUSTER, **_GENERATION, **_ECHO),
    _kind("storage.k8s.io/v1", "CSINode", "csinodes", **_CLUSTER, **_ECHO),
    _kind("storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities"),
    _kind("storage.k8s.io/v1", "StorageClass", "storageclasses", "sc", **_CLUSTER, **_ECHO),
    _kind("storage.k8s.io/v1", "VolumeAttachment", "volumeattachments", **_CLUSTER, **_STATUS, **_ECHO),
    _kind("storage.k8s.io/v1", "VolumeAttributesClass", "volumeattributesclasses", "vac", **_CLUSTER, **_ECHO),
)

_DEVICES: Final = (
    _kind("resource.k8s.io/v1", "DeviceClass", "deviceclasses", **_CLUSTER, **_GENERATION, **_ECHO),
    _kind("resource.k8s.io/v1", "DeviceTaintRule", "devicetaintrules", **_CLUSTER, **_GENERATION, **_STATUS),
    _kind("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", **_STATUS, **_ECHO),
    _kind("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates", **_ECHO),
    _kind("resource.k8s.io/v1", "ResourceSlice", "resourceslices", **_CLUSTER, **_GENERATION, **_ECHO),
)

_MACHINERY: Final = (
    _kind(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "crd crds",
        **_CLUSTER,
        **_GENERATION,
        **_STATUS,
        categories=("api-extensions",),
    ),
    _kind(
        "apiregistration.k8s.io/v1",
        "APIService",
        "apiservices",
        **_CLUSTER,
        **_STATUS,
        categories=("api-extensions",),
        no_effect="requests are not passed on to other API servers",
    ),
    _kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", **_SCALER),
    _kind(
        "autoscaling/v1",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "hpa",
        storage_api_version="autoscaling/v2",
        **_SCALER,
    ),
    _kind("coordination.k8s.io/v1", "Lease", "leases"),
    _kind(
        "certificates.k8s.io/v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        "csr",
        **_CLUSTER,
        subresources=("approval", "status"),
        no_effect="no signer issues certificates here",
    ),
    _kind("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "flowschemas", **_FLOWS),
    _kind("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", "prioritylevelconfigurations", **_FLOWS),
    _kind("networking.k8s.io/v1", "Ingress", "ingresses", "ing", **_GENERATION, **_STATUS, **_NO_NETWORK),
    _kind("networking.k8s.io/v1", "IngressClass", "ingressclasses", **_CLUSTER, **_GENERATION, **_NO_NETWORK),
    _kind("networking.k8s.io/v1", "IPAddress", "ipaddresses", "ip", **_CLUSTER, no_effect=_ONE_RANGE),
    _kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", "netpol", **_GENERATION, **_NO_NETWORK),
    _kind("networking.k8s.io/v1", "ServiceCIDR", "servicecidrs", **_CLUSTER, **_STATUS, no_effect=_ONE_RANGE),
    _kind("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", **_CLUSTER),
    _kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", **_GENERATION),
    _kind("events.k8s.io/v1", "Event", "events", "ev", storage="events", storage_api_version="v1"),
    _kind(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        **_CLUSTER,
        **_GENERATION,
        **_STATUS,
    ),
    _kind(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        **_CLUSTER,
        **_GENERATION,
    ),
    _kind(
        "admissionregistration.k8s.io/v1",
        "MutatingAdmissionPolicy",
        "mutatingadmissionpolicies",
        **_CLUSTER,
        **_GENERATION,
    ),
    _kind(
        "admissionregistration.k8s.io/v1",
        "MutatingAdmissionPolicyBinding",
        "mutatingadmissionpolicybindings",
        **_CLUSTER,
        **_GENERATION,
    ),
    _kind(
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        **_CLUSTER,
        **_GENERATION,
    ),
    _kind(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        **_CLUSTER,
        **_GENERATION,
    ),
    # Stored, so that manifests can be applied; who has the sandbox's token may do everything.
    _kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", **_CLUSTER),
    _kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", **_CLUSTER),
    _kind("rbac.authorization.k8s.io/v1", "Role", "roles"),
    _kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
    _kind("authentication.k8s.io/v1", "TokenReview", "tokenreviews", **_CLUSTER, verbs=_CREATE_ONLY),
    _kind("authentication.k8s.io/v1", "SelfSubjectReview", "selfsubjectreviews", **_CLUSTER, verbs=_CREATE_ONLY),
    _kind("authorization.k8s.io/v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", verbs=_CREATE_ONLY),
    _kind(
        "authorization.k8s.io/v1",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        **_CLUSTER,
        verbs=_CREATE_ONLY,
    ),
    _kind(
        "authorization.k8s.io/v1",
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
        **_CLUSTER,
        verbs=_CREATE_ONLY,
    ),
    _kind("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", **_CLUSTER, verbs=_CREATE_ONLY),
)


def _kueue(kind: str, plural: str, short_names: str = "", **options: Any) -> tuple[ResourceType, ...]:
    """Kueue's kinds are stored as v1beta2 and served as v1beta1 too."""
    schema = kueue_schema(kind)
    rules = {"schema": schema, "rules": ObjectRules(schema)}
    stored = _kind("kueue.x-k8s.io/v1beta2", kind, plural, short_names, **rules, **options)
    older = _kind(
        "kueue.x-k8s.io/v1beta1", kind, plural, short_names, storage_api_version=stored.api_version, **options
    )
    return stored, older


_KUEUE_KINDS: Final = (
    *_kueue("AdmissionCheck", "admissionchecks", "ac", **_CLUSTER, **_KUEUE),
    *_kueue("ClusterQueue", "clusterqueues", "cq", **_CLUSTER, **_KUEUE),
    *_kueue("Cohort", "cohorts", "co", **_CLUSTER, **_KUEUE),
    *_kueue("LocalQueue", "localqueues", "queue lq", **_KUEUE),
    *_kueue("ResourceFlavor", "resourceflavors", "flavor rf", **_CLUSTER, **{**_KUEUE, "subresources": ()}),
    *_kueue("Workload", "workloads", "kwl", **_KUEUE),
    *_kueue("WorkloadPriorityClass", "workloadpriorityclasses", "wpc", **_CLUSTER, **{**_KUEUE, "subresources": ()}),
)

BUILTIN_TYPES: Final[tuple[ResourceType, ...]] = (
    *_CORE,
    *_APPS,
    *_BATCH_AND_POLICY,
    *_STORAGE,
    *_DEVICES,
    *_MACHINERY,
    *_KUEUE_KINDS,
)
