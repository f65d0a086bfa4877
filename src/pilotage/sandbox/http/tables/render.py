"""From a list of objects to a Table.

The kind decides the columns; a custom kind brings its own; anything else has a name and an age. Wide columns are always
part of the table (priority 1): the client leaves them out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from pilotage.sandbox.http.tables.cluster import CLUSTER
from pilotage.sandbox.http.tables.columns import Cells, PrintedKind, age_of, columns, name_of
from pilotage.sandbox.http.tables.custom import KUEUE, custom_kind
from pilotage.sandbox.http.tables.pods import PODS, row_conditions
from pilotage.sandbox.http.tables.services import SERVICES
from pilotage.sandbox.http.tables.storage import STORAGE
from pilotage.sandbox.http.tables.workloads import WORKLOADS
from pilotage.sandbox.kinds.builtin_groups import KUEUE_GROUP, group_of, is_builtin
from pilotage.sandbox.rules.json_fields import Json, dict_or_empty

Include = Literal["Metadata", "Object", "None"]

_BUILTIN: Final[Mapping[str, PrintedKind]] = {**PODS, **CLUSTER, **WORKLOADS, **SERVICES, **STORAGE}


def render_table(
    kind: str,
    objects: Sequence[Json],
    now: float,
    *,
    include: Include = "Metadata",
    columns: Sequence[Mapping[str, Any]] | None = None,
) -> Json:
    """A `meta.k8s.io/v1` Table of `objects`, all of one kind; `columns` are `additionalPrinterColumns`."""
    printed = _printed_kind(kind, objects, columns)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": [dict(column) for column in printed.columns],
        "rows": [_row(kind, obj, printed.cells(obj, now), include) for obj in objects],
    }


def _printed_kind(kind: str, objects: Sequence[Json], columns: Sequence[Mapping[str, Any]] | None) -> PrintedKind:
    if columns:
        return custom_kind(columns)
    if not objects or is_builtin(objects[0]):
        return _BUILTIN.get(kind) or (_PLAIN if objects else KUEUE.get(kind, _PLAIN))
    if group_of(str(objects[0].get("apiVersion"))) == KUEUE_GROUP:
        return KUEUE.get(kind, _PLAIN)
    return _PLAIN


def _row(kind: str, obj: Json, cells: Cells, include: Include) -> Json:
    row: Json = {"cells": cells}
    if kind == "Pod" and (conditions := row_conditions(obj)):
        row["conditions"] = conditions
    if include == "Object":
        row["object"] = obj
    elif include == "Metadata":
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": dict_or_empty(obj.get("metadata")),
        }
    return row


def _plain_cells(obj: Json, now: float) -> Cells:
    return [name_of(obj), age_of(obj, now)]


_PLAIN: Final = PrintedKind(columns("Name", "Age"), _plain_cells)
