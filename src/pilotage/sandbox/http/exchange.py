"""One request and its answer, without any web framework: what the ASGI shell and the in-process transport hand over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pilotage.sandbox.errors import ApiError

JSON: Final = "application/json"

encode_json = msgspec.json.Encoder().encode

_NO_HEADERS: Final[tuple[tuple[str, str], ...]] = ()


class Request(msgspec.Struct, frozen=True):
    """Header names are in lower case; the path is decoded; of a repeated query parameter the first value counts."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    body: bytes = b""
    user: Mapping[str, Any] | None = None
    """Who asks, as a UserInfo, where roles are asked what users may do."""

    def __repr__(self) -> str:
        # The headers carry the token.
        return f"Request({self.method} {self.path})"

    def flag(self, name: str) -> bool:
        """A boolean query parameter as the API server reads it: anything but 0 and false is true."""
        return self.query.get(name, "") not in ("", "0", "false", "False", "FALSE", "f", "F")


class ServerResponse(msgspec.Struct, frozen=True):
    """A complete answer."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = _NO_HEADERS


class RemoteCommand(ServerResponse, frozen=True, kw_only=True):
    """What a command in a container does, for who has upgraded the connection; the answer is for who has not."""

    seconds: float
    """How long it takes."""
    exit_code: int
    printed: tuple[tuple[float, str], ...] = ()
    """To standard output, and after how many seconds."""
    problem: str = ""
    """To standard error."""


def json_response(value: Any, status: int = 200, headers: tuple[tuple[str, str], ...] = _NO_HEADERS) -> ServerResponse:
    return ServerResponse(status, encode_json(value), JSON, headers)


def error_response(error: ApiError) -> ServerResponse:
    headers = (("retry-after", str(error.retry_after)),) if error.retry_after is not None else _NO_HEADERS
    return ServerResponse(error.code, encode_json(error.status()), JSON, headers)


def success_status(details: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The `metav1.Status` of a request that has no object to answer with."""
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return {**status, "details": dict(details)} if details else status
