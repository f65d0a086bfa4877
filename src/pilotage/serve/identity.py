"""Who asks: by bearer token (the API server is asked whose it is), by client certificate, or nobody in particular."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import msgspec

from pilotage.clock import Clock
from pilotage.kube.transport import Transport, TransportError
from pilotage.serve.remembered import Remembered

log = logging.getLogger(__name__)

_TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_COMMON_NAME: Final = "commonName"
_ORGANIZATION: Final = "organizationName"


@dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


ANONYMOUS: Final = User("system:anonymous", ("system:unauthenticated",))


class NotAuthenticated(Exception):
    """Credentials were given, and they are nobody's."""


class _TokenUser(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: _TokenUser = _TokenUser()
    error: str = ""


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class Authenticator(Protocol):
    async def user(self, authorization: str, certificate: Mapping[str, Any] | None) -> User:
        """Who sends these headers over a connection with this client certificate; NotAuthenticated if it is a lie."""


class DelegatedAuthenticator:
    """Certificates were verified by TLS already; tokens are the API server's business, remembered for a while."""

    def __init__(self, transport: Transport, clock: Clock, remember_seconds: float = 10.0) -> None:
        self._transport = transport
        self._known: Remembered[str, User | None] = Remembered(clock, remember_seconds)

    async def user(self, authorization: str, certificate: Mapping[str, Any] | None) -> User:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            return await self._token_user(token.strip())
        if certificate:
            return user_of_certificate(certificate)
        return ANONYMOUS

    async def _token_user(self, token: str) -> User:
        found, user = self._known.get(token)
        if not found:
            user = await self._review(token)
            self._known.put(token, user)
        if user is None:
            raise NotAuthenticated("the API server does not know the token")
        return user

    async def _review(self, token: str) -> User | None:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        try:
            answer = await self._transport.request("POST", _TOKEN_REVIEWS, body=msgspec.json.encode(review))
            if answer.status >= 300:
                raise NotAuthenticated(f"the API server refuses to review tokens (HTTP {answer.status})")
            status = msgspec.json.decode(answer.body, type=_TokenReview).status
        except (TransportError, msgspec.DecodeError) as error:
            raise NotAuthenticated(f"the token cannot be reviewed: {error}") from error
        if not status.authenticated:
            return None
        user = status.user
        return User(user.username, user.groups, user.uid, user.extra)


def user_of_certificate(certificate: Mapping[str, Any]) -> User:
    """Common name and organizations, as the API server reads them. `certificate` is what `getpeercert` says."""
    fields = [(name, value) for part in certificate.get("subject", ()) for name, value in part]
    name = next((value for key, value in fields if key == _COMMON_NAME), "")
    if not name:
        raise NotAuthenticated("the client certificate has no common name")
    groups = tuple(value for key, value in fields if key == _ORGANIZATION)
    return User(name, (*groups, "system:authenticated"))
