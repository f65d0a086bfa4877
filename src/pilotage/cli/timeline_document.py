"""The story of a pod over HTTP: what an embedded cluster serves and `pilotage explain --timeline` reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from pilotage.escaping import visible_json
from pilotage.queue.scheduling_queue import SchedulingQueue
from pilotage.queue.timeline import Timeline, timeline
from pilotage.sandbox.http.exchange import Request, Response

TIMELINE_PATH: Final = "/pilotage/v1/timeline"


def timeline_document(queue: SchedulingQueue) -> Callable[[Request], Response]:
    """Answers `?pod=NAMESPACE/NAME` with what is remembered; null if nothing is."""

    def answer(request: Request) -> Response:
        document = msgspec.json.encode(timeline(queue, request.query.get("pod", "")))
        return Response(200, visible_json(document.decode()).encode())

    return answer


def decode_timeline(body: bytes) -> Timeline | None:
    return msgspec.json.decode(body, type=Timeline | None)
