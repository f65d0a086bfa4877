"""Refusals in the form in which recorded answers have them."""

from __future__ import annotations

from typing import Any

from pilotage.api.results import Pending, Refusal
from pilotage.framework.diagnosis import Diagnosis

Answer = dict[str, Any]


def status(refusal: Refusal) -> Answer:
    """Code and reasons."""
    if isinstance(refusal, Pending):
        code = "Pending"
    else:
        code = "UnschedulableAndUnresolvable" if refusal.unresolvable else "Unschedulable"
    return {"code": code, "reasons": sorted(reason.message for reason in refusal.reasons)}


def node_statuses(diagnosis: Diagnosis) -> dict[str, Answer | None]:
    """Who refused each node; None where nobody did."""
    return {name: _node_status(diagnosis, name) for name in diagnosis.node_names}


def _node_status(diagnosis: Diagnosis, name: str) -> Answer | None:
    refusal = diagnosis.refusal(name)
    if not refusal.reasons:
        return None
    return {"plugin": diagnosis.plugin_of(name), **status(refusal)}
