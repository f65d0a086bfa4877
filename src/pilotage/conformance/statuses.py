"""Rejections in the form in which recorded answers have them."""

from __future__ import annotations

from typing import Any

from pilotage.api.results import Pending, Rejection
from pilotage.framework.diagnosis import Diagnosis

Answer = dict[str, Any]


def status(rejection: Rejection) -> Answer:
    """Code and reasons."""
    if isinstance(rejection, Pending):
        code = "Pending"
    else:
        code = "UnschedulableAndUnresolvable" if rejection.unresolvable else "Unschedulable"
    return {"code": code, "reasons": sorted(reason.message for reason in rejection.reasons)}


def node_statuses(diagnosis: Diagnosis) -> dict[str, Answer | None]:
    """Return by node the answer of the plugin that rejected it; None where none did."""
    return {name: _node_status(diagnosis, name) for name in diagnosis.node_names}


def _node_status(diagnosis: Diagnosis, name: str) -> Answer | None:
    rejection = diagnosis.rejection(name)
    if not rejection.reasons:
        return None
    return {"plugin": diagnosis.plugin_of(name), **status(rejection)}
