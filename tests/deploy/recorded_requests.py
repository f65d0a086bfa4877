"""A transport that notes what is asked of the API server in the words of RBAC."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from pilotage.kube.transport import Response, Transport, TransportError
from tests.passing_transport import PassingTransport

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, order=True)
class Access:
    """One thing that was done; `resource` has the subresource after a slash."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""


class RecordingTransport(PassingTransport):
    def __init__(self, transport: Transport, made: set[Access]) -> None:
        super().__init__(transport)
        self._made = made
        self.refuses_binding_of = ""
        self.loses_once: set[tuple[str, str]] = set()
        """(verb, resource) whose answer gets lost the next time: the caller has to look what became of it."""

    async def request(self, method: str, path: str, **options: Any) -> Response:
        self._note(method, path, options.get("query"))
        if self.refuses_binding_of and path.endswith(f"/{self.refuses_binding_of}/binding"):
            return Response(409, {}, b'{"kind": "Status", "reason": "Conflict", "message": "not now"}')
        answer = await super().request(method, path, **options)
        access = access_of(method, path)
        if access is not None and (access.verb, access.resource) in self.loses_once:
            self.loses_once.remove((access.verb, access.resource))
            raise TransportError("the connection broke", sent=True)
        return answer

    def stream(
        self, path: str, query: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        self._note("WATCH", path, query)
        return super().stream(path, query)

    def _note(self, method: str, path: str, query: Mapping[str, str] | None) -> None:
        access = access_of(method, path, query)
        if access is not None:
            self._made.add(access)


def access_of(method: str, path: str, query: Mapping[str, str] | None = None) -> Access | None:
    """What RBAC decides about; None for what is not about objects."""
    selector = (query or {}).get("fieldSelector", "")
    parts = path.strip("/").split("/")
    if parts[0] == "api":
        group, rest = "", parts[2:]
    elif parts[0] == "apis":
        group, rest = parts[1], parts[3:]
    else:
        return None
    if not rest:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    # Whoever lists or watches one name only is asked about that one.
    resource, name = rest[0], rest[1] if len(rest) > 1 else selector.removeprefix("metadata.name=")
    if len(rest) > 2:
        resource = f"{resource}/{rest[2]}"
    verb = _VERBS.get(method) or ("watch" if method == "WATCH" else "get" if len(rest) > 1 else "list")
    return Access(verb, group, resource, namespace, name)
