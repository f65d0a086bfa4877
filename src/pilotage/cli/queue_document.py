"""The queue of a running scheduler over HTTP: what an embedded cluster serves and `pilotage queue` reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from pilotage.queue.report import QueueReport, queue_report
from pilotage.queue.scheduling_queue import SchedulingQueue
from pilotage.sandbox.http.exchange import Request, Response

QUEUE_PATH: Final = "/pilotage/v1/queue"
DEFAULT_LIMIT: Final = 500


def queue_document(queue: SchedulingQueue) -> Callable[[Request], Response]:
    """Answers with the queue as it is at that moment; `?limit=N` for the pods of each part."""

    def answer(request: Request) -> Response:
        text = request.query.get("limit", "")
        limit = int(text) if text.isdigit() else DEFAULT_LIMIT
        return Response(200, msgspec.json.encode(queue_report(queue, queue.now(), limit)))

    return answer


def decode_report(body: bytes) -> QueueReport:
    return msgspec.json.decode(body, type=QueueReport)
