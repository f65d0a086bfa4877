"""The way to the console on the secure port: a person logs in with a token, and sees what they may list.

    no token -> the form; POST of the form -> the API server says whose the token is -> cookie
    cookie   -> whose? -> may they list pods everywhere, or in the namespace that they ask for? nodes? -> page

Nothing is kept of anybody: the cookie is the token, which no script can read and no other site can send. What the
visitor may see goes with the request, and the pages show nothing beyond.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qs, urlsplit

import msgspec
from msgspec import Struct

from pilotage.clock import Clock
from pilotage.serve.access import Authorizer, CannotDecide
from pilotage.serve.identity import (
    ANONYMOUS,
    Authenticator,
    CannotAuthenticate,
    ClientCertificate,
    NotAuthenticated,
    User,
)
from pilotage.serve.page import PageAnswer, PageRequest, error_answer, text_answer
from pilotage.serve.request_access import ResourceAccess
from pilotage.serve.review_limits import Refusals, TooManyReviews

CONSOLE: Final = "/console"
LOGIN: Final = f"{CONSOLE}/login"
LOGOUT: Final = f"{CONSOLE}/logout"
LIVE: Final = f"{CONSOLE}/live"
_STATIC: Final = f"{CONSOLE}/static/"
_SIGHT: Final = "pilotage-sight"
_COOKIE: Final = "pilotage-token"
_WITH_NAMESPACE: Final = ("pods", "podgroups", "workloads")
_COOKIE_ATTRIBUTES: Final = f"Path={CONSOLE}; HttpOnly; Secure; SameSite=Strict"

log = logging.getLogger(__name__)


class Sight(Struct, frozen=True):
    """What a visitor may see. Whoever may not list the pods of a namespace does not learn their names."""

    namespaces: frozenset[str] | None = None
    """None: all."""
    nodes: bool = True

    def sees(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces


def is_of_console(path: str) -> bool:
    return path == CONSOLE or path.startswith(f"{CONSOLE}/")


def sight_of(request: PageRequest) -> Sight | None:
    """What the door has found out about the visitor; None if the request did not come through it."""
    text = request.headers.get(_SIGHT)
    return None if text is None else msgspec.json.decode(text, type=Sight)


def cookie_of(request: PageRequest, name: str) -> str:
    try:
        found = SimpleCookie(request.headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def redirect(path: str, *headers: tuple[str, str]) -> PageAnswer:
    """To a page of the console; a path that is none leads to the first page."""
    target = path if path.startswith(f"{CONSOLE}/") and path.isprintable() and path.isascii() else f"{CONSOLE}/"
    return PageAnswer(303, b"", headers=(("Location", target), *headers))


class ConsoleDoor:
    """Finds out who comes and what they may see."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer, clock: Clock) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._refusals = Refusals(clock)

    async def let_in(self, request: PageRequest, certificate: ClientCertificate | None) -> PageRequest | PageAnswer:
        """The request with what its visitor may see, or what to answer instead."""
        plain = _without_claims(request)
        if request.path.startswith(_STATIC):
            return _with_sight(plain, Sight(frozenset(), nodes=False))
        try:
            if request.path == LOGOUT:
                return redirect(LOGIN, ("Set-Cookie", f"{_COOKIE}=; Max-Age=0; {_COOKIE_ATTRIBUTES}"))
            if request.path == LOGIN:
                return await self._log_in(plain)
            user = await self._user(plain, certificate)
            if user is None:
                return _unknown(plain)
            return _with_sight(plain, await self._sight(user, plain))
        except TooManyReviews as error:
            return error_answer(429, "TooManyRequests", str(error))
        except (CannotAuthenticate, CannotDecide) as error:
            log.warning("console: %s", error)
            return text_answer(
                "The API server cannot be asked now who you are and what you may see. Try again soon.", 503
            )

    async def _log_in(self, request: PageRequest) -> PageRequest | PageAnswer:
        form = _with_sight(request, Sight(frozenset(), nodes=False))
        if request.method != "POST":
            return form
        if not _is_own_form(request):
            return error_answer(403, "Forbidden", "this form was sent from another site")
        if self._refusals.are_too_many(request.address):
            return error_answer(429, "TooManyRequests", "you were refused too often; try again in some seconds")
        token = parse_qs(request.body.decode("ascii", "replace"), max_num_fields=5).get("token", [""])[0].strip()
        if not token or not _is_token(token) or await self._user(_with_token(request, token), None) is None:
            self._refusals.note(request.address)
            return replace(form, method="GET", query={"failed": ["true"]})
        return redirect(f"{CONSOLE}/", ("Set-Cookie", f"{_COOKIE}={token}; {_COOKIE_ATTRIBUTES}"))

    async def _user(self, request: PageRequest, certificate: ClientCertificate | None) -> User | None:
        token = cookie_of(request, _COOKIE)
        if token and _is_token(token) and "authorization" not in request.headers:
            request = _with_token(request, token)
        try:
            user = await self._authenticator.user(request, certificate)
        except CannotAuthenticate:
            raise
        except NotAuthenticated as error:
            log.info("console: refused: %s", error)
            return None
        return None if user.name == ANONYMOUS.name else user

    async def _sight(self, user: User, request: PageRequest) -> Sight:
        nodes = await self._may_list(user, "nodes", "")
        if await self._may_list(user, "pods", ""):
            return Sight(None, nodes)
        namespace = namespace_asked_for(request)
        allowed = bool(namespace) and await self._may_list(user, "pods", namespace)
        return Sight(frozenset({namespace} if allowed else ()), nodes)

    async def _may_list(self, user: User, resource: str, namespace: str) -> bool:
        return await self._authorizer.is_allowed(user, ResourceAccess("list", "", "v1", resource, namespace=namespace))


def namespace_asked_for(request: PageRequest) -> str:
    """The namespace that a page is about: in its path, or `?namespace=`; of a live page, those of the page."""
    path, query = request.path, request.query
    if path == LIVE:
        shown = urlsplit(request.first("view"))
        path, query = shown.path, parse_qs(shown.query, max_num_fields=20)
    match path.removeprefix(CONSOLE).strip("/").split("/"):
        case [kind, namespace, _] if kind in _WITH_NAMESPACE:
            return namespace
        case _:
            return next(iter(query.get("namespace", ())), "")


def _unknown(request: PageRequest) -> PageAnswer:
    if request.path == LIVE:
        return error_answer(401, "Unauthorized", "log in again")
    return redirect(LOGIN)


def _is_own_form(request: PageRequest) -> bool:
    origin = request.headers.get("origin", "")
    return not origin or origin == "null" or urlsplit(origin).netloc == request.headers.get("host", "")


def _is_token(text: str) -> bool:
    """Only what may stand in a header and in a cookie."""
    return text.isascii() and text.isprintable() and not set(text) & set(' ",;\\')


def _with_token(request: PageRequest, token: str) -> PageRequest:
    return replace(request, headers={**request.headers, "authorization": f"Bearer {token}"})


def _without_claims(request: PageRequest) -> PageRequest:
    """What a visitor says about their own rights does not count."""
    return replace(request, headers={name: value for name, value in request.headers.items() if name != _SIGHT})


def _with_sight(request: PageRequest, sight: Sight) -> PageRequest:
    return replace(request, headers={**request.headers, _SIGHT: msgspec.json.encode(sight).decode()})
