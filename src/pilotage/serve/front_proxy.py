"""Whom a front proxy speaks for: the API server asks aggregated APIs in the name of its own visitors.

It shows a client certificate of an authority that signs for nothing else, and says in headers who its visitor is. Which
authority, which names and which headers, every cluster publishes in the ConfigMap
kube-system/extension-apiserver-authentication. Headers of other clients mean nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from pilotage.serve.identity import User, with_all_authenticated

Lines = Sequence[tuple[str, str]]

_AUTHORITY: Final = "requestheader-client-ca-file"


class FrontProxy(Struct, frozen=True):
    """Header names are in lower case."""

    authority: bytes
    """PEM."""
    allowed_names: tuple[str, ...] = ()
    """Common names of its certificates; empty for any."""
    user_headers: tuple[str, ...] = ("x-remote-user",)
    uid_headers: tuple[str, ...] = ("x-remote-uid",)
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)

    def user(self, common_name: str, lines: Lines) -> User | None:
        """Who asks through a proxy of this name; None if it may not say that, or does not."""
        if self.allowed_names and common_name not in self.allowed_names:
            return None
        name = _first(lines, self.user_headers)
        if not name:
            return None
        groups = tuple(value for header in self.group_headers for key, value in lines if key == header)
        return with_all_authenticated(User(name, groups, _first(lines, self.uid_headers), self._extra(lines)))

    def _extra(self, lines: Lines) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for prefix in self.extra_prefixes:
            for key, value in lines:
                if key.startswith(prefix):
                    name = unquote(key.removeprefix(prefix))
                    found[name] = (*found.get(name, ()), value)
        return found


def published_proxy(data: Mapping[str, str]) -> FrontProxy | None:
    """What the ConfigMap says; None if the cluster has no front proxy. DecodeError if it cannot be read."""
    authority = data.get(_AUTHORITY, "")
    if not authority.strip():
        return None
    return FrontProxy(
        authority.encode(),
        allowed_names=_names(data, "requestheader-allowed-names"),
        user_headers=_headers(data, "requestheader-username-headers"),
        uid_headers=_headers(data, "requestheader-uid-headers"),
        group_headers=_headers(data, "requestheader-group-headers"),
        extra_prefixes=_headers(data, "requestheader-extra-headers-prefix"),
    )


def _names(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    return msgspec.json.decode(data.get(key) or "[]", type=tuple[str, ...])


def _headers(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(name.lower() for name in _names(data, key))


def _first(lines: Lines, headers: Sequence[str]) -> str:
    return next((value for header in headers for key, value in lines if key == header and value), "")
