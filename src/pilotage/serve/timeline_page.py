"""`/debug/timeline`: what happened to a pod, as the scheduler remembers it."""

from __future__ import annotations

from pilotage.cycle.scheduler import Scheduler
from pilotage.queue.timeline import timeline
from pilotage.serve.page import Page, PageAnswer, PageRequest, json_answer, refusal


def timeline_page(scheduler: Scheduler) -> Page:
    """`?pod=NAMESPACE/NAME`; null if nothing is remembered of it."""

    def answer(request: PageRequest) -> PageAnswer:
        key = request.first("pod")
        if not key:
            return refusal(400, "BadRequest", "say which pod: ?pod=NAMESPACE/NAME")
        return json_answer(timeline(scheduler.queue, key))

    return answer
