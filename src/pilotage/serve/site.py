"""All pages under their paths, behind the question who asks and whether they may.

    path is open -> page
    otherwise    -> who? (401) -> may they? (403) -> page (404 if there is none)

A stranger does not learn which pages exist: the permission is asked for first. The console has a door of its own, which
asks people for a token (`console_door.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from pilotage.clock import Clock
from pilotage.serve.access import Authorizer, CannotDecide
from pilotage.serve.console_door import ConsoleDoor, is_of_console
from pilotage.serve.identity import Authenticator, ClientCertificate, NotAuthenticated
from pilotage.serve.page import Page, PageAnswer, PageRequest, error_answer
from pilotage.serve.request_access import access_of
from pilotage.serve.review_limits import Refusals, TooManyReviews

log = logging.getLogger(__name__)


class Pages(Protocol):
    """Whatever has an answer to a request whose visitor may see everything."""

    async def reply(self, request: PageRequest) -> PageAnswer: ...


class Site:
    """Pages by path. A path that ends in a slash is that of everything below it."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self._pages = dict(pages)

    @property
    def paths(self) -> list[str]:
        return sorted(path for path in self._pages if not path.endswith("/"))

    def answer(self, request: PageRequest) -> PageAnswer:
        """Without any question: for those who may see everything."""
        page = self._pages.get(request.path) or self._below(request.path)
        if page is None:
            return error_answer(404, "NotFound", f"no such page; there are {' '.join(self.paths)}")
        try:
            return page(request)
        except Exception as error:
            log.exception("page failed: path=%s", request.shown_path)
            return error_answer(500, "InternalError", f"{type(error).__name__}: {error}")

    async def reply(self, request: PageRequest) -> PageAnswer:
        return self.answer(request)

    def _below(self, path: str) -> Page | None:
        parent = path.rpartition("/")[0]
        while parent:
            if f"{parent}/" in self._pages:
                return self._pages[f"{parent}/"]
            parent = parent.rpartition("/")[0]
        return None


class GuardedSite:
    """A site for the network."""

    def __init__(self, site: Pages, authenticator: Authenticator, authorizer: Authorizer, clock: Clock) -> None:
        self._site = site
        self._console = ConsoleDoor(authenticator, authorizer, clock)
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._refusals = Refusals(clock)

    async def answer(self, request: PageRequest, certificate: ClientCertificate | None) -> PageAnswer:
        if is_of_console(request.path):
            entered = await self._console.let_in(request, certificate)
            return entered if isinstance(entered, PageAnswer) else await self._site.reply(entered)
        if not self._authorizer.is_open(request.path):
            refused = await self._refusal(request, certificate)
            if refused is not None:
                return refused
        return await self._site.reply(request)

    async def _refusal(self, request: PageRequest, certificate: ClientCertificate | None) -> PageAnswer | None:
        """None if the visitor may see it."""
        visitor = request.address
        try:
            user = self._authenticator.certain_user(request, certificate)
            if user is not None:
                visitor = f"user {user.name}"
            if self._refusals.are_too_many(visitor):
                return error_answer(429, "TooManyRequests", "you were refused too often; try again in some seconds")
            user = user or await self._authenticator.user(request, certificate)
            access = access_of(request)
            if await self._authorizer.is_allowed(user, access):
                return None
            answer = error_answer(403, "Forbidden", access.refused(user.name))
        except NotAuthenticated as error:
            log.info("refused: path=%s reason=%s", request.shown_path, error)
            answer = error_answer(401, "Unauthorized", "Unauthorized")
        except CannotDecide as error:
            log.warning("refused: path=%s reason=%s", request.shown_path, error)
            return error_answer(500, "InternalError", "it could not be decided whether this is allowed")
        except TooManyReviews as error:
            return error_answer(429, "TooManyRequests", str(error))
        self._refusals.note(visitor)
        return answer
