"""The console for the person at this machine: on loopback, behind a key that stands in the link.

The link is opened once; from then on the key is in a cookie, which no script can read and no other site can use. So
other users of the machine see nothing, and neither does a page that a browser was led to.
"""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import quote

from pilotage.clock import Clock
from pilotage.console.site import PREFIX, ConsolePages
from pilotage.serve.console_door import Sight, cookie_of, redirect
from pilotage.serve.listening import Doors, loopback_http
from pilotage.serve.page import PageAnswer, PageRequest, text_answer

_COOKIE: Final = "pilotage-console"
_EVERYTHING: Final = Sight()
_NO_KEY: Final = "This console belongs to whoever started it: open the link that it printed, with the key in it."


class KeyedConsole:
    """A console for whoever has the key."""

    def __init__(self, console: ConsolePages, key: str) -> None:
        self._console = console
        self._key = key

    async def reply(self, request: PageRequest) -> PageAnswer:
        if request.path in ("", "/"):
            return redirect(f"{PREFIX}/{_query(request)}")
        shown = request.first("key")
        if shown and self._is_key(shown):
            cookie = f"{_COOKIE}={self._key}; Path={PREFIX}; HttpOnly; SameSite=Strict"
            return redirect(request.path, ("Set-Cookie", cookie))
        if not self._is_key(cookie_of(request, _COOKIE)):
            return text_answer(_NO_KEY, 401)
        return self._console.answer(request, _EVERYTHING)

    def _is_key(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._key.encode())


@asynccontextmanager
async def local_console(console: ConsolePages, key: str, port: int, clock: Clock) -> AsyncIterator[str]:
    """Serve until the context is left; yields the link. CannotListen if the port is taken (0: a free one)."""
    async with loopback_http(KeyedConsole(console, key), port, Doors(clock)) as bound:
        yield f"http://127.0.0.1:{bound}{PREFIX}/?key={key}"


def _query(request: PageRequest) -> str:
    key = request.first("key")
    return f"?key={quote(key, safe='')}" if key else ""
