"""Short forms of queueing objects in scenarios, turned into the objects that they stand for.

A namespaced object is called by its name alone; the UID of an object is its name, so that ties are broken by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from pilotage.clock import rfc3339
from pilotage.jobs.engine import QueueingObject
from pilotage.model.kueue import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    LocalQueue,
    ResourceFlavor,
    Workload,
    WorkloadPriorityClass,
)

Json = dict[str, Any]
NAMESPACE: Final = "ns"
API_VERSION: Final = "kueue.x-k8s.io/v1beta2"
_NEVER: Final = {"withinClusterQueue": "Never", "reclaimWithinCohort": "Never"}


class QueueingShorthandError(ValueError):
    """What is wrong with a short form."""


@dataclass(frozen=True, slots=True)
class QueueingShorthand:
    fields: frozenset[str]
    model: type[QueueingObject | WorkloadPriorityClass] | None = None
    """None for what is no object of queueing: namespaces and jobs."""
    make: Callable[[Json], Json] = dict
    """The rest of the object besides its metadata."""
    is_namespaced: bool = False


def resource_groups(groups: list[Json]) -> list[Json]:
    return [
        {
            "coveredResources": group["resources"],
            "flavors": [
                {
                    "name": flavor["name"],
                    "resources": [_quota(name, flavor["quotas"][name]) for name in group["resources"]],
                }
                for flavor in group["flavors"]
            ],
        }
        for group in groups
    ]


def _quota(name: str, amount: Any) -> Json:
    if not isinstance(amount, Mapping):
        return {"name": name, "nominalQuota": str(amount)}
    made: Json = {"name": name, "nominalQuota": str(amount.get("nominal", 0))}
    for short, full in (("borrow", "borrowingLimit"), ("lend", "lendingLimit")):
        if short in amount:
            made[full] = str(amount[short])
    return made


def _flavor(s: Json) -> Json:
    spec = {
        "nodeLabels": s.get("labels", {}),
        "nodeTaints": [_taint(text) for text in s.get("taints", ())],
        "tolerations": [toleration(text) for text in s.get("tolerations", ())],
    }
    return {"spec": spec}


def _taint(text: str) -> Json:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}


def toleration(text: str) -> Json:
    if text == "*":
        return {"operator": "Exists"}
    pair, _, effect = text.partition(":")
    key, has_value, value = pair.partition("=")
    rest = {"operator": "Equal", "value": value} if has_value else {"operator": "Exists"}
    return {"key": key, "effect": effect, **rest}


def _cohort(s: Json) -> Json:
    spec: Json = {"parentName": s.get("parent", ""), "resourceGroups": resource_groups(s.get("groups", []))}
    spec["fairSharing"] = {"weight": str(s.get("fairWeight", 1))}
    return {"spec": spec}


def _cluster_queue(s: Json) -> Json:
    checks = [{"name": one["name"], "onFlavors": one.get("onFlavors", [])} for one in s.get("checks", ())]
    fungibility = s.get("fungibility", {})
    spec: Json = {
        "cohortName": s.get("cohort", ""),
        "queueingStrategy": s.get("strategy", "BestEffortFIFO"),
        "resourceGroups": resource_groups(s.get("groups", [])),
        "namespaceSelector": {"matchLabels": s.get("namespaceSelector", {})},
        "preemption": {**_NEVER, **s.get("preemption", {})},
        "flavorFungibility": {
            "whenCanBorrow": "MayStopSearch",
            "whenCanPreempt": "TryNextFlavor",
            **fungibility,
        },
        "admissionChecksStrategy": {"admissionChecks": checks},
        "stopPolicy": s.get("stopPolicy", "None"),
        "fairSharing": {"weight": str(s.get("fairWeight", 1))},
    }
    if "admissionMode" in s:
        spec["admissionScope"] = {"admissionMode": s["admissionMode"]}
    return {"spec": spec}


def _local_queue(s: Json) -> Json:
    spec: Json = {"clusterQueue": s["clusterQueue"], "stopPolicy": s.get("stopPolicy", "None")}
    spec["fairSharing"] = {"weight": str(s.get("fairWeight", 1))}
    return {"spec": spec}


def _admission_check(s: Json) -> Json:
    active = {"type": "Active", "status": "True", "reason": "Active", "message": ""}
    return {
        "spec": {"controllerName": "example.com/scenario"},
        "status": {"conditions": [{**active, "lastTransitionTime": rfc3339(0)}]},
    }


def _priority_class(s: Json) -> Json:
    return {"value": s["value"]}


def _workload(s: Json) -> Json:
    sets = s.get("podSets") or [{**s, "name": "main"}]
    spec: Json = {
        "queueName": s.get("queue", ""),
        "priority": s.get("priority", 0),
        "active": s.get("active", True),
        "maximumExecutionTimeSeconds": s.get("maxExecutionSeconds"),
        "podSets": [
            {
                "name": one["name"],
                "count": one.get("count", 1),
                "minCount": one.get("minCount"),
                "template": {"spec": pod_spec(one)},
            }
            for one in sets
        ],
    }
    return {"spec": spec}


def pod_spec(s: Json) -> Json:
    """The pods that a short form describes."""
    requests = {name: str(amount) for name, amount in s.get("requests", {}).items()}
    spec: Json = {
        "containers": [{"name": "main", "resources": {"requests": requests}}],
        "nodeSelector": s.get("nodeSelector", {}),
        "tolerations": [toleration(text) for text in s.get("tolerations", ())],
    }
    if "affinity" in s:
        terms = [{"matchExpressions": [_expression(one) for one in term]} for term in s["affinity"]]
        required = {"nodeSelectorTerms": terms}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return spec


def _expression(s: Json) -> Json:
    return {"key": s["key"], "operator": s["op"], "values": s.get("values", [])}


def _fields(text: str) -> frozenset[str]:
    return frozenset(["name", *text.split()])


_POD_FIELDS: Final = "requests nodeSelector tolerations"
SHORTS: Final[Mapping[str, QueueingShorthand]] = {
    "namespace": QueueingShorthand(_fields("labels")),
    "flavor": QueueingShorthand(_fields("labels taints tolerations"), ResourceFlavor, _flavor),
    "cohort": QueueingShorthand(_fields("parent groups fairWeight"), Cohort, _cohort),
    "clusterQueue": QueueingShorthand(
        _fields(
            "cohort strategy groups namespaceSelector preemption fungibility checks stopPolicy fairWeight admissionMode"
        ),
        ClusterQueue,
        _cluster_queue,
    ),
    "localQueue": QueueingShorthand(
        _fields("clusterQueue namespace stopPolicy fairWeight"), LocalQueue, _local_queue, True
    ),
    "admissionCheck": QueueingShorthand(_fields(""), AdmissionCheck, _admission_check),
    "priorityClass": QueueingShorthand(_fields("value"), WorkloadPriorityClass, _priority_class),
    "workload": QueueingShorthand(
        _fields(
            f"queue namespace priority createdAt eviction maxExecutionSeconds active podSets count minCount affinity"
            f" createdEpoch {_POD_FIELDS}"
        ),
        Workload,
        _workload,
        True,
    ),
    "job": QueueingShorthand(
        _fields(f"queue parallelism completions minParallelism priorityClass eviction {_POD_FIELDS}"),
        is_namespaced=True,
    ),
}


def manifest(kind: str, fields: Json) -> Json:
    """The object that a short form stands for, as it is written."""
    short = SHORTS[kind]
    assert short.model is not None
    metadata: Json = {"name": fields["name"], "uid": fields["name"]}
    if short.is_namespaced:
        metadata["namespace"] = fields.get("namespace", NAMESPACE)
    if "createdEpoch" in fields:
        metadata["creationTimestamp"] = rfc3339(fields["createdEpoch"])
    return {"apiVersion": API_VERSION, "kind": short.model.__name__, "metadata": metadata, **short.make(fields)}


def read(kind: str, written: Json) -> QueueingObject | WorkloadPriorityClass:
    """The object as the engine knows it."""
    model = SHORTS[kind].model
    assert model is not None
    return msgspec.convert(written, model)


def made(kind: str, fields: Json) -> QueueingObject | WorkloadPriorityClass:
    """The object that a short form stands for."""
    return read(kind, manifest(kind, fields))


def checked(kind: str, fields: Any) -> Json:
    """The fields, if they make sense."""
    short = SHORTS.get(kind)
    if short is None:
        raise QueueingShorthandError(f'unknown object "{kind}"; there are: {", ".join(SHORTS)}')
    if not isinstance(fields, dict):
        raise QueueingShorthandError(f"{kind}: expected fields, got {fields!r}")
    unknown = sorted(fields.keys() - short.fields)
    if unknown:
        raise QueueingShorthandError(f"{kind}: unknown field {', '.join(unknown)}")
    return fields


def complete(kind: str, fields: Json) -> Json:
    """As `checked`, and it can be turned into an object."""
    checked(kind, fields)
    if not isinstance(fields.get("name"), str):
        raise QueueingShorthandError(f"{kind} without a name")
    if SHORTS[kind].model is not None:
        try:
            made(kind, {"createdEpoch": 0, **fields} if kind == "workload" else fields)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise QueueingShorthandError(f"{kind} {fields['name']}: {type(error).__name__}: {error}") from error
    return fields
