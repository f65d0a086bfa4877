"""The console on loopback: whoever has the key, and nobody else."""

from __future__ import annotations

from pilotage.console.local import KeyedConsole
from pilotage.serve.page import PageRequest

from .looked_at import looked_at

KEY = "k_-ey"


async def test_link_gives_a_cookie_and_the_cookie_opens_the_pages() -> None:
    async with looked_at() as seen:
        keyed = KeyedConsole(seen.console, KEY)
        first = await keyed.reply(PageRequest("/", query={"key": [KEY]}))
        assert first.status == 303 and dict(first.headers)["Location"] == f"/console/?key={KEY}"
        second = await keyed.reply(PageRequest("/console/", query={"key": [KEY]}))
        headers = dict(second.headers)
        assert second.status == 303 and headers["Location"] == "/console/"
        cookie = headers["Set-Cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        page = await keyed.reply(PageRequest("/console/", headers={"cookie": cookie.partition(";")[0]}))
        assert page.status == 200 and b"Overview" in page.body


async def test_without_the_key_there_is_nothing_to_see() -> None:
    async with looked_at() as seen:
        keyed = KeyedConsole(seen.console, KEY)
        for request in (
            PageRequest("/console/"),
            PageRequest("/console/", query={"key": ["wrong"]}),
            PageRequest("/console/", headers={"cookie": "pilotage-console=wrong"}),
            PageRequest("/console/live", headers={"cookie": "\x00;=;"}),
            PageRequest("/console/", query={"key": ["\u00e9"]}),
        ):
            answer = await keyed.reply(request)
            assert answer.status == 401 and b"Overview" not in answer.body


async def test_redirect_of_the_link_leads_nowhere_else() -> None:
    async with looked_at() as seen:
        keyed = KeyedConsole(seen.console, KEY)
        for path in ("//evil.example/console/", "/console\r\nSet-Cookie: x=y", "/other"):
            answer = await keyed.reply(PageRequest(path, query={"key": [KEY]}))
            assert dict(answer.headers)["Location"] == "/console/"
