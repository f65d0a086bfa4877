"""The metrics of a running scheduler over HTTP: what an embedded cluster serves at `/metrics`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pilotage.assembly import SchedulerProcess
from pilotage.observe.exposition import render
from pilotage.sandbox.http.exchange import Request, Response

METRICS_PATH: Final = "/metrics"


def metrics_document(process: SchedulerProcess) -> Callable[[Request], Response]:
    """Answers in the text format of Prometheus, with those of workload queueing if that is on."""
    tables = [process.scheduler.metrics, *([process.queueing.metrics] if process.queueing is not None else [])]

    def answer(request: Request) -> Response:
        body, content_type = render(request.headers.get("accept", ""), *tables)
        return Response(200, body, content_type)

    return answer
