"""Who asks: by client certificate, by bearer token (the API server is asked whose it is), or anonymous."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import msgspec

from pilotage.clock import Clock
from pilotage.kube.transport import Transport, TransportError
from pilotage.serve.page import PageRequest
from pilotage.serve.remembered import Remembered
from pilotage.serve.review_limits import LimitedReviews

log = logging.getLogger(__name__)

_TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_COMMON_NAME: Final = "commonName"
_ORGANIZATION: Final = "organizationName"
_SERVER_ERROR: Final = 500
_AUTHENTICATED: Final = "system:authenticated"


@dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


ANONYMOUS: Final = User("system:anonymous", ("system:unauthenticated",))


class NotAuthenticated(Exception):
    """Credentials were given, and they are no user's."""


class CannotAuthenticate(NotAuthenticated):
    """Credentials were given, and nobody can say now whose they are."""


def with_all_authenticated(user: User) -> User:
    """The user as a member of the group of all whose identity is known."""
    if user.name == ANONYMOUS.name or _AUTHENTICATED in user.groups or ANONYMOUS.groups[0] in user.groups:
        return user
    return replace(user, groups=(*user.groups, _AUTHENTICATED))


class ClientCertificate(msgspec.Struct, frozen=True):
    """What a client has shown, and TLS has verified. `fields` is what `getpeercert` says."""

    fields: Mapping[str, Any]
    der: bytes = b""

    @property
    def common_name(self) -> str:
        return next(iter(self._subject(_COMMON_NAME)), "")

    def user(self) -> User:
        """Common name and organizations, as the API server reads them."""
        if not self.common_name:
            raise NotAuthenticated("the client certificate has no common name")
        return with_all_authenticated(User(self.common_name, tuple(self._subject(_ORGANIZATION))))

    def _subject(self, name: str) -> Iterator[str]:
        return (value for part in self.fields.get("subject", ()) for key, value in part if key == name)


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
    def certain_user(self, request: PageRequest, certificate: ClientCertificate | None) -> User | None:
        """The user, if that is certain without a request: the owner of a client certificate, or for whom it speaks.

        NotAuthenticated if the certificate is no user's."""

    async def user(self, request: PageRequest, certificate: ClientCertificate | None) -> User:
        """Who sends this request over a connection with this client certificate; NotAuthenticated if it is a lie."""


class CertificateReader(Protocol):
    def user(self, certificate: ClientCertificate, lines: Sequence[tuple[str, str]]) -> User:
        """The user of a verified certificate, or for whom its owner speaks in the headers; else NotAuthenticated."""


class DelegatedAuthenticator:
    """Certificates were verified by TLS already; tokens are the API server's business, remembered for a while."""

    def __init__(
        self, transport: Transport, clock: Clock, certificates: CertificateReader, remember_seconds: float = 10.0
    ) -> None:
        self._reviews = LimitedReviews(transport)
        self._certificates = certificates
        self._known: Remembered[str, User | None] = Remembered(clock, remember_seconds)

    def certain_user(self, request: PageRequest, certificate: ClientCertificate | None) -> User | None:
        if certificate is None or _bearer_token(request):
            return None
        return self._certificates.user(certificate, request.lines)

    async def user(self, request: PageRequest, certificate: ClientCertificate | None) -> User:
        token = _bearer_token(request)
        if token:
            return await self._token_user(token)
        return self.certain_user(request, certificate) or ANONYMOUS

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
            answer = await self._reviews.review(_TOKEN_REVIEWS, msgspec.json.encode(review))
            if answer.status >= 300:
                refused = CannotAuthenticate if answer.status >= _SERVER_ERROR else NotAuthenticated
                raise refused(f"the API server refuses to review tokens (HTTP {answer.status})")
            status = msgspec.json.decode(answer.body, type=_TokenReview).status
        except (TransportError, msgspec.DecodeError) as error:
            raise CannotAuthenticate(f"the token cannot be reviewed: {error}") from error
        if not status.authenticated:
            return None
        user = status.user
        return User(user.username, user.groups, user.uid, user.extra)


def _bearer_token(request: PageRequest) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
