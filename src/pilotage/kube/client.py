"""The verbs of the Kubernetes API over any transport: paths and queries in, bytes and typed pages out.

Deliberately thin. It knows where a kind lives and how the server says no (`ApiStatusError`); retries, rate limits
and what to do about a conflict belong to the callers, who alone know whether doing something twice is safe.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from pilotage.kube.errors import ApiStatusError
from pilotage.kube.transport import Response, StreamRefused, Transport, TransportError, WireRequest, bundling
from pilotage.model.kinds import KINDS, KindInfo, ListPage

__all__ = ["ApiStatusError", "KubeClient", "ListOptions", "ServerVersion"]

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"


class ListOptions(Struct, frozen=True):
    """What to list or watch; empty means "not restricted"."""

    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_token: str = ""

    def query(self) -> dict[str, str]:
        known = {
            "labelSelector": self.label_selector,
            "fieldSelector": self.field_selector,
            "limit": str(self.limit) if self.limit else "",
            "continue": self.continue_token,
        }
        return {name: value for name, value in known.items() if value}


class ServerVersion(msgspec.Struct, frozen=True, rename="camel"):
    """What the server says it is, such as `v1.33.1`."""

    git_version: str
    major: str = ""
    minor: str = ""


class _Resource(msgspec.Struct):
    name: str


class _ResourceList(msgspec.Struct):
    resources: list[_Resource] = []


class _StatusDetails(msgspec.Struct, rename="camel"):
    retry_after_seconds: int = 0


class _ApiStatus(msgspec.Struct):
    kind: str = ""
    reason: str = ""
    message: str = ""
    details: _StatusDetails | None = None


_status = msgspec.json.Decoder(_ApiStatus)

Answer: TypeAlias = Coroutine[Any, Any, bytes]
"""What a call comes to; nothing is sent before it is awaited."""


class KubeClient:
    """One API server. Every method raises ApiStatusError when the server says no, TransportError without an answer."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, kind: KindInfo, namespace: str, name: str) -> Answer:
        return self._call("GET", kind.path(namespace, name))

    async def list_page(self, kind: KindInfo, options: ListOptions | None = None) -> ListPage:
        """One page; `continue_token` of the page leads to the next, "" if it was the last."""
        options = options or ListOptions()
        try:
            body = await self._call("GET", kind.path(options.namespace), query=options.query())
        except ApiStatusError as error:
            # Permission is asked for before existence: a role rarely allows what its cluster does not have.
            if error.code == 403 and not await self.serves(kind):
                raise ApiStatusError(404, "NotFound", f"the server does not have {kind.plural}") from error
            raise
        return kind.decode_list(body)

    def create(self, kind: KindInfo, namespace: str, body: bytes) -> Answer:
        return self._call("POST", kind.path(namespace), body=body)

    @property
    def creates_together(self) -> bool:
        """Whether there is `create_all`."""
        return bundling(self._transport) is not None

    async def create_all(
        self, objects: Sequence[tuple[KindInfo, str, bytes]]
    ) -> list[ApiStatusError | TransportError | None]:
        """Create objects (kind, namespace, body) that can wait for each other; returns what went wrong with each."""
        requests = [WireRequest("POST", kind.path(namespace), body) for kind, namespace, body in objects]
        transport = bundling(self._transport)
        assert transport is not None, "it is asked beforehand"
        return [
            answer if isinstance(answer, TransportError) else None if answer.status < 300 else status_error(answer)
            for answer in await transport.send_all(requests)
        ]

    def update(self, kind: KindInfo, namespace: str, name: str, body: bytes, *, subresource: str = "") -> Answer:
        return self._call("PUT", _object_path(kind, namespace, name, subresource), body=body)

    def patch(
        self,
        kind: KindInfo,
        namespace: str,
        name: str,
        body: bytes,
        *,
        content_type: str = MERGE_PATCH,
        subresource: str = "",
    ) -> Answer:
        path = _object_path(kind, namespace, name, subresource)
        return self._call("PATCH", path, body=body, content_type=content_type)

    def delete(self, kind: KindInfo, namespace: str, name: str, options: bytes | None = None) -> Answer:
        """`options` is an encoded DeleteOptions."""
        return self._call("DELETE", kind.path(namespace, name), body=options)

    async def bind(self, namespace: str, pod: str, uid: str, node: str) -> None:
        """Assign a pod to a node. The server rejects it if the pod is bound or is another one than `uid`."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod, "namespace": namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = _object_path(KINDS["pods"], namespace, pod, "binding")
        await self._call("POST", path, body=msgspec.json.encode(binding))

    @asynccontextmanager
    async def watch(
        self, kind: KindInfo, options: ListOptions, *, resource_version: str, timeout_seconds: int
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Changes after `resource_version` as chunks of lines; the server ends it after `timeout_seconds`."""
        query = options.query() | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
        }
        try:
            async with self._transport.stream(kind.path(options.namespace), query) as chunks:
                yield chunks
        except StreamRefused as refused:
            raise status_error(refused.response) from refused

    async def serves(self, kind: KindInfo) -> bool:
        """Whether the server has this kind at all. Every user may ask that, whatever else they may do."""
        if not kind.group:
            return True
        try:
            answer = await self._call("GET", f"/apis/{kind.api_version}")
        except ApiStatusError as error:
            return error.code != 404
        try:
            known = msgspec.json.decode(answer, type=_ResourceList)
        except msgspec.DecodeError:
            return True
        return any(resource.name == kind.plural for resource in known.resources)

    async def document(self, path: str) -> bytes:
        """What is served at a path that belongs to no kind, such as /apis."""
        return await self._call("GET", path)

    async def version(self) -> ServerVersion:
        """What answers there; ApiStatusError if it is no Kubernetes API server at all."""
        body = await self._call("GET", "/version")
        try:
            return msgspec.json.decode(body, type=ServerVersion)
        except msgspec.DecodeError as error:
            raise ApiStatusError(
                200, "", "the server's /version is not that of a Kubernetes API server; check the server's address"
            ) from error

    async def self_access_review(self, attributes: Mapping[str, str]) -> bytes:
        """Ask whether we may do something; answers with a SelfSubjectAccessReview."""
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": dict(attributes)},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        return await self._call("POST", path, body=msgspec.json.encode(review))

    async def close(self) -> None:
        await self._transport.close()

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        response = await self._transport.request(method, path, query=query, body=body, content_type=content_type)
        if 200 <= response.status < 300:
            return response.body
        raise status_error(response)


def status_error(response: Response) -> ApiStatusError:
    """What an answer with an error means: the metav1.Status in it, or the best that can be made of another body."""
    try:
        status = _status.decode(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = _ApiStatus()
    if status.kind != "Status":
        text = " ".join(response.body[:200].decode("utf-8", "replace").split())
        status = _ApiStatus(message=text or "the server gave no message")
    return ApiStatusError(response.status, status.reason, status.message, _retry_after(response, status))


def _retry_after(response: Response, status: _ApiStatus) -> float | None:
    header = response.headers.get("retry-after", "")
    if header.isdigit():
        return float(header)
    if status.details is not None and status.details.retry_after_seconds > 0:
        return float(status.details.retry_after_seconds)
    return None


def _object_path(kind: KindInfo, namespace: str, name: str, subresource: str) -> str:
    path = kind.path(namespace, name)
    return f"{path}/{subresource}" if subresource else path
