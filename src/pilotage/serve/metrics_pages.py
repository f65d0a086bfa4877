"""`/metrics` and `/metrics/slis`: what Prometheus scrapes."""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.observe.declaration import MetricTable
from pilotage.observe.declaration import Page as MetricPage
from pilotage.observe.metrics import Metrics
from pilotage.serve.health import HealthPage, OnResult
from pilotage.serve.page import Page, PageAnswer, PageRequest, error_answer, text_answer


def metrics_page(tables: Sequence[MetricTable], page: MetricPage = "metrics") -> Page:
    """The values of this moment; DELETE starts them again from nothing."""

    def answer(request: PageRequest) -> PageAnswer:
        if request.method == "DELETE":
            for table in tables:
                table.clear()
            return text_answer("metrics reset\n")
        if request.method not in ("GET", "HEAD"):
            return error_answer(405, "MethodNotAllowed", f"{request.method} is not possible here")
        from pilotage.observe.exposition import render

        body, content_type = render(request.headers.get("accept", ""), *tables, page=page)
        return PageAnswer(200, body, content_type)

    return answer


def slis_page(metrics: Metrics, health: Sequence[HealthPage]) -> Page:
    """The health checks as metrics: each is made once more on each scrape."""
    shown = metrics_page([metrics], "slis")

    def answer(request: PageRequest) -> PageAnswer:
        for page in health:
            page.problems()
        return shown(request)

    return answer


def count_checks(metrics: Metrics) -> OnResult:
    def on_result(page: str, check: str, passes: bool) -> None:
        metrics.kubernetes_healthcheck.set(1 if passes else 0, check, page)
        metrics.kubernetes_healthchecks_total.add(check, page, "success" if passes else "error")

    return on_result
