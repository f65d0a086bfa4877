"""Signature fragments that stay small, whatever a pod's spec says.

Fragments are remembered after their pods are gone. What has many parts is therefore signed by its digest, which is as
good as equality for 16 bytes of BLAKE2b.
"""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b
from typing import Any, Final

import msgspec

_MANY: Final = 32
_LONG: Final = 1024


def fragment_of(parts: tuple[Any, ...]) -> Hashable:
    """These parts, or the digest of many."""
    return parts if len(parts) <= _MANY else _digest(msgspec.msgpack.encode(parts))


def fragment_of_text(text: bytes) -> Hashable:
    """This text, or the digest of a long one."""
    return text if len(text) <= _LONG else _digest(text)


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()
