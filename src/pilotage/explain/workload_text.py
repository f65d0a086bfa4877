"""A report about a workload for people: first line is the answer, the rest is evidence."""

from __future__ import annotations

from collections.abc import Iterator

from pilotage.clock import rfc3339
from pilotage.escaping import visible_lines
from pilotage.explain.amounts import readable
from pilotage.explain.expected_start import ExpectedStart, start_lines
from pilotage.jobs.reports import CheckReport, Shortage, WorkloadReport

_MANY_HOLDERS = 5


def render_workload(report: WorkloadReport, now: float, stored_state: str, start: ExpectedStart | None = None) -> str:
    """`stored_state`: the state that the API server has; another one than the report's is what would happen next."""
    lines = [_answer(report, stored_state)]
    rejected = [one for one in report.shortages if one.code == "Misconfigured"]
    lines += _section("Why", _reasons(report, is_listed=bool(rejected) and report.reason == "Misconfigured"))
    lines += _section("The API server would reject its pods", tuple(one.message for one in rejected))
    lines += _section("Flavors", (_shortage_line(one) for one in report.shortages if one not in rejected))
    lines += _section("Held by", _holders(report.shortages))
    lines += _section("Waits for", report.victims)
    lines += _section("Not ready yet, and therefore in the way", report.blocked_by)
    lines += _section("Admission checks", (_check_line(one) for one in report.checks))
    lines += _section("Tried again", _retries(report, now))
    lines += _section("Would be admitted if", report.would_be_admitted_if)
    lines += _section("Expected to start", () if start is None else start_lines(start))
    return visible_lines(lines)


def _answer(report: WorkloadReport, stored_state: str) -> str:
    name = f"workload {report.key}"
    if report.state != stored_state:
        return f"{name} is {stored_state}; looked at again now it would be {report.state} (does workload queueing run?)"
    if report.state == "pending":
        place = (
            "in no queue" if report.position is None else f"position {report.position + 1} of {report.cluster_queue}"
        )
        return f"{name} waits, {place}: {report.reason}"
    if report.state == "reserved":
        return f"{name} has quota in {report.cluster_queue} and waits for admission checks"
    if report.state == "admitted":
        waits = ", its pods are not ready" if report.not_ready else ""
        return f"{name} is admitted in {report.cluster_queue}{waits}"
    return f"{name} is {report.state}" + (f": {report.reason}" if report.reason else "")


def _reasons(report: WorkloadReport, *, is_listed: bool) -> Iterator[str]:
    """`is_listed`: what the message says follows line by line."""
    if report.message and not is_listed and report.state not in ("admitted", "finished"):
        yield report.message
    if report.not_ready:
        yield report.not_ready
    yield f"queue {report.local_queue or '(none)'}, priority {report.priority}"
    if report.behind:
        yield f"behind {report.behind}: in a StrictFIFO queue nobody passes the first, whether it would fit or not"
    if report.requeue_count:
        yield f"its pods were not ready in time {report.requeue_count} time{'s' if report.requeue_count > 1 else ''}"


def _check_line(one: CheckReport) -> str:
    by = f" ({one.controller})" if one.controller else " (there is no such check)"
    return f"{one.name}{by}: {one.state}" + (f": {one.message}" if one.message else "")


def _shortage_line(one: Shortage) -> str:
    where = f"{one.flavor or 'no flavor'}: " if one.flavor else ""
    if one.code == "NoMatchingFlavor" or not one.resource:
        return f"{where}{one.message}"
    need, have = readable(one.resource, one.need), readable(one.resource, one.have)
    text = f"{where}pod set {one.pod_set} needs {need} {one.resource}, {have} free"
    if one.code == "ExceedsMaxQuota":
        return f"{text}; it could never have more than {readable(one.resource, one.most)}"
    if one.exceeded_by:
        over, missing = readable(one.resource, one.exceeded_by), readable(one.resource, one.need + one.exceeded_by)
        return f"{text}: {over} more in use than there is quota, so {missing} must be given back first"
    return text


def _holders(shortages: tuple[Shortage, ...]) -> Iterator[str]:
    seen: set[tuple[str, str]] = set()
    for one in shortages:
        if (one.flavor, one.resource) in seen:
            continue
        seen.add((one.flavor, one.resource))
        for key, amount in one.holders[:_MANY_HOLDERS]:
            yield f"{key}: {readable(one.resource, amount)} {one.resource} of {one.flavor}"
        if len(one.holders) > _MANY_HOLDERS:
            yield f"and {len(one.holders) - _MANY_HOLDERS} more"


def _retries(report: WorkloadReport, now: float) -> Iterator[str]:
    if report.requeue_at is not None:
        yield f"not before {rfc3339(report.requeue_at)} (in {max(report.requeue_at - now, 0):.0f}s)"
    yield from (f"when: {event}" for event in report.waits_for)
    if report.behind:
        yield f"when: {report.behind} is admitted, or leaves the queue"
    if report.next_due is not None and report.state == "admitted":
        yield f"its pods must be ready, or it must end, by {rfc3339(report.next_due)}"


def _section(title: str, rows: Iterator[str] | tuple[str, ...]) -> list[str]:
    indented = [f"  {row}" for row in rows]
    return ["", f"{title}:", *indented] if indented else []
