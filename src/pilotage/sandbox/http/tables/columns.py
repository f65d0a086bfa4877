"""Definitions of columns, and what every printed kind consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pilotage.sandbox.http.tables.durations import since
from pilotage.sandbox.rules.json_fields import Json, nested

Cells = list[Any]

_MEANINGS: Final[Mapping[str, str]] = {
    "Name": "Name of the object, unique within its namespace.",
    "Age": "Time since the object was created.",
    "Ready": "How many of the desired parts are ready.",
    "Status": "Where the object stands in its life.",
    "Restarts": "How often the containers of the pod were started again, and when last.",
    "IP": "Address of the pod.",
    "Node": "Node that the object belongs to.",
    "Nominated Node": "Node on which room is being made for the pod.",
    "Readiness Gates": "How many of the pod's readiness gates are fulfilled.",
    "Desired": "Number of pods that should run.",
    "Current": "Number of pods that exist.",
    "Up-to-date": "Number of pods made from the present template.",
    "Available": "Number of pods that have been ready for long enough.",
    "Containers": "Names of the containers in the template.",
    "Images": "Images of the containers in the template.",
    "Selector": "Labels by which pods are chosen.",
}


@dataclass(frozen=True, slots=True)
class PrintedKind:
    """The columns of a kind and the function that fills a row: (object, now) -> one cell per column."""

    columns: tuple[Json, ...]
    cells: Callable[[Json, float], Cells]


def columns(*specs: str) -> tuple[Json, ...]:
    """Definitions from short forms: `Name`, `Desired:integer`; a trailing `*` marks a column of the wide output."""
    return tuple(_column(spec) for spec in specs)


def definition(name: str, kind: str, *, description: str = "", form: str = "", priority: int = 0) -> Json:
    return {"name": name, "type": kind, "format": form, "description": description, "priority": priority}


def name_of(obj: Json) -> str:
    name = nested(obj, "metadata", "name")
    return name if isinstance(name, str) else ""


def age_of(obj: Json, now: float) -> str:
    return since(nested(obj, "metadata", "creationTimestamp"), now)


def _column(spec: str) -> Json:
    plain = spec.removesuffix("*")
    name, _, kind = plain.partition(":")
    return definition(
        name,
        kind or "string",
        description=_MEANINGS.get(name, f"{name} of the object."),
        form="name" if name == "Name" else "",
        priority=1 if spec.endswith("*") else 0,
    )
