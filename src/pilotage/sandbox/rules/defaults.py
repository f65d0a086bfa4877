"""What the API server fills in when a client leaves a field out.

`apply_defaults` changes the object in place, before admission and validation, on creation and on every update. It must
therefore be idempotent, and it never raises: a value of the wrong type is left alone for validation to name. Defaults
of pods and Jobs have files of their own; here is the table of all kinds and the small ones.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

from pilotage.sandbox.kinds.builtin_groups import KUEUE_GROUP, group_of, is_builtin
from pilotage.sandbox.rules.job_defaults import default_cron_job, default_job
from pilotage.sandbox.rules.json_fields import Json, child, dict_or_empty, dicts_in, fill, nested, text_or_empty
from pilotage.sandbox.rules.nulls import drop_empties, drop_empty_metadata, drop_nulls
from pilotage.sandbox.rules.pod_defaults import default_pod, default_pod_spec

_OF_TEMPLATES: Final = ("labels", "annotations")
# In these, null is part of an embedded document.
_KEEPS_NULLS: Final = frozenset({"CustomResourceDefinition", "ControllerRevision"})
_NO_COMPOSITE: Final = "groups of pod groups (CompositePodGroup) are not served"
_IGNORED: Final[Mapping[str, Mapping[str, str]]] = {
    "PodGroup": {"parentCompositePodGroupName": _NO_COMPOSITE},
    "Workload": {"compositePodGroupTemplates": _NO_COMPOSITE},
    "Pod": {"workloadRef": "of Kubernetes 1.35; name the PodGroup in spec.schedulingGroup.podGroupName instead"},
    "Job": {"scheduling": "the pods of the Job name a group of their own"},
}


def apply_defaults(kind: str, obj: Json) -> None:
    """Fill in the defaults of the kind; kinds without defaults are left as they are."""
    if is_builtin(obj):
        if kind not in _KEEPS_NULLS:
            drop_nulls(obj)
            drop_empties(text_or_empty(obj.get("apiVersion")) or "v1", kind, obj)
        default = _DEFAULTS.get(kind)
        if default is not None:
            default(obj)
        return
    if type(obj.get("metadata")) is dict:
        drop_nulls(obj["metadata"])
        drop_empty_metadata(obj["metadata"])
    if group_of(str(obj.get("apiVersion"))) == KUEUE_GROUP:
        drop_nulls(obj)
        if kind == "Workload":
            _prune_templates(obj)


def ignored_fields(kind: str, obj: Json) -> list[str]:
    """A warning for each field that has no effect here, as it belongs to a feature that this server has not.

    A Kubernetes API server without its feature gate drops it in silence.
    """
    spec, ignored = obj.get("spec"), _IGNORED.get(kind)
    if ignored is None or type(spec) is not dict:
        return []
    found = [field for field in ignored if spec.get(field) is not None]
    if not found or not is_builtin(obj):
        return []
    if kind == "Job" and nested(spec, "template", "spec", "schedulingGroup") is None:
        return []
    return [f"spec.{field}: ignored: {ignored[field]}" for field in found]


def _prune_templates(workload: Json) -> None:
    """Its definition knows labels and annotations of templates alone, so that a real API server drops the rest."""
    for pod_set in dicts_in(dict_or_empty(workload.get("spec")), "podSets"):
        template = dict_or_empty(pod_set.get("template"))
        if type(template.get("metadata")) is dict:
            kept = {field: value for field, value in template["metadata"].items() if field in _OF_TEMPLATES}
            template["metadata"] = kept


def _default_template(parent: Any) -> None:
    spec = nested(parent, "template", "spec")
    if type(spec) is dict:
        default_pod_spec(spec)


def _default_deployment(obj: Json) -> None:
    spec = dict_or_empty(obj.get("spec"))
    fill(spec, (("replicas", 1), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)))
    strategy = child(spec, "strategy")
    fill(strategy, (("type", "RollingUpdate"),))
    if strategy["type"] == "RollingUpdate":
        fill(child(strategy, "rollingUpdate"), (("maxUnavailable", "25%"), ("maxSurge", "25%")))
    _default_template(spec)


def _default_replica_set(obj: Json) -> None:
    spec = dict_or_empty(obj.get("spec"))
    fill(spec, (("replicas", 1),))
    _default_template(spec)


def _default_replication_controller(obj: Json) -> None:
    _default_replica_set(obj)
    spec = dict_or_empty(obj.get("spec"))
    labels = nested(spec, "template", "metadata", "labels")
    if not labels or type(labels) is not dict:
        return
    if not spec.get("selector"):
        spec["selector"] = dict(labels)
    metadata = child(obj, "metadata")
    if not metadata.get("labels"):
        metadata["labels"] = dict(labels)


def _default_stateful_set(obj: Json) -> None:
    spec = dict_or_empty(obj.get("spec"))
    fill(spec, (("replicas", 1), ("podManagementPolicy", "OrderedReady"), ("revisionHistoryLimit", 10)))
    strategy = child(spec, "updateStrategy")
    fill(strategy, (("type", "RollingUpdate"),))
    if strategy["type"] == "RollingUpdate":
        fill(child(strategy, "rollingUpdate"), (("partition", 0),))
    fill(child(spec, "persistentVolumeClaimRetentionPolicy"), (("whenDeleted", "Retain"), ("whenScaled", "Retain")))
    for claim in dicts_in(spec, "volumeClaimTemplates"):
        fill(claim, (("apiVersion", "v1"), ("kind", "PersistentVolumeClaim")))
        _default_claim(claim)
    _default_template(spec)


def _default_daemon_set(obj: Json) -> None:
    spec = dict_or_empty(obj.get("spec"))
    fill(spec, (("revisionHistoryLimit", 10),))
    strategy = child(spec, "updateStrategy")
    fill(strategy, (("type", "RollingUpdate"),))
    if strategy["type"] == "RollingUpdate":
        fill(child(strategy, "rollingUpdate"), (("maxUnavailable", 1), ("maxSurge", 0)))
    _default_template(spec)


def _default_service(obj: Json) -> None:
    spec = dict_or_empty(obj.get("spec"))
    fill(spec, (("type", "ClusterIP"), ("sessionAffinity", "None")))
    if spec.get("sessionAffinity") == "ClientIP":
        fill(child(child(spec, "sessionAffinityConfig"), "clientIP"), (("timeoutSeconds", 10800),))
    for port in dicts_in(spec, "ports"):
        fill(port, (("protocol", "TCP"),))
        if not port.get("targetPort") and "port" in port:
            port["targetPort"] = port["port"]
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        fill(spec, (("externalTrafficPolicy", "Cluster"),))
    if spec.get("type") == "LoadBalancer":
        fill(spec, (("allocateLoadBalancerNodePorts", True),))
    if spec.get("type") != "ExternalName":
        fill(spec, (("internalTrafficPolicy", "Cluster"),))
    child(child(obj, "status"), "loadBalancer")


def _default_claim(obj: Json) -> None:
    if type(obj.get("spec")) is dict:
        fill(obj["spec"], (("volumeMode", "Filesystem"),))
    fill(child(obj, "status"), (("phase", "Pending"),))


def _default_volume(obj: Json) -> None:
    if type(obj.get("spec")) is dict:
        fill(obj["spec"], (("persistentVolumeReclaimPolicy", "Retain"), ("volumeMode", "Filesystem")))
        if type(obj["spec"].get("hostPath")) is dict:
            fill(obj["spec"]["hostPath"], (("type", ""),))
    fill(child(obj, "status"), (("phase", "Pending"),))


def _default_storage_class(obj: Json) -> None:
    fill(obj, (("reclaimPolicy", "Delete"), ("volumeBindingMode", "Immediate")))


def _default_csi_driver(obj: Json) -> None:
    spec = child(obj, "spec")
    fill(
        spec,
        (
            ("attachRequired", True),
            ("podInfoOnMount", False),
            ("storageCapacity", False),
            ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
            ("requiresRepublish", False),
            ("seLinuxMount", False),
        ),
    )
    if spec.get("volumeLifecycleModes") is None:
        spec["volumeLifecycleModes"] = ["Persistent"]


def _default_priority_class(obj: Json) -> None:
    fill(obj, (("preemptionPolicy", "PreemptLowerPriority"),))


def _default_limit_range(obj: Json) -> None:
    """Of containers: what is not limited by default is limited by the maximum, what is not requested is the limit."""
    for item in dicts_in(obj.get("spec"), "limits"):
        if item.get("type") == "Container":
            most, least = dict_or_empty(item.get("max")), dict_or_empty(item.get("min"))
            limits = {**most, **dict_or_empty(item.get("default"))}
            requests = {**least, **limits, **dict_or_empty(item.get("defaultRequest"))}
            item |= {"default": limits} if limits else {}
            item |= {"defaultRequest": requests} if requests else {}


def _default_pod_group(obj: Json) -> None:
    """Groups of groups are not served: what is about them is dropped, as without the feature gate."""
    spec = dict_or_empty(obj.get("spec"))
    spec.pop("parentCompositePodGroupName", None)
    if spec:
        _default_group(spec)


def _default_workload(obj: Json) -> None:
    spec = dict_or_empty(obj.get("spec"))
    spec.pop("compositePodGroupTemplates", None)
    for template in dicts_in(spec, "podGroupTemplates"):
        _default_group(template)


def _default_group(fields: Json) -> None:
    if fields.get("disruptionMode") is None:
        fields["disruptionMode"] = {"single": {}}


def _default_namespace(obj: Json) -> None:
    metadata = child(obj, "metadata")
    if isinstance(metadata.get("name"), str):
        fill(child(metadata, "labels"), (("kubernetes.io/metadata.name", metadata["name"]),))
    fill(child(obj, "status"), (("phase", "Active"),))


def _default_node(obj: Json) -> None:
    status = dict_or_empty(obj.get("status"))
    if status.get("allocatable") is None and type(status.get("capacity")) is dict:
        status["allocatable"] = dict(status["capacity"])


def _default_secret(obj: Json) -> None:
    fill(obj, (("type", "Opaque"),))
    plain = obj.get("stringData")
    if type(plain) is dict and all(isinstance(text, str) for text in plain.values()):
        child(obj, "data").update({key: base64.b64encode(text.encode()).decode() for key, text in plain.items()})
        del obj["stringData"]


def _default_device_requests(claim_spec: Any) -> None:
    for request in dicts_in(dict_or_empty(claim_spec).get("devices"), "requests"):
        exactly = request.get("exactly")
        for choice in [*dicts_in(request, "firstAvailable"), *([exactly] if type(exactly) is dict else [])]:
            fill(choice, (("allocationMode", "ExactCount"),))
            if choice["allocationMode"] == "ExactCount":
                fill(choice, (("count", 1),))
            for toleration in dicts_in(choice, "tolerations"):
                fill(toleration, (("operator", "Equal"),))


def _default_resource_claim(obj: Json) -> None:
    _default_device_requests(obj.get("spec"))


def _default_resource_claim_template(obj: Json) -> None:
    _default_device_requests(nested(obj, "spec", "spec"))


def _default_endpoint_slice(obj: Json) -> None:
    for port in dicts_in(obj, "ports"):
        fill(port, (("name", ""), ("protocol", "TCP")))


def _default_definition(obj: Json) -> None:
    spec = dict_or_empty(obj.get("spec"))
    names = dict_or_empty(spec.get("names"))
    if isinstance(names.get("kind"), str):
        fill(names, (("singular", names["kind"].lower()), ("listKind", f"{names['kind']}List")))
    if spec:
        fill(child(spec, "conversion"), (("strategy", "None"),))


def _default_flow_schema(obj: Json) -> None:
    if type(obj.get("spec")) is dict:
        fill(obj["spec"], (("matchingPrecedence", 1000),))


def _default_priority_level(obj: Json) -> None:
    spec = dict_or_empty(obj.get("spec"))
    match spec.get("type"):
        case "Limited":
            limited = child(spec, "limited")
            fill(limited, (("nominalConcurrencyShares", 30), ("lendablePercent", 0)))
            response = child(limited, "limitResponse")
            if response.get("type") == "Queue":
                fill(child(response, "queuing"), (("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)))
        case "Exempt":
            fill(child(spec, "exempt"), (("nominalConcurrencyShares", 0), ("lendablePercent", 0)))


def _default_policy(obj: Json) -> None:
    spec = dict_or_empty(obj.get("spec"))
    fill(spec, (("failurePolicy", "Fail"),))
    _default_match(spec.get("matchConstraints"))


def _default_binding(obj: Json) -> None:
    _default_match(dict_or_empty(obj.get("spec")).get("matchResources"))


def _default_webhooks(obj: Json) -> None:
    for webhook in dicts_in(obj, "webhooks"):
        fill(webhook, (("failurePolicy", "Fail"), ("matchPolicy", "Equivalent"), ("timeoutSeconds", 10)))
        child(webhook, "namespaceSelector")
        child(webhook, "objectSelector")
        if obj.get("kind") == "MutatingWebhookConfiguration":
            fill(webhook, (("reinvocationPolicy", "Never"),))
        service = dict_or_empty(webhook.get("clientConfig")).get("service")
        if type(service) is dict:
            fill(service, (("port", 443),))
        for rule in dicts_in(webhook, "rules"):
            fill(rule, (("scope", "*"),))


def _default_match(match: Any) -> None:
    if type(match) is dict:
        fill(match, (("matchPolicy", "Equivalent"),))
        child(match, "namespaceSelector")
        child(match, "objectSelector")
        for rule in (*dicts_in(match, "resourceRules"), *dicts_in(match, "excludeResourceRules")):
            fill(rule, (("scope", "*"),))


def _default_event(obj: Json) -> None:
    """Fields that Go cannot leave out of JSON: clients sort by them, so they must be there."""
    for field in ("eventTime", "firstTimestamp", "lastTimestamp"):
        obj.setdefault(field, None)
    fill(obj, (("reportingComponent", ""), ("reportingInstance", "")))
    obj.setdefault("source", {})


_DEFAULTS: Final[Mapping[str, Callable[[Json], None]]] = {
    "Event": _default_event,
    "Pod": default_pod,
    "PodTemplate": _default_template,
    "Node": _default_node,
    "Namespace": _default_namespace,
    "Deployment": _default_deployment,
    "ReplicaSet": _default_replica_set,
    "ReplicationController": _default_replication_controller,
    "StatefulSet": _default_stateful_set,
    "DaemonSet": _default_daemon_set,
    "Job": default_job,
    "CronJob": default_cron_job,
    "Service": _default_service,
    "EndpointSlice": _default_endpoint_slice,
    "Secret": _default_secret,
    "LimitRange": _default_limit_range,
    "PersistentVolumeClaim": _default_claim,
    "PersistentVolume": _default_volume,
    "StorageClass": _default_storage_class,
    "CSIDriver": _default_csi_driver,
    "PriorityClass": _default_priority_class,
    "PodGroup": _default_pod_group,
    "Workload": _default_workload,
    "ResourceClaim": _default_resource_claim,
    "ResourceClaimTemplate": _default_resource_claim_template,
    "CustomResourceDefinition": _default_definition,
    "FlowSchema": _default_flow_schema,
    "PriorityLevelConfiguration": _default_priority_level,
    "MutatingAdmissionPolicy": _default_policy,
    "MutatingAdmissionPolicyBinding": _default_binding,
    "MutatingWebhookConfiguration": _default_webhooks,
    "ValidatingWebhookConfiguration": _default_webhooks,
    "ValidatingAdmissionPolicy": _default_policy,
    "ValidatingAdmissionPolicyBinding": _default_binding,
}
