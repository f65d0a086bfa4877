"""Lists in pages that fit together: every page shows the state of the first.

The first page of a limited list keeps the (immutable) records of the rest; the continue token names the rest and how
far the client has read. Only so many lists are kept, and only for so long: a token that outlives its list gets 410 and
with it a token to go on from the same place in the current state, which is what the API server offers as well.
"""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from pilotage.clock import Clock
from pilotage.sandbox.errors import ApiError, bad_request, gone
from pilotage.sandbox.storage.records import Key, Record

_MOST_LISTS: Final = 64
_KEPT_SECONDS: Final = 300.0

_EXPIRED: Final = (
    "The provided continue parameter is too old to display a consistent list result. "
    "Start a new list without the continue parameter, or use the continue token in this response to read the "
    "remainder from the current state: what was created, changed or deleted meanwhile may then show or be missing."
)


class _Token(msgspec.Struct):
    """Opaque to clients."""

    list_id: str
    start: int
    after: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Page:
    records: Sequence[Record]
    revision: int
    continue_token: str = ""
    remaining: int = 0


@dataclass(frozen=True, slots=True)
class _KeptList:
    records: Sequence[Record]
    revision: int
    about: object
    until: float


class ListPages:
    """The lists that clients are in the middle of."""

    def __init__(self, clock: Clock, epoch: str) -> None:
        self._clock = clock
        self._epoch = epoch
        self._lists: OrderedDict[str, _KeptList] = OrderedDict()
        self._count = 0

    def first(self, records: Sequence[Record], revision: int, limit: int, about: object) -> Page:
        """The first `limit` records; the rest is kept for `following`. `about` is what was asked for."""
        if not limit or len(records) <= limit:
            return Page(records, revision)
        self._count += 1
        list_id = f"{self._epoch}.{self._count}"
        self._lists[list_id] = _KeptList(records, revision, about, self._clock.monotonic() + _KEPT_SECONDS)
        self._tidy()
        return _page(list_id, records, revision, 0, limit)

    def following(self, token_text: str, limit: int, about: object) -> Page | Key:
        """The next page, or the key after which to go on in the current state; ApiError 410 when the list is gone."""
        token = _decode(token_text)
        if not token.list_id:
            return Key("", *token.after)
        self._tidy()
        kept = self._lists.get(token.list_id)
        if kept is None:
            raise _expired(token)
        if kept.about != about:
            raise bad_request("continue token is for another list: resource, namespace and selectors must not change")
        if not 0 <= token.start <= len(kept.records):
            raise bad_request("continue key is not valid")
        page = _page(token.list_id, kept.records, kept.revision, token.start, limit)
        if not page.continue_token:
            del self._lists[token.list_id]
        return page

    def _tidy(self) -> None:
        now = self._clock.monotonic()
        while self._lists:
            oldest = next(iter(self._lists.values()))
            if len(self._lists) <= _MOST_LISTS and oldest.until > now:
                return
            self._lists.popitem(last=False)


def _page(list_id: str, records: Sequence[Record], revision: int, start: int, limit: int) -> Page:
    end = start + limit if limit else len(records)
    shown = records[start:end]
    remaining = max(0, len(records) - end)
    if not remaining:
        return Page(shown, revision)
    last = shown[-1].key
    token = _Token(list_id, end, (last.namespace, last.name))
    return Page(shown, revision, _encode(token), remaining)


def _expired(token: _Token) -> ApiError:
    error = gone(_EXPIRED)
    error.metadata = {"continue": _encode(_Token("", 0, token.after))}
    return error


def _encode(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _decode(text: str) -> _Token:
    try:
        plain = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return msgspec.json.decode(plain, type=_Token)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise bad_request("continue key is not valid: use the token of the previous page unchanged") from None
