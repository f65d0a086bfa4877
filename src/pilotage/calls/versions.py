"""Comparing resource versions.

Kubernetes promises (since 1.35 in writing, and always in fact) that the versions of one object are whole numbers that
grow. A server that breaks this is only trusted about equality.
"""

from __future__ import annotations


def is_at_least(version: str, other: str) -> bool:
    """Is `version` that of `other` or a later one? "" is before everything."""
    if version == other:
        return True
    if version.isdigit() and other.isdigit():
        return int(version) >= int(other)
    return not other
