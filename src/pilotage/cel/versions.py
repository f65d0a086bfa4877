"""Semantic versions for CEL, ordered as semver.org says.

A version is a list of texts: the three numbers, and the dot-separated parts of its pre-release if it has one. Build
metadata takes no part in comparisons and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

CelVersion: TypeAlias = Sequence[str]

_NUMBER = r"(0|[1-9][0-9]*)"
_PART = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_BUILD = r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
_GRAMMAR = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_PART}(?:\.{_PART})*))?{_BUILD}", re.ASCII)
_LOOSE = re.compile(r"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?([-+].*)?", re.ASCII)


def encode(text: str) -> CelVersion:
    """ValueError if `text` is no semantic version."""
    found = _GRAMMAR.fullmatch(text)
    if found is None:
        raise ValueError(f'"{text}" is not a semantic version: write three numbers, e.g. 1.2.3 or 1.2.3-rc.1')
    pre_release = found[4].split(".") if found[4] else []
    return [found[1], found[2], found[3], *pre_release]


def normalize(text: str) -> str:
    """What people write for a version, made strict: a leading v, missing numbers and leading zeros."""
    found = _LOOSE.fullmatch(text)
    if found is None:
        return text
    numbers = ".".join(str(int(part or "0")) for part in found.group(1, 2, 3))
    return numbers + (found[4] or "")


def encode_any(text: str, loosely: bool) -> CelVersion:
    return encode(normalize(text) if loosely else text)


def is_version(text: str) -> bool:
    return _GRAMMAR.fullmatch(text) is not None


def is_any_version(text: str, loosely: bool) -> bool:
    return is_version(normalize(text) if loosely else text)


def compare(left: CelVersion, right: CelVersion) -> int:
    a, b = _sort_key(left), _sort_key(right)
    return (a > b) - (a < b)


def _sort_key(version: CelVersion) -> tuple[object, ...]:
    major, minor, patch, *parts = version
    # Without a pre-release a version comes after all of its pre-releases; numbers come before words.
    ranks = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
    return int(major), int(minor), int(patch), not parts, ranks


def number(version: CelVersion, place: int) -> int:
    return int(version[place])
