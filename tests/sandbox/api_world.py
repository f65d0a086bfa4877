"""A server without a socket, and short ways to talk to it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from pilotage.rng import seeded
from pilotage.sandbox.api import Api
from pilotage.sandbox.http.exchange import Request, ServerResponse
from pilotage.sandbox.http.server import ApiServer
from pilotage.sandbox.http.watch import Watch
from pilotage.sandbox.storage.store import Store
from pilotage.testing.virtual_clock import VirtualClock

PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class World:
    """One sandbox API, driven by requests."""

    def __init__(self, *, history: int = 10_000, token: str | None = None, store: Store | None = None) -> None:
        self.clock = VirtualClock()
        self.store = store or Store(history=history)
        self.api = Api(self.store, clock=self.clock, rng=seeded(7))
        self.server = ApiServer(self.api, token=token, clock=self.clock)

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        accept: str = "",
        token: str = "",
    ) -> ServerResponse:
        headers = {"content-type": content_type, "accept": accept}
        if token:
            headers["authorization"] = f"Bearer {token}"
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        answer = self.server.handle(Request(method, path, query or {}, headers, raw))
        assert isinstance(answer, ServerResponse)
        return answer

    def ok(self, method: str, path: str, body: object = None, **options: Any) -> Any:
        """The decoded answer of a request that must succeed."""
        answer = self.send(method, path, body, **options)
        assert answer.status < 300, answer.body
        return json.loads(answer.body)

    def refused(self, method: str, path: str, body: object = None, **options: Any) -> dict[str, Any]:
        """The Status of a request that must be refused."""
        answer = self.send(method, path, body, **options)
        status: dict[str, Any] = json.loads(answer.body)
        assert answer.status >= 400 and status["kind"] == "Status" and status["code"] == answer.status, answer
        return status

    def watch(self, path: str, *, accept: str = "", **query: str) -> WatchReader:
        request = Request("GET", path, {"watch": "true", **query}, {"accept": accept})
        answer = self.server.handle(request)
        assert isinstance(answer, Watch), answer
        return WatchReader(answer)


class WatchReader:
    """The events of a watch, one batch at a time."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._chunks: AsyncIterator[bytes] = aiter(watch)

    async def next(self) -> list[tuple[str, dict[str, Any]]]:
        """The events of the next chunk."""
        lines = (await anext(self._chunks)).splitlines()
        return [(event["type"], event["object"]) for event in map(json.loads, lines)]

    async def names(self) -> list[tuple[str, str]]:
        return [(kind, obj["metadata"]["name"]) for kind, obj in await self.next()]

    async def is_over(self) -> bool:
        return await anext(self._chunks, None) is None


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def labelled(obj: dict[str, Any], **labels: str) -> dict[str, Any]:
    obj["metadata"]["labels"] = labels
    return obj


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(name: str = "web", replicas: int = 2) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    }


def definition(kind: str = "Widget", **version: Any) -> dict[str, Any]:
    """A CustomResourceDefinition of example.com."""
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "shortNames": [kind[:2].lower()]},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema, **version}],
        },
    }
