"""Write the table of field names and types that the sandbox checks objects against.

    .venv/bin/python tools/api_schemas.py > src/pilotage/sandbox/kinds/api_schemas.json

The names, types and required marks are facts of the Kubernetes API; they are read off the models of the official
client, which are generated from it. Nothing else (no descriptions) is taken. Only the types that the sandbox's own
kinds reach are written, one line each:

    "v1.Container": {"name": "string!", "ports": "[v1.ContainerPort]", "env": "[v1.EnvVar]", ...}

`[x]` is a list, `{x}` a map from strings, a trailing `!` marks a required field.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any, get_args

from kubernetes.client import models

from pilotage.sandbox.kinds.builtin_kinds import BUILTIN_TYPES

ALSO_NEEDED = ("V1Eviction", "V1Scale", "V1DeleteOptions", "V1Status", "V1Binding")
SCALARS = {
    "str": "string",
    "bytes": "string",
    "int": "integer",
    "bool": "boolean",
    "float": "number",
    "datetime": "time",
    "object": "any",
}
# Quantities are strings in the models, but the API also reads plain numbers.
QUANTITY_MAPS = frozenset(
    (
        *("limits", "requests", "overhead", "capacity", "allocatable", "hard", "used", "default", "defaultRequest"),
        *("max", "min", "maxLimitRequestRatio", "allocatedResources", "consumedCapacity", "podFixed"),
    )
)
QUANTITIES = {
    "v1.EmptyDirVolumeSource": ("sizeLimit",),
    "v1.ResourceFieldSelector": ("divisor",),
    "v1.DeviceCapacity": ("value",),
    "v1.Counter": ("value",),
    "v1.CSIStorageCapacity": ("capacity", "maximumVolumeSize"),
    "v1.CapacityRequestPolicy": ("default", "validValues"),
    "v1.CapacityRequestPolicyRange": ("max", "min", "step"),
}
# Groups of groups, which are not served: a template of one holds more of its kind.
OPAQUE = frozenset({"compositePodGroupTemplates"})

# Types without fields of their own, of which it counts that they are there.
OBJECTS = frozenset({"basic", "single", "all"})
# The models do not tell the width of integers. Those of 32 bits that the rules of a kind read:
INT32 = {
    "v1.ContainerPort": ("containerPort", "hostPort"),
    "v1.CronJobSpec": ("failedJobsHistoryLimit", "successfulJobsHistoryLimit"),
    "v1.DaemonSetSpec": ("minReadySeconds", "revisionHistoryLimit"),
    "v1.DeploymentSpec": ("minReadySeconds", "progressDeadlineSeconds", "replicas", "revisionHistoryLimit"),
    "v1.JobSpec": ("backoffLimit", "backoffLimitPerIndex", "completions", "parallelism", "ttlSecondsAfterFinished"),
    "v1.LeaseSpec": ("leaseDurationSeconds", "leaseTransitions"),
    "v1.PodDisruptionBudgetStatus": ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"),
    "v1.PodSpec": ("priority",),
    "v1.PreferredSchedulingTerm": ("weight",),
    "v1.PriorityClass": ("value",),
    "v1.ReplicaSetSpec": ("minReadySeconds", "replicas"),
    "v1.ReplicationControllerSpec": ("minReadySeconds", "replicas"),
    "v1.RollingUpdateStatefulSetStrategy": ("partition",),
    "v1.ServicePort": ("nodePort", "port"),
    "v1.StatefulSetSpec": ("minReadySeconds", "replicas", "revisionHistoryLimit"),
    "v1.TopologySpreadConstraint": ("maxSkew", "minDomains"),
    "v1.VolumeNodeResources": ("count",),
    "v1.WeightedPodAffinityTerm": ("weight",),
    "v1alpha3.GangSchedulingPolicy": ("minCount",),
    "v1alpha3.PodGroupSpec": ("priority",),
    "v1alpha3.PodGroupTemplate": ("priority",),
    "v1alpha3.WorkloadPodGroupGangSchedulingPolicy": ("minCount",),
    "v1beta1.GangSchedulingPolicy": ("minCount",),
    "v1beta1.PodGroupSpec": ("priority",),
    "v1beta1.PodGroupTemplate": ("priority",),
}


def main() -> None:
    table: dict[str, dict[str, str]] = {}
    waiting = [*root_models(), *ALSO_NEEDED]
    while waiting:
        model_name = waiting.pop()
        name = schema_name(model_name)
        if name in table:
            continue
        model = getattr(models, model_name)
        table[name] = fields_of(name, model)
        reached = (code for field, code in model.openapi_types.items() if model.attribute_map[field] not in OPAQUE)
        waiting.extend(re.findall(r"\b[A-Z]\w*V\d\w*|\bV\d\w*", " ".join(reached)))
    lines = [f"{json.dumps(name)}:{json.dumps(table[name], separators=(',', ':'))}" for name in sorted(table)]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")


def root_models() -> Iterator[str]:
    for resource_type in BUILTIN_TYPES:
        version = resource_type.version[0].upper() + resource_type.version[1:]
        candidates = (
            f"{version}{resource_type.kind}",
            f"{resource_type.group.partition('.')[0].capitalize() or 'Core'}{version}{resource_type.kind}",
        )
        yield from (name for name in candidates if hasattr(models, name) and not resource_type.is_custom)


def schema_name(model_name: str) -> str:
    found = re.fullmatch(r"([A-Z][a-z]+)?(V\d+(?:(?:alpha|beta)\d+)?)(\w+)", model_name)
    if found is None:
        raise ValueError(f"a model name of unknown form: {model_name}")
    prefix, version, rest = found.groups()
    return ".".join(part for part in ((prefix or "").lower(), version.lower(), rest) if part)


def fields_of(name: str, model: Any) -> dict[str, str]:
    required = {field for field, info in model.model_fields.items() if info.is_required()}
    fields = {}
    for attribute, type_text in model.openapi_types.items():
        json_name = model.attribute_map[attribute]
        code = "[any]" if json_name in OPAQUE else type_code(type_text)
        if code == "any" and is_int_or_string(model, attribute):
            code = "int-or-string"
        if json_name in QUANTITIES.get(name, ()) or (code == "{string}" and json_name in QUANTITY_MAPS):
            code = code.replace("string", "quantity")
        if code == "any" and json_name in OBJECTS:
            code = "object"
        if json_name in INT32.get(name, ()):
            code = "int32"
        fields[json_name] = code + ("!" if attribute in required else "")
    return fields


def type_code(type_text: str) -> str:
    if found := re.fullmatch(r"List\[(.+)\]", type_text):
        return f"[{type_code(found[1])}]"
    if found := re.fullmatch(r"Dict\[str, (.+)\]", type_text):
        return f"{{{type_code(found[1])}}}"
    return SCALARS.get(type_text) or schema_name(type_text)


def is_int_or_string(model: Any, attribute: str) -> bool:
    info = model.model_fields.get(attribute)
    text = " ".join(str(arg) for arg in get_args(info.annotation)) if info is not None else ""
    return "int" in text and "str" in text


if __name__ == "__main__":
    main()
