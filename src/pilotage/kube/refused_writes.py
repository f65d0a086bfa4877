"""Writes that the API server refuses: counted, and logged once with what to do about it.

A scheduler that lacks a permission is refused the same thing for every pod. Each kind of write is logged when it is
refused for the first time, again only if it worked meanwhile (what is allowed in one namespace and refused in another
is logged once a minute), or an hour later. That an object is gone, has changed, or
that we ask too much at once (404, 409, 410, 429) is ordinary and not counted.
"""

from __future__ import annotations

import logging
from typing import Final

from pilotage.clock import Clock
from pilotage.kube.client import status_error
from pilotage.kube.transport import Response
from pilotage.observe.instruments import Counter

log = logging.getLogger(__name__)

LOG_AGAIN_SECONDS: Final = 3600.0
LOG_AGAIN_AFTER_SUCCESS_SECONDS: Final = 60.0
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_EVERYDAY: Final = frozenset({404, 408, 409, 410, 429})
_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    405: "MethodNotAllowed",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
}


class RefusedWrites:
    """Shown every answer to a request."""

    def __init__(self, refused: Counter, clock: Clock) -> None:
        """`refused` has the labels verb, resource and reason."""
        self._refused = refused
        self._clock = clock
        self._quiet_until: dict[tuple[str, str], float] = {}
        """Until when a kind of write that was refused is not logged again."""

    def note(self, method: str, path: str, answer: Response) -> None:
        """Look at an answer; most of them are no news, and cost next to nothing."""
        verb = _VERBS.get(method)
        if verb is None:
            return
        if answer.status < 400:
            if self._quiet_until:
                self._note_success(verb, resource_of(path))
        elif answer.status < 500 and answer.status not in _EVERYDAY:
            self._note_refusal(verb, resource_of(path), answer)

    def _note_success(self, verb: str, resource: str) -> None:
        until = self._quiet_until.get((verb, resource))
        if until is None:
            return
        soon = self._clock.monotonic() + LOG_AGAIN_AFTER_SUCCESS_SECONDS
        if until > soon:
            self._quiet_until[verb, resource] = soon
            log.info("no longer refused: %s %s", verb, resource)

    def _note_refusal(self, verb: str, resource: str, answer: Response) -> None:
        self._refused.add(verb, resource, _REASONS.get(answer.status, "Other"))
        now = self._clock.monotonic()
        if now >= self._quiet_until.get((verb, resource), now):
            self._quiet_until[verb, resource] = now + LOG_AGAIN_SECONDS
            log.error("the API server refuses to %s %s: %s", verb, resource, status_error(answer))


def resource_of(path: str) -> str:
    """What a path is about, as RBAC calls it: `pods/binding` for /api/v1/namespaces/default/pods/p/binding."""
    parts = path.strip("/").split("/")
    del parts[: 2 if parts[0] == "api" else 3]
    if len(parts) > 2 and parts[0] == "namespaces":
        del parts[:2]
    return "/".join(parts[:1] + parts[2:3])
