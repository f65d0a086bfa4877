"""The audit log: a line of JSON (audit.k8s.io/v1, level Metadata) for each request that came from outside.

Bodies are not in it, nor tokens. A watch is recorded when it begins. A line that cannot be written is reported once in
the log of the process; the requests go on.
"""

from __future__ import annotations

import itertools
import logging
import os
from pathlib import Path
from typing import Any, Final, TextIO
from urllib.parse import urlencode

import msgspec

from pilotage.clock import Clock, rfc3339_micro
from pilotage.sandbox.http.access import IMPERSONATE, attempt_of
from pilotage.sandbox.http.exchange import Request, ServerResponse
from pilotage.sandbox.http.routes.paths import Paths

_FAILED: Final = 400
_ANONYMOUS: Final = {"username": "system:anonymous", "groups": ["system:unauthenticated"]}

_log = logging.getLogger(__name__)


class AuditLog:
    """An open file that lines are appended to; only its owner may read it. OSError if it cannot be opened."""

    def __init__(self, path: Path, clock: Clock) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._file: TextIO = os.fdopen(descriptor, "a", encoding="utf-8", buffering=1)
        self._clock = clock
        self._numbers = itertools.count(1)
        self._has_failed = False

    def close(self) -> None:
        self._file.close()

    def record(self, request: Request, answer: object, paths: Paths, begin: float) -> None:
        """`begin`: when the request came."""
        try:
            self._file.write(msgspec.json.encode(self._event(request, answer, paths, begin)).decode() + "\n")
        except (OSError, ValueError) as error:
            if not self._has_failed:
                self._has_failed = True
                _log.error("the audit log cannot be written, requests go on without it: %s", error)

    def _event(self, request: Request, answer: object, paths: Paths, begin: float) -> dict[str, Any]:
        attempt = attempt_of(request, paths)
        user = dict(request.user or _ANONYMOUS)
        is_watch = not isinstance(answer, ServerResponse)
        code = answer.status if isinstance(answer, ServerResponse) else 200
        query = f"?{urlencode(request.query)}" if request.query else ""
        event: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": f"{os.getpid()}-{next(self._numbers)}",
            "stage": "ResponseStarted" if is_watch else "ResponseComplete",
            "requestURI": f"{request.path}{query}",
            "verb": attempt.verb,
            "user": user,
            "sourceIPs": ["127.0.0.1"],
            "userAgent": request.headers.get("user-agent", ""),
            "responseStatus": {"metadata": {}, "code": code},
            "requestReceivedTimestamp": rfc3339_micro(begin),
            "stageTimestamp": rfc3339_micro(self._clock.time()),
            "annotations": {"authorization.k8s.io/decision": "forbid" if code == 403 else "allow"},
        }
        if request.headers.get(f"{IMPERSONATE}user"):
            event["impersonatedUser"] = user
        if attempt.resource:
            resource, _, below = attempt.resource.partition("/")
            about = {
                "resource": resource,
                "namespace": attempt.namespace,
                "name": attempt.name,
                "apiGroup": attempt.group,
                "subresource": below,
            }
            event["objectRef"] = {field: value for field, value in about.items() if value}
        if code >= _FAILED:
            event["responseStatus"]["status"] = "Failure"
        return event
