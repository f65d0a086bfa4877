"""The fields of Kueue's kinds, which are built in: for strict field validation and for `kubectl explain`.

`kueue_schemas.json` beside this file has the schemas of the definitions in deploy/crds (`tools/kueue_schemas.py` writes
it). Defaults and rules do not come from them: those are code, which is quicker for kinds that are written often.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from pilotage.sandbox.kinds.builtin_groups import KUEUE_GROUP
from pilotage.sandbox.kinds.resources import ResourceType

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_RENAMED: Final[Mapping[str, tuple[str, str, str]]] = {
    # kind: part, older name, newer name
    "ClusterQueue": ("spec", "cohort", "cohortName"),
    "Cohort": ("spec", "parent", "parentName"),
    "LocalQueue": ("status", "flavorUsage", "flavorsUsage"),
    "Workload": ("status", "accumulatedPastExexcutionTimeSeconds", "accumulatedPastExecutionTimeSeconds"),
}
_OLDER_ONLY: Final[Mapping[str, Schema]] = {
    "ClusterQueue": {"admissionChecks": {"type": "array", "items": _TEXT}},
    "Workload": {"priorityClassName": _TEXT, "priorityClassSource": _TEXT},
    "AdmissionCheck": {"retryDelayMinutes": {"type": "integer"}},
}


def schema_of(resource_type: ResourceType) -> Mapping[str, Any] | None:
    """The schema of a custom kind: that of its definition, or of one of Kueue's; None if there is none."""
    if resource_type.schema is not None or resource_type.group != KUEUE_GROUP:
        return resource_type.schema
    return _schemas(resource_type.version).get(resource_type.kind)


@cache
def _schemas(version: str) -> Mapping[str, Schema]:
    text = files("pilotage.sandbox.kinds").joinpath("kueue_schemas.json").read_bytes()
    found = msgspec.json.decode(text, type=dict[str, Schema])
    if version == "v1beta1":
        for kind, schema in found.items():
            _make_older(kind, schema["properties"])
    return found


def _make_older(kind: str, parts: dict[str, Schema]) -> None:
    if kind in _RENAMED:
        part, older, newer = _RENAMED[kind]
        fields = parts[part]["properties"]
        fields[older] = fields.pop(newer)
    if kind in _OLDER_ONLY:
        parts["spec"]["properties"].update(_OLDER_ONLY[kind])
    if kind == "Workload":
        del parts["spec"]["properties"]["priorityClassRef"]
