"""The names that Kubernetes accepts for labels and resources: `example.com/name`, prefix optional."""

from __future__ import annotations

import re
from typing import Final

_LONGEST_NAME: Final = 63
_LONGEST_PREFIX: Final = 253
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII)


def label_name_problem(text: str) -> str | None:
    """Why this cannot be the key of a label; None if it can."""
    prefix, slash, name = text.rpartition("/")
    if slash and not (len(prefix) <= _LONGEST_PREFIX and _SUBDOMAIN.fullmatch(prefix)):
        return "the part before the slash must be a DNS name in lower case, at most 253 characters long"
    if not (len(name) <= _LONGEST_NAME and _NAME.fullmatch(name)):
        return (
            "must consist of letters, digits, '-', '_' and '.', start and end with a letter or digit, "
            "and be at most 63 characters long"
        )
    return None
