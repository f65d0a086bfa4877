"""Kubernetes' url library for CEL: absolute URLs and absolute paths, taken apart.

The CEL library takes plain values only, so a URL is a map with one entry that holds its text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

CelUrl: TypeAlias = Mapping[str, str]
_KEY = "url"
_ABSOLUTE = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:|/)[^\s\x00-\x1f\x7f]*", re.ASCII)


def encode(text: str) -> CelUrl:
    """ValueError if the text is neither an absolute URL nor an absolute path."""
    if _ABSOLUTE.fullmatch(text) is None:
        raise ValueError(f'"{text}" is not an absolute URL or path')
    parts = urlsplit(text)
    # Only looking at the port finds out whether it is one.
    assert parts.port is None or parts.port >= 0
    return {_KEY: text}


def is_url(text: str) -> bool:
    try:
        encode(text)
    except ValueError:
        return False
    return True


def _parts(url: CelUrl) -> SplitResult:
    return urlsplit(url[_KEY])


def scheme(url: CelUrl) -> str:
    return _parts(url).scheme


def host(url: CelUrl) -> str:
    """With its port."""
    return _parts(url).netloc.rpartition("@")[2]


def hostname(url: CelUrl) -> str:
    return host(url).rpartition("]")[0].lstrip("[") if host(url).startswith("[") else host(url).partition(":")[0]


def port(url: CelUrl) -> str:
    number = _parts(url).port
    return "" if number is None else str(number)


def escaped_path(url: CelUrl) -> str:
    return quote(_parts(url).path, safe="/%:@!$&'()*+,;=~-._")


def query(url: CelUrl) -> dict[str, list[str]]:
    return parse_qs(_parts(url).query, keep_blank_values=True)
