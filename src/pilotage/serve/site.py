"""All pages under their paths, behind the question who asks and whether they may.

    path is open -> page
    otherwise    -> who? (401) -> may they? (403) -> page (404 if there is none)

A stranger is not told which pages exist: the permission is asked for first.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pilotage.serve.access import Authorizer, CannotDecide
from pilotage.serve.identity import Authenticator, ClientCertificate, NotAuthenticated
from pilotage.serve.page import Page, PageAnswer, PageRequest, refusal
from pilotage.serve.request_access import access_of

log = logging.getLogger(__name__)


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
            return refusal(404, "NotFound", f"no such page; there are {' '.join(self.paths)}")
        try:
            return page(request)
        except Exception as error:
            log.exception("page failed: path=%s", request.path)
            return refusal(500, "InternalError", f"{type(error).__name__}: {error}")

    def _below(self, path: str) -> Page | None:
        parent = path.rpartition("/")[0]
        while parent:
            if f"{parent}/" in self._pages:
                return self._pages[f"{parent}/"]
            parent = parent.rpartition("/")[0]
        return None


class GuardedSite:
    """A site for the network."""

    def __init__(self, site: Site, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._site = site
        self._authenticator = authenticator
        self._authorizer = authorizer

    async def answer(self, request: PageRequest, certificate: ClientCertificate | None) -> PageAnswer:
        if self._authorizer.is_open(request.path):
            return self._site.answer(request)
        try:
            user = await self._authenticator.user(request, certificate)
            access = access_of(request)
            if not await self._authorizer.is_allowed(user, access):
                return refusal(403, "Forbidden", access.refused(user.name))
        except NotAuthenticated as error:
            log.info("refused: path=%s reason=%s", request.path, error)
            return refusal(401, "Unauthorized", "Unauthorized")
        except CannotDecide as error:
            log.warning("refused: path=%s reason=%s", request.path, error)
            return refusal(500, "InternalError", "it could not be decided whether this is allowed")
        return self._site.answer(request)
