"""The queue of a running scheduler over HTTP: what an embedded cluster serves and `pilotage queue` reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from pilotage.cycle.report import SchedulerReport, scheduler_report, selection_of
from pilotage.cycle.scheduler import Scheduler
from pilotage.escaping import visible_json
from pilotage.sandbox.http.exchange import Request, Response

QUEUE_PATH: Final = "/pilotage/v1/queue"


def queue_document(scheduler: Scheduler) -> Callable[[Request], Response]:
    """Answers with the queue as it is at that moment, and the calls; `selection_of` has the parameters."""

    def answer(request: Request) -> Response:
        selection = selection_of(lambda name: request.query.get(name, ""))
        document = msgspec.json.encode(scheduler_report(scheduler, selection))
        return Response(200, visible_json(document.decode()).encode())

    return answer


def decode_report(body: bytes) -> SchedulerReport:
    return msgspec.json.decode(body, type=SchedulerReport)
