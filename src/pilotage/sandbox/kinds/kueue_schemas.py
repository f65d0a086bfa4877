"""Kueue's kinds, which are built in: their schemas, with defaults and rules, and the admission policies about them.

`kueue_schemas.json` beside this file has them from deploy/crds and deploy/workload-queueing (`tools/kueue_schemas.py`
writes it).
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


def kueue_schema(kind: str) -> Schema:
    """The schema of a kind as it is stored."""
    return _schemas("v1beta2")[kind]


def builtin_policies() -> list[dict[str, Any]]:
    """The policies about Kueue's kinds and their bindings."""
    return _document().policies


class _Document(msgspec.Struct):
    schemas: dict[str, Schema]
    policies: list[dict[str, Any]]


def _document() -> _Document:
    text = files("pilotage.sandbox.kinds").joinpath("kueue_schemas.json").read_bytes()
    return msgspec.json.decode(text, type=_Document)


@cache
def _schemas(version: str) -> Mapping[str, Schema]:
    found = _document().schemas
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
