"""What must not be read by others stays out of messages: passwords in addresses, tokens in what programs print."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import msgspec

HIDDEN: Final = "***"
_SHORTEST_SECRET: Final = 6
"""Shorter values are words that stand in messages by chance."""
_USER_PART: Final = re.compile(r"(?<=://)[^/?#\s]*@")
_SECRETS: Final = re.compile(
    r"""
    (?P<before>
      \b(?:bearer|basic)\s+
      | \b[\w-]*(?:token|password|passwd|secret|api[_-]?key|credential)[\w-]*["']?\s*[:=]\s*["']?
    )
    [^\s"',;]{4,}
    | \beyJ[\w-]{8,}(?:\.[\w-]*)*
    """,
    re.IGNORECASE | re.VERBOSE,
)


class Unshown(msgspec.Struct):
    """Fields that hold secrets: none of them stands in its repr, and so in no log line and no traceback."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({HIDDEN})"


def without_user_part(text: str) -> str:
    """Addresses as they may be shown: `https://name:password@host` as `https://***@host`."""
    return _USER_PART.sub(f"{HIDDEN}@", text)


def shown_address(url: str) -> str:
    """Scheme, host and port alone: the user part and the path of an address may be secrets."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], "", "", ""))


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """What another program said, without what looks like a token or a password, and without these secrets."""
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, HIDDEN)
    return _SECRETS.sub(lambda found: f"{found['before'] or ''}{HIDDEN}", without_user_part(text))
