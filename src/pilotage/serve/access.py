"""Who may see what: some paths are open, for all others the API server decides (SubjectAccessReview)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import msgspec

from pilotage.clock import Clock
from pilotage.kube.transport import Transport, TransportError
from pilotage.serve.identity import User
from pilotage.serve.remembered import Remembered
from pilotage.serve.request_access import Access
from pilotage.serve.review_limits import LimitedReviews

_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
OPEN_PATHS: Final = ("/healthz", "/readyz", "/livez")


class _AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False
    denied: bool = False


class _AccessReview(msgspec.Struct, frozen=True):
    status: _AccessStatus = _AccessStatus()


class CannotDecide(Exception):
    """The API server did not say whether it is allowed."""


class Authorizer(Protocol):
    def is_open(self, path: str) -> bool:
        """Whether everyone may see this path."""

    async def is_allowed(self, user: User, access: Access) -> bool:
        """Whether this user may; CannotDecide if that cannot be found out."""


class DelegatedAuthorizer:
    """Asks the API server; yes and no are remembered for a while."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        *,
        open_paths: Sequence[str] = OPEN_PATHS,
        allowed_seconds: float = 10.0,
        refused_seconds: float = 10.0,
    ) -> None:
        self._reviews = LimitedReviews(transport)
        self._open = tuple(open_paths)
        self._allowed_seconds = allowed_seconds
        self._refused_seconds = refused_seconds
        self._known: Remembered[tuple[User, Access], bool] = Remembered(clock, allowed_seconds)

    def is_open(self, path: str) -> bool:
        """A path itself, or everything below it if it is written with `*` at the end."""
        return any(_covers(pattern, path) for pattern in self._open)

    async def is_allowed(self, user: User, access: Access) -> bool:
        question = (user, access)
        found, answer = self._known.get(question)
        if not found:
            answer = await self._review(user, access)
            self._known.put(question, answer, self._allowed_seconds if answer else self._refused_seconds)
        return bool(answer)

    async def _review(self, user: User, access: Access) -> bool:
        spec: dict[str, Any] = {"user": user.name, "groups": user.groups, **access.attributes()}
        if user.uid:
            spec["uid"] = user.uid
        if user.extra:
            spec["extra"] = user.extra
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        try:
            answer = await self._reviews.review(_ACCESS_REVIEWS, msgspec.json.encode(review))
            if answer.status >= 300:
                raise CannotDecide(
                    f"the API server refuses to review access (HTTP {answer.status}); bind system:auth-delegator"
                )
            status = msgspec.json.decode(answer.body, type=_AccessReview).status
        except (TransportError, msgspec.DecodeError) as error:
            raise CannotDecide(f"access cannot be reviewed: {error}") from error
        return status.allowed and not status.denied


def _covers(pattern: str, path: str) -> bool:
    if pattern.endswith("*"):
        return path.startswith(pattern[:-1])
    return path == pattern
