"""What the API server of an embedded cluster serves of the scheduler beside it: its queue, the timelines of pods, its
metrics, and the visibility API of workload queueing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pilotage.assembly import SchedulerProcess
from pilotage.cli.scheduler_address import SANDBOX_QUEUE, SANDBOX_TIMELINE
from pilotage.cycle.report import scheduler_report, selection_of
from pilotage.cycle.scheduling_loop import SchedulingLoop
from pilotage.escaping import visible_json
from pilotage.jobs.visibility import VisibilityApi
from pilotage.jobs.visibility_discovery import GROUP, aggregated_document, group_document
from pilotage.observe.exposition import render
from pilotage.queue.scheduling_queue import SchedulingQueue
from pilotage.queue.timeline import timeline
from pilotage.sandbox.http.exchange import Request, ServerResponse, json_response
from pilotage.sandbox.http.extensions import ExtensionGroup
from pilotage.sandbox.http.server import ApiServer

_Document = Callable[[Request], ServerResponse]


def add_pages(server: ApiServer, process: SchedulerProcess) -> None:
    server.add_document(SANDBOX_QUEUE, queue_document(process.scheduler))
    server.add_document(SANDBOX_TIMELINE, _timeline_document(process.scheduler.queue))
    server.add_document("/metrics", _metrics_document(process))
    if process.queueing is not None:
        server.add_group(visibility_group(process.queueing.visibility))


def queue_document(scheduler: SchedulingLoop) -> _Document:
    """Answers with the queue as it is at that moment, and the calls; `selection_of` has the parameters."""

    def answer(request: Request) -> ServerResponse:
        return _json(scheduler_report(scheduler, selection_of(lambda name: request.query.get(name, ""))))

    return answer


def _timeline_document(queue: SchedulingQueue) -> _Document:
    """Answers `?pod=NAMESPACE/NAME` with what is remembered; null if nothing is."""

    def answer(request: Request) -> ServerResponse:
        return _json(timeline(queue, request.query.get("pod", "")))

    return answer


def _metrics_document(process: SchedulerProcess) -> _Document:
    """Answers in the text format of Prometheus, with those of workload queueing if that is on."""
    tables = [process.scheduler.metrics, *([process.queueing.metrics] if process.queueing is not None else [])]

    def answer(request: Request) -> ServerResponse:
        return ServerResponse(200, *render(request.headers.get("accept", ""), *tables))

    return answer


def visibility_group(api: VisibilityApi) -> ExtensionGroup:
    def answer(request: Request) -> ServerResponse:
        code, document = api.answer(request.method, request.path, request.query)
        return json_response(document, code)

    return ExtensionGroup(GROUP, group_document(), aggregated_document(), answer)


def _json(value: Any) -> ServerResponse:
    return ServerResponse(200, visible_json(msgspec.json.encode(value).decode()).encode())
