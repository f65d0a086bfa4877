"""Nodes, namespaces, events, leases and the small kinds of a cluster."""

from __future__ import annotations

from typing import Final

from pilotage.sandbox.http.tables.cell_text import NONE, count, text
from pilotage.sandbox.http.tables.columns import Cells, PrintedKind, age_of, columns, name_of
from pilotage.sandbox.http.tables.durations import UNKNOWN, since
from pilotage.sandbox.rules.json_fields import Json, dict_or_empty, dicts_in, nested

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"


def _node_cells(node: Json, now: float) -> Cells:
    status = dict_or_empty(node.get("status"))
    info = dict_or_empty(status.get("nodeInfo"))
    return [
        name_of(node),
        _node_status(node),
        _node_roles(node),
        age_of(node, now),
        text(info.get("kubeletVersion")),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        text(info.get("osImage"), UNKNOWN),
        text(info.get("kernelVersion"), UNKNOWN),
        text(info.get("containerRuntimeVersion"), UNKNOWN),
    ]


def _node_status(node: Json) -> str:
    ready = [one for one in dicts_in(node.get("status"), "conditions") if one.get("type") == "Ready"]
    words = ["Ready" if ready[0].get("status") == "True" else "NotReady"] if ready else ["Unknown"]
    if nested(node, "spec", "unschedulable") is True:
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(node: Json) -> str:
    roles = set()
    for key, value in dict_or_empty(nested(node, "metadata", "labels")).items():
        if key.startswith(_ROLE_PREFIX) and len(key) > len(_ROLE_PREFIX):
            roles.add(key[len(_ROLE_PREFIX) :])
        elif key == "kubernetes.io/role" and value:
            roles.add(text(value))
    return ",".join(sorted(roles)) or NONE


def _address(status: Json, kind: str) -> str:
    found = [one.get("address") for one in dicts_in(status, "addresses") if one.get("type") == kind]
    return text(found[0], NONE) if found else NONE


def _namespace_cells(namespace: Json, now: float) -> Cells:
    return [name_of(namespace), text(nested(namespace, "status", "phase")), age_of(namespace, now)]


def _event_cells(event: Json, now: float) -> Cells:
    """Both core and events.k8s.io spell some fields in their own way."""
    regarding = dict_or_empty(event.get("involvedObject") or event.get("regarding"))
    first = event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime")
    last = (
        nested(event, "series", "lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("deprecatedLastTimestamp")
        or first
    )
    times = nested(event, "series", "count") or event.get("count") or event.get("deprecatedCount")
    name = text(regarding.get("name"))
    kind = text(regarding.get("kind")).lower()
    return [
        since(last, now),
        text(event.get("type")),
        text(event.get("reason")),
        f"{kind}/{name}" if name else kind,
        text(regarding.get("fieldPath")),
        _event_source(event),
        text(event.get("message") or event.get("note")).strip(),
        since(first, now),
        count(times) or 1,
        name_of(event),
    ]


def _event_source(event: Json) -> str:
    source = dict_or_empty(event.get("source") or event.get("deprecatedSource"))
    component = text(source.get("component")) or text(
        event.get("reportingComponent") or event.get("reportingController")
    )
    host = text(source.get("host")) or text(event.get("reportingInstance"))
    return f"{component}, {host}" if component and host else component or host


def _lease_cells(lease: Json, now: float) -> Cells:
    return [name_of(lease), text(nested(lease, "spec", "holderIdentity")), age_of(lease, now)]


def _priority_class_cells(priority_class: Json, now: float) -> Cells:
    return [
        name_of(priority_class),
        count(priority_class.get("value")),
        priority_class.get("globalDefault") is True,
        age_of(priority_class, now),
        text(priority_class.get("preemptionPolicy")),
    ]


def _budget_cells(budget: Json, now: float) -> Cells:
    return [
        name_of(budget),
        text(nested(budget, "spec", "minAvailable"), "N/A"),
        text(nested(budget, "spec", "maxUnavailable"), "N/A"),
        count(nested(budget, "status", "disruptionsAllowed")),
        age_of(budget, now),
    ]


def _definition_cells(definition: Json, now: float) -> Cells:
    return [name_of(definition), text(nested(definition, "metadata", "creationTimestamp"))]


def _config_map_cells(config_map: Json, now: float) -> Cells:
    entries = len(dict_or_empty(config_map.get("data"))) + len(dict_or_empty(config_map.get("binaryData")))
    return [name_of(config_map), entries, age_of(config_map, now)]


def _secret_cells(secret: Json, now: float) -> Cells:
    return [name_of(secret), text(secret.get("type")), len(dict_or_empty(secret.get("data"))), age_of(secret, now)]


def _service_account_cells(account: Json, now: float) -> Cells:
    return [name_of(account), len(dicts_in(account, "secrets")), age_of(account, now)]


def _quota_cells(quota: Json, now: float) -> Cells:
    requests: list[str] = []
    limits: list[str] = []
    used = dict_or_empty(nested(quota, "status", "used"))
    for name, hard in sorted(dict_or_empty(nested(quota, "status", "hard")).items()):
        piece = f"{name}: {text(used.get(name), '0')}/{text(hard)}"
        (limits if name.startswith("limits.") else requests).append(piece)
    return [name_of(quota), ", ".join(requests), ", ".join(limits), age_of(quota, now)]


def _revision_cells(revision: Json, now: float) -> Cells:
    owners = [one for one in dicts_in(revision.get("metadata"), "ownerReferences") if one.get("controller") is True]
    controller = f"{text(owners[0].get('kind')).lower()}/{text(owners[0].get('name'))}" if owners else NONE
    return [name_of(revision), controller, count(revision.get("revision")), age_of(revision, now)]


CLUSTER: Final = {
    "Node": PrintedKind(
        columns(
            "Name",
            "Status",
            "Roles",
            "Age",
            "Version",
            "Internal-IP*",
            "External-IP*",
            "OS-Image*",
            "Kernel-Version*",
            "Container-Runtime*",
        ),
        _node_cells,
    ),
    "Namespace": PrintedKind(columns("Name", "Status", "Age"), _namespace_cells),
    "Event": PrintedKind(
        columns(
            "Last Seen",
            "Type",
            "Reason",
            "Object",
            "Subobject*",
            "Source*",
            "Message",
            "First Seen*",
            "Count:integer*",
            "Name*",
        ),
        _event_cells,
    ),
    "Lease": PrintedKind(columns("Name", "Holder", "Age"), _lease_cells),
    "PriorityClass": PrintedKind(
        columns("Name", "Value:integer", "Global-Default:boolean", "Age", "PreemptionPolicy"), _priority_class_cells
    ),
    "PodDisruptionBudget": PrintedKind(
        columns("Name", "Min Available", "Max Unavailable", "Allowed Disruptions:integer", "Age"), _budget_cells
    ),
    "CustomResourceDefinition": PrintedKind(columns("Name", "Created At:date"), _definition_cells),
    "LimitRange": PrintedKind(columns("Name", "Created At:date"), _definition_cells),
    "ConfigMap": PrintedKind(columns("Name", "Data:integer", "Age"), _config_map_cells),
    "Secret": PrintedKind(columns("Name", "Type", "Data:integer", "Age"), _secret_cells),
    "ServiceAccount": PrintedKind(columns("Name", "Secrets:integer", "Age"), _service_account_cells),
    "ResourceQuota": PrintedKind(columns("Name", "Request", "Limit", "Age"), _quota_cells),
    "ControllerRevision": PrintedKind(columns("Name", "Controller", "Revision:integer", "Age"), _revision_cells),
}
