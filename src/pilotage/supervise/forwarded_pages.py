"""The pages as the supervisor has them: health from what it knows itself, everything else from the scheduler.

The scheduler answers between two cycles. One that is busy for longer than a visitor should wait is not waited for, and
no more than a few visitors wait at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from pilotage.observe.transfer import Difference
from pilotage.serve.health import HealthPage
from pilotage.serve.page import PageAnswer, PageRequest, error_answer
from pilotage.serve.site import Site
from pilotage.supervise.messages import PageAnswered, PageAsked

PATIENCE_SECONDS: Final = 10.0
MOST_AT_ONCE: Final = 32
_NOT_FORWARDED: Final = frozenset({"authorization", "cookie"})


class ForwardedPages:
    """`ask` sends a question to the scheduler, `answered` brings its answer."""

    def __init__(self, health: Sequence[HealthPage], measured: Difference, ask: Callable[[PageAsked], None]) -> None:
        self._names = {page.name for page in health}
        self._health = Site({path: page for page in health for path in (f"/{page.name}", f"/{page.name}/")})
        self._measured = measured
        self._ask = ask
        self._waiting: dict[int, asyncio.Future[PageAnswer]] = {}
        self._asked = 0
        self.is_open = False
        """Whether there is a scheduler that answers."""

    async def reply(self, request: PageRequest) -> PageAnswer:
        if request.path.split("/", 2)[1] in self._names:
            return self._health.answer(request)
        if not self.is_open:
            return error_answer(503, "ServiceUnavailable", "the scheduler is starting or ending")
        if len(self._waiting) >= MOST_AT_ONCE:
            return error_answer(503, "ServiceUnavailable", f"{MOST_AT_ONCE} requests wait for the scheduler already")
        return await self._forwarded(request)

    def answered(self, answer: PageAnswered) -> None:
        waiting = self._waiting.pop(answer.number, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(PageAnswer(answer.status, answer.body, answer.content_type, answer.headers))

    async def _forwarded(self, request: PageRequest) -> PageAnswer:
        self._asked += 1
        number, waiting = self._asked, asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        headers = {name: value for name, value in request.headers.items() if name not in _NOT_FORWARDED}
        self._ask(
            PageAsked(number, request.path, request.method, request.query, headers, request.body, self._measured.take())
        )
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                answer: PageAnswer = await waiting
                return answer
        except TimeoutError:
            problem = f"the scheduler is busy and has not answered within {PATIENCE_SECONDS:g} s; try again"
            return error_answer(504, "Timeout", problem)
        finally:
            self._waiting.pop(number, None)
