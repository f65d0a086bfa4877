"""A question to the service and its answer, without any web framework: pages are functions that tests call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec import Struct

from pilotage.escaping import visible, visible_json, visible_text

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
_LONGEST_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Header names are in lower case. `headers` has one value of each, `lines` all of them in order."""

    path: str
    method: str = "GET"
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = b""
    lines: Sequence[tuple[str, str]] = field(default=(), repr=False)
    address: str = ""
    """Of the visitor."""

    @property
    def shown_path(self) -> str:
        """For logs: no more than a line, and nothing in it that a terminal would obey."""
        return visible(self.path[:_LONGEST_SHOWN])

    def first(self, name: str, default: str = "") -> str:
        values = self.query.get(name, ())
        return values[0] if values else default

    @property
    def accepts_json(self) -> bool:
        return JSON in self.headers.get("accept", "")


class PageAnswer(Struct, frozen=True):
    status: int
    body: bytes
    content_type: str = TEXT
    headers: tuple[tuple[str, str], ...] = ()
    """More of them; none may hold a line break."""


Page = Callable[[PageRequest], PageAnswer]


def text_answer(text: str, status: int = 200) -> PageAnswer:
    return PageAnswer(status, visible_text(text).encode(), TEXT)


def json_answer(value: Any, status: int = 200) -> PageAnswer:
    return PageAnswer(status, visible_json(msgspec.json.encode(value).decode()).encode(), JSON)


def error_answer(status: int, reason: str, message: str) -> PageAnswer:
    """A metav1.Status, as the API server would answer."""
    document = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return json_answer({**document, "message": message, "reason": reason, "code": status}, status)
