"""The names that Kubernetes accepts: for labels and resources `example.com/name`, prefix optional; for events."""

from __future__ import annotations

import re
from typing import Final

_LONGEST_NAME: Final = 63
_LONGEST_PREFIX: Final = 253
_LONGEST_OBJECT_NAME: Final = 253
_LONGEST_REPORTER: Final = 128
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


def is_extended_resource(name: str) -> bool:
    """A resource that somebody else than Kubernetes defined, such as `example.com/gpu`."""
    if "/" not in name:
        return False
    return not name.partition("/")[0].endswith("kubernetes.io") and not name.startswith("requests.")


def event_name(about: str, suffix: str) -> str:
    """The name of an Event about an object: the object's name, cut if there is no room for all, and a unique suffix."""
    # What is left must not end with a character that only stands between others.
    return f"{about[: _LONGEST_OBJECT_NAME - len(suffix) - 1].rstrip('-.')}.{suffix}"


def reporting_instance(controller: str, host: str) -> str:
    """Who reports an Event: the API server takes 128 characters."""
    return f"{controller}-{host}"[:_LONGEST_REPORTER]


def is_subdomain(text: str) -> bool:
    """Whether it can be the name of most objects."""
    return len(text) <= _LONGEST_OBJECT_NAME and _SUBDOMAIN.fullmatch(text) is not None
