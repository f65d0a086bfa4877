"""The queue of a running scheduler over HTTP: what an embedded cluster serves and `pilotage queue` reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from pilotage.calls.dispatcher import Dispatcher
from pilotage.cycle.report import SchedulerReport, scheduler_report
from pilotage.queue.scheduling_queue import SchedulingQueue
from pilotage.sandbox.http.exchange import Request, Response

QUEUE_PATH: Final = "/pilotage/v1/queue"
DEFAULT_LIMIT: Final = 500


def queue_document(queue: SchedulingQueue, dispatcher: Dispatcher) -> Callable[[Request], Response]:
    """Answers with the queue as it is at that moment; `?limit=N` for the pods of each part, and the calls."""

    def answer(request: Request) -> Response:
        text = request.query.get("limit", "")
        limit = int(text) if text.isdigit() else DEFAULT_LIMIT
        return Response(200, msgspec.json.encode(scheduler_report(queue, dispatcher, limit)))

    return answer


def decode_report(body: bytes) -> SchedulerReport:
    return msgspec.json.decode(body, type=SchedulerReport)
