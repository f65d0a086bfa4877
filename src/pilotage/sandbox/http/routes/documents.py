"""Everything that is not about objects: health, version, discovery and OpenAPI."""

from __future__ import annotations

from typing import Any, Final

from pilotage.sandbox.errors import method_not_allowed, no_such_path
from pilotage.sandbox.http.discovery import AGGREGATED_TYPE, Discovery
from pilotage.sandbox.http.exchange import Request, ServerResponse, encode_json, json_response
from pilotage.sandbox.http.extensions import Extensions
from pilotage.sandbox.http.negotiation import wants_aggregated_discovery
from pilotage.sandbox.http.openapi import EMPTY_PROTOBUF_2, PROTOBUF_2_TYPE, OpenApi
from pilotage.sandbox.kinds.resources import ResourceRegistry

HEALTH_PATHS: Final = frozenset({"/healthz", "/livez", "/readyz"})

_OK: Final = ServerResponse(200, b"ok", "text/plain; charset=utf-8")
_VERSION: Final[dict[str, Any]] = {
    "major": "1",
    "minor": "37",
    "gitVersion": "v1.37.0+pilotage-sandbox",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "python/any",
}


class Documents:
    """The documents of one server."""

    def __init__(self, registry: ResourceRegistry, extensions: Extensions) -> None:
        self._registry = registry
        self._extensions = extensions
        self._discovery = Discovery(registry, extensions)
        self._openapi = OpenApi(registry)
        self._kept: dict[tuple[str, bool], ServerResponse] = {}
        self._made_for = registry.version

    def forget(self) -> None:
        """There are other groups than before."""
        self._kept.clear()

    def answer(self, request: Request) -> ServerResponse:
        """ApiError 404 for a path that leads nowhere."""
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed(request.method.lower(), request.path)
        match request.path.strip("/").split("/"):
            case ["healthz" | "livez" | "readyz", *_]:
                return _OK
            case ["version"]:
                return json_response(_VERSION)
            case [""]:
                return json_response({"paths": self._paths()})
            case ["openapi", *rest]:
                return self._openapi_document(request, rest)
            case ["api" | "apis", *_]:
                return self._kept_discovery(request)
            case _:
                raise no_such_path()

    def _kept_discovery(self, request: Request) -> ServerResponse:
        """Every kubectl command begins with these: they are made once per change of the registry."""
        if self._made_for != self._registry.version:
            self._kept.clear()
            self._made_for = self._registry.version
        aggregated = wants_aggregated_discovery(request.headers.get("accept", ""))
        path = request.path.strip("/")
        if (path, aggregated) not in self._kept:
            self._kept[path, aggregated] = self._discovery_document(path.split("/"), aggregated=aggregated)
        return self._kept[path, aggregated]

    def _discovery_document(self, parts: list[str], *, aggregated: bool) -> ServerResponse:
        match parts:
            case ["api" | "apis"] if aggregated:
                document = self._discovery.aggregated(legacy=parts == ["api"])
                return ServerResponse(200, encode_json(document), AGGREGATED_TYPE)
            case ["api"]:
                return json_response(self._discovery.legacy_versions())
            case ["apis"]:
                return json_response(self._discovery.groups())
            case ["api", version]:
                return json_response(self._discovery.resources("", version))
            case ["apis", group]:
                return json_response(self._discovery.group(group))
            case ["apis", group, version]:
                return json_response(self._discovery.resources(group, version))
            case _:
                raise no_such_path()

    def _openapi_document(self, request: Request, rest: list[str]) -> ServerResponse:
        match rest:
            case ["v3"]:
                return ServerResponse(200, self._openapi.index())
            case ["v3", "api", version]:
                return ServerResponse(200, self._openapi.document("", version))
            case ["v3", "apis", group, version]:
                return ServerResponse(200, self._openapi.document(group, version))
            case ["v2"]:
                if "proto-openapi.spec.v2" in request.headers.get("accept", ""):
                    return ServerResponse(200, EMPTY_PROTOBUF_2, PROTOBUF_2_TYPE)
                return ServerResponse(200, self._openapi.version_2())
            case _:
                raise no_such_path()

    def _paths(self) -> list[str]:
        paths = ["/api", "/api/v1", "/apis", *sorted(HEALTH_PATHS), "/openapi/v2", "/openapi/v3", "/version"]
        for group, versions in self._registry.groups().items():
            if group:
                paths += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
        return sorted([*paths, *(extension.path for extension in self._extensions)])
