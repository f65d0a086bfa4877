"""Workload queueing: cohorts and their queues with quota bars, who waits in which order, and a workload's story."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup
from msgspec import Struct

from pilotage.console import pictures
from pilotage.console.source import ConsoleSource
from pilotage.console.view import PageView
from pilotage.explain.amounts import readable
from pilotage.explain.expected_start import range_text, start_lines, trust_text
from pilotage.jobs.engine import JobQueueing
from pilotage.jobs.reports import ClusterQueueReport, CohortQuotaReport, CohortReport, QuotaReport, Shortage
from pilotage.serve.console_door import Sight
from pilotage.serve.page import PageRequest

_MOST_LINES: Final = 500
_MOST_HOLDERS: Final = 5
_MOST_QUEUES: Final = 300
"""That are drawn; more of them are only counted."""


class QuotaRow(Struct, frozen=True):
    """One resource of one flavor: its bar, and the amounts in it."""

    flavor: str
    resource: str
    picture: Markup
    used: str
    nominal: str
    borrowed: str = ""
    lent: str = ""
    available: str = ""
    limits: str = ""


class CohortView(Struct, frozen=True):
    """A cohort with everything below it."""

    report: CohortReport | None
    """None: ClusterQueues without a cohort."""
    quotas: tuple[QuotaRow, ...]
    queues: tuple[tuple[ClusterQueueReport, tuple[QuotaRow, ...]], ...]
    cohorts: tuple[CohortView, ...] = ()


def queues_page(source: ConsoleSource, sight: Sight, request: PageRequest) -> PageView:
    engine = _engine(source)
    if engine is None:
        return _off("Queues")
    queues = engine.cluster_queues()
    locals_ = [one for one in engine.local_queues() if sight.sees(one.namespace)]
    queueing = source.options.queueing
    values = {
        "trees": _trees(engine.cohorts(), queues[:_MOST_QUEUES]),
        "hidden": max(0, len(queues) - _MOST_QUEUES),
        "is_fair": queueing is not None and queueing.fair_sharing is not None,
    }
    regions: dict[str, tuple[str, Mapping[str, Any]]] = {
        "queues": ("queues.html", values),
        "local": ("queues_local.html", {"queues": locals_}),
    }
    return PageView("Queues", regions)


def _trees(cohorts: Sequence[CohortReport], queues: Sequence[ClusterQueueReport]) -> list[CohortView]:
    below: dict[str, list[CohortReport]] = {}
    for one in cohorts:
        below.setdefault(one.parent, []).append(one)
    members: dict[str, list[ClusterQueueReport]] = {}
    known = {one.name for one in cohorts}
    for queue in queues:
        members.setdefault(queue.cohort if queue.cohort in known else "", []).append(queue)

    def view(one: CohortReport) -> CohortView:
        quotas = tuple(_cohort_quota(quota) for quota in one.quotas)
        return CohortView(one, quotas, _drawn(members.get(one.name, ())), tuple(map(view, below.get(one.name, ()))))

    trees = [view(one) for one in below.get("", ())]
    return [*trees, CohortView(None, (), _drawn(members[""]))] if "" in members else trees


def _drawn(
    queues: Iterable[ClusterQueueReport],
) -> tuple[tuple[ClusterQueueReport, tuple[QuotaRow, ...]], ...]:
    return tuple((queue, _quotas(queue)) for queue in queues)


def _cohort_quota(quota: CohortQuotaReport) -> QuotaRow:
    def shown(amount: float) -> str:
        return readable(quota.resource, amount)

    parts = [("used", "used", float(quota.used)), ("free", "free", float(max(0, quota.total - quota.used)))]
    picture = pictures.bar(f"{quota.resource} of {quota.flavor}", float(quota.total), parts, shown)
    return QuotaRow(quota.flavor, quota.resource, picture, shown(quota.used), shown(quota.total))


def queue_page(source: ConsoleSource, sight: Sight, request: PageRequest, name: str) -> PageView:
    engine = _engine(source)
    if engine is None:
        return _off(f"Queue {name}")
    queue = next((one for one in engine.cluster_queues() if one.name == name), None)
    if queue is None:
        return PageView(
            f"Queue {name}", {"queue": ("note.html", {"note": f"There is no ClusterQueue {name}."})}, status=404
        )
    lines = [one for one in engine.pending(name) if sight.sees(one.key.partition("/")[0])]
    values = {
        "lines": lines[:_MOST_LINES],
        "hidden": max(0, len(lines) - _MOST_LINES),
        "now": source.clock.time(),
        **(_starts(source) if lines else {}),
    }
    regions: dict[str, tuple[str, Mapping[str, Any]]] = {
        "queue": ("queue.html", {"queue": queue, "quotas": _quotas(queue)}),
        "line": ("queue_line.html", values),
    }
    return PageView(f"Queue {name}", regions)


def _starts(source: ConsoleSource) -> dict[str, Any]:
    """Expected starts as texts by key, what to think of them, and how old they are."""
    estimate = source.starts.look()
    if estimate is None:
        return {"starts": None, "trust": "", "age": 0.0}
    texts = {key: range_text(start) for key, start in estimate.starts.items()}
    trust = next((trust_text(start) for start in estimate.starts.values()), "")
    return {"starts": texts, "trust": estimate.problem or trust, "age": source.clock.time() - estimate.time}


def _start(source: ConsoleSource, key: str, *, waits: bool) -> list[str]:
    """What there is to say of the expected start of one."""
    estimate = source.starts.look() if waits else None
    if estimate is None:
        return ["being worked out"] if waits else []
    start = estimate.starts.get(key)
    return [estimate.problem or "not known"] if start is None else [*start_lines(start)]


def workload_page(source: ConsoleSource, sight: Sight, request: PageRequest, namespace: str, name: str) -> PageView:
    engine, title = _engine(source), f"Workload {namespace}/{name}"
    if engine is None:
        return _off(title)
    report = engine.explain(f"{namespace}/{name}")
    workload = engine.workload(f"{namespace}/{name}")
    if report is None or workload is None:
        return PageView(
            title, {"facts": ("note.html", {"note": f"There is no workload {namespace}/{name} now."})}, status=404
        )

    def waits(title: str, keys: Sequence[str]) -> tuple[str, list[str], int]:
        seen = [key for key in keys if sight.sees(key.partition("/")[0])]
        return title, seen, len(keys) - len(seen)

    values = {
        "report": report,
        "status": workload.status,
        "conditions": sorted(workload.status.conditions, key=lambda one: str(one.last_transition_time)),
        "now": source.clock.time(),
        "sight": sight,
        "start": _start(source, f"{namespace}/{name}", waits=report.position is not None),
        "behind": report.behind,
        "shortages": [(one, *_holders(sight, one)) for one in report.shortages],
        "waits": [
            waits("Waits for these to go", report.victims),
            waits("Waits for the pods of these", report.blocked_by),
        ],
    }
    return PageView(title, {"facts": ("workload.html", values)})


def _holders(sight: Sight, shortage: Shortage) -> tuple[list[tuple[str, str]], int]:
    """Who has most of what is missing, as far as this visitor may know, and how many more there are."""
    seen = [(key, readable(shortage.resource, amount)) for key, amount in shortage.holders]
    seen = [(key, amount) for key, amount in seen if sight.sees(key.partition("/")[0])][:_MOST_HOLDERS]
    return seen, len(shortage.holders) - len(seen)


def _engine(source: ConsoleSource) -> JobQueueing | None:
    queueing = source.process.queueing
    return None if queueing is None else queueing.controller.view()


def _off(title: str) -> PageView:
    note = "Workload queueing is off, or has not seen its objects yet: pilotage run has it with --workload-queueing."
    return PageView(title, {"queues": ("note.html", {"note": note})})


def _quotas(queue: ClusterQueueReport) -> tuple[QuotaRow, ...]:
    return tuple(_quota(one) for one in queue.quotas)


def _quota(quota: QuotaReport) -> QuotaRow:
    def shown(amount: float) -> str:
        return readable(quota.resource, amount)

    free = max(0, quota.nominal - quota.used)
    lent = max(0, free - quota.available)
    parts = [
        ("used", "used", float(quota.used - quota.borrowed)),
        ("borrowed", "borrowed", float(quota.borrowed)),
        ("lent", "lent", float(lent)),
        ("free", "free", float(free - lent)),
    ]
    limits = (("borrows at most", quota.borrowing_limit), ("lends at most", quota.lending_limit))
    return QuotaRow(
        quota.flavor,
        quota.resource,
        pictures.bar(f"{quota.resource} of {quota.flavor}", float(quota.nominal), parts, shown),
        shown(quota.used),
        shown(quota.nominal),
        shown(quota.borrowed),
        shown(lent),
        shown(quota.available),
        ", ".join(f"{text} {shown(limit)}" for text, limit in limits if limit is not None),
    )
