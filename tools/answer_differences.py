"""Where the answers of kube-scheduler and Pilotage to a case differ, in what the program of the former can tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Case = dict[str, Any]
Answer = dict[str, Any]
Difference = tuple[str, Any, Any]
"""What, theirs, ours."""

SILENT_SINCE = ("no new claims to deallocate", "still not schedulable")
"""What DynamicResources says in PostFilter of the release when it has done nothing; the recorded version is silent."""


def differences(case: Case, theirs: Answer, ours: Answer) -> list[Difference]:
    if "cannot" in theirs:
        return []  # an object that this release does not know
    if "crash" in ours:
        return [("crash", theirs.get("error"), ours["crash"])]
    failed = [isinstance(answer.get("error"), str) for answer in (theirs, ours)]
    if any(failed):
        return [] if all(failed) else [("error", theirs.get("error"), ours.get("error"))]
    if case["kind"] == "preemption":
        compared = _eviction(case, theirs, ours)
    else:
        compared = {"filter-score": _decision, "hint": _hint}[case["kind"]](theirs, ours)
    return [(what, one, other) for what, one, other in compared if one != other]


def _decision(theirs: Answer, ours: Answer) -> Iterator[Difference]:
    for field in ("code", "plugin", "nodeNames"):
        yield f"preFilter.{field}", theirs["preFilter"][field], ours["preFilter"][field]
    for field in ("reasons", "skipped"):
        yield f"preFilter.{field}", _sorted(theirs["preFilter"][field]), _sorted(ours["preFilter"][field])
    yield from _verdicts(theirs, ours)
    yield "unschedulablePlugins", _sorted(theirs["unschedulablePlugins"]), _sorted(ours["unschedulablePlugins"])
    for node in sorted(theirs["scores"].keys() | ours["scores"].keys()):
        one, other = (answer["scores"].get(node, {}) for answer in (theirs, ours))
        yield f"scores of {node}", one.get("plugins"), other.get("plugins")
        yield f"total of {node}", one.get("total"), other.get("total")
    yield "message", theirs["message"], ours["message"]


def _eviction(case: Case, theirs: Answer, ours: Answer) -> Iterator[Difference]:
    if "postFilter" not in theirs:
        return  # it fits: nobody would ask
    yield from _verdicts(theirs, ours)
    yield "message", theirs["message"], ours["filterMessage"]
    result = theirs["postFilter"]
    for field in ("code", "nomination"):
        yield field, result[field], ours[field]
    chosen, own = result["nominatedNode"], ours["nominatedNode"]
    is_as_good = chosen in ours["tied"]
    yield "nominated node", chosen, chosen if is_as_good else own
    if result["code"] != "Success":  # about which the release says nothing
        said = ", ".join(part for part in result["message"].split(", ") if part not in SILENT_SINCE)
        yield "message of PostFilter", said, ours["message"]
    if is_as_good and "deleted" in result:
        victims = set(ours["candidates"][chosen]["victims"]) - set(_terminating(case))
        yield "victims", result["deleted"], sorted(victims)


def _terminating(case: Case) -> Iterator[str]:
    """Pods that are on their way out: nobody deletes them again."""
    for obj in case["objects"]:
        if obj["kind"] == "Pod" and "deletionTimestamp" in obj["metadata"]:
            yield f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def _hint(theirs: Answer, ours: Answer) -> Iterator[Difference]:
    yield f"hint to {', '.join(ours['events'])}", theirs["hint"], ours["hint"]


def _verdicts(theirs: Answer, ours: Answer) -> Iterator[Difference]:
    for node in sorted(theirs["filter"].keys() | ours["filter"].keys()):
        one, other = ({**(answer["filter"].get(node) or {})} for answer in (theirs, ours))
        for verdict in (one, other):
            verdict["reasons"] = _sorted(verdict.get("reasons"))
        yield f"filter of {node}", one, other


def _sorted(names: list[str] | None) -> list[str]:
    return sorted(names or ())
