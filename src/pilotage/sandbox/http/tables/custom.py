"""Custom resources: columns that their definition asks for, addressed by simple JSONPath; those of Kueue's kinds.

A path is a chain of `.name`, `['name']`, `[0]`, `[*]` and `[?(@.field=="value")]`; a dot inside a name is written
`\\.`. As in the API server only the first hit of a path is printed, and what cannot be found is an empty cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from pilotage.sandbox.http.tables.columns import Cells, PrintedKind, columns, definition, name_of
from pilotage.sandbox.http.tables.durations import since
from pilotage.sandbox.rules.json_fields import Json

Step = Callable[[Any], list[Any]]

_NAME: Final = r"(?:\\.|[^.\[\]\\'\"])+"
_STEP: Final = re.compile(
    rf"""\.?(?P<name>{_NAME})
        | \.?\[(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\]
        | \.?\[(?P<index>-?\d{{1,9}}|\*)\]
        | \.?\[\?\(\s*@\.(?P<field>{_NAME})\s*==\s*(?P<mark>['"]?)(?P<value>.*?)(?P=mark)\s*\)\]""",
    re.VERBOSE,
)
_PATHS_KEPT: Final = 4096


def custom_kind(printer_columns: Sequence[Mapping[str, Any]]) -> PrintedKind:
    """The printed form of a kind with these `additionalPrinterColumns`."""
    wanted = [(str(one.get("type", "string")), str(one.get("jsonPath", ""))) for one in printer_columns]

    def cells(obj: Json, now: float) -> Cells:
        return [name_of(obj), *(_cell(kind, _first(path, obj), now) for kind, path in wanted)]

    return PrintedKind((*columns("Name"), *map(_column, printer_columns)), cells)


def find_all(path: str, obj: Any) -> list[Any]:
    """Everything that the path points at; nothing for a path that is not understood."""
    steps = _steps(path)
    if steps is None:
        return []
    found = [obj]
    for step in steps:
        found = [hit for value in found for hit in step(value)]
    return found


def _first(path: str, obj: Json) -> Any:
    found = find_all(path, obj)
    return found[0] if found else None


def _column(column: Mapping[str, Any]) -> Json:
    priority = column.get("priority")
    return definition(
        str(column.get("name", "")),
        str(column.get("type", "string")),
        description=str(
            column.get("description")
            or f"Custom resource definition column (in JSONPath format): {column.get('jsonPath')}"
        ),
        form=str(column.get("format") or ""),
        priority=priority if isinstance(priority, int) else 0,
    )


def _cell(kind: str, value: Any, now: float) -> Any:
    if value is None:
        return None
    match kind:
        case "date":
            return since(value, now)
        case "integer":
            return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "number":
            return value if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "boolean":
            return value if isinstance(value, bool) else None
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


@lru_cache(_PATHS_KEPT)
def _steps(path: str) -> tuple[Step, ...] | None:
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$").strip()
    steps: list[Step] = []
    position = 0
    while position < len(text):
        found = _STEP.match(text, position)
        if found is None or found.end() == position:
            return None
        steps.append(_step(found))
        position = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    if found["index"] == "*":
        return _all_children
    if found["index"] is not None:
        return _child_at(int(found["index"]))
    if found["field"] is not None:
        return _children_with(_unescaped(found["field"]), found["value"])
    return _child_named(found["quoted"] if found["name"] is None else _unescaped(found["name"]))


def _child_named(name: str) -> Step:
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _child_at(index: int) -> Step:
    return lambda value: value[index:][:1] if isinstance(value, list) else []


def _all_children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _children_with(field: str, wanted: str) -> Step:
    def matches(item: Any) -> bool:
        return isinstance(item, dict) and field in item and _cell("string", item[field], 0) == wanted

    return lambda value: [item for item in value if matches(item)] if isinstance(value, list) else []


def _unescaped(name: str) -> str:
    return name.replace("\\", "")


# --- Kueue's kinds, with the columns that their definitions ask for in a real cluster ---------------------------------


def _printer_column(name: str, path: str, kind: str = "string", priority: int = 0) -> dict[str, Any]:
    return {"name": name, "jsonPath": path, "type": kind, "priority": priority}


def _condition_column(name: str) -> dict[str, Any]:
    return _printer_column(name, f".status.conditions[?(@.type=='{name}')].status")


_AGE: Final = _printer_column("Age", ".metadata.creationTimestamp", "date")

KUEUE: Final = {
    "Workload": custom_kind(
        [
            _printer_column("Queue", ".spec.queueName"),
            _printer_column("Reserved in", ".status.admission.clusterQueue"),
            _condition_column("Admitted"),
            _condition_column("Finished"),
            _AGE,
        ]
    ),
    "LocalQueue": custom_kind(
        [
            _printer_column("ClusterQueue", ".spec.clusterQueue"),
            _printer_column("Pending Workloads", ".status.pendingWorkloads", "integer"),
            _printer_column("Admitted Workloads", ".status.admittedWorkloads", "integer"),
        ]
    ),
    "ClusterQueue": custom_kind(
        [
            _printer_column("Cohort", ".spec.cohortName"),
            _printer_column("Strategy", ".spec.queueingStrategy", priority=1),
            _printer_column("Pending Workloads", ".status.pendingWorkloads", "integer"),
            _printer_column("Admitted Workloads", ".status.admittedWorkloads", "integer", 1),
        ]
    ),
    "Cohort": custom_kind([_printer_column("Parent", ".spec.parentName"), _AGE]),
    "AdmissionCheck": custom_kind(
        [_printer_column("Controller", ".spec.controllerName"), _condition_column("Active"), _AGE]
    ),
    "ResourceFlavor": custom_kind([_AGE]),
    "WorkloadPriorityClass": custom_kind([_printer_column("Value", ".value", "integer")]),
}
