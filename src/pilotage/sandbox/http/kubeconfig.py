"""The kubeconfig that leads kubectl to a sandbox.

It holds the sandbox's token, so only its owner may read it. Over plain HTTP kubectl keeps a user's token to
itself; there the token is the first part of the server's path, which every client sends. The file is written beside its
place and then moved there: a reader that waits for it to appear finds it complete.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

_NAME: Final = "pilotage-sandbox"


@dataclass(frozen=True, slots=True)
class NamedUser:
    """A user beside the administrator, with a context of the same name."""

    name: str
    groups: tuple[str, ...]
    token: str = field(repr=False)

    def info(self) -> dict[str, Any]:
        return {"username": self.name, "groups": [*self.groups, "system:authenticated"]}


def token_path(token: str) -> str:
    """What a path starts with to be let in without a header."""
    return f"/t/{token}"


def kubeconfig(
    url: str, token: str | None, authority: bytes | None = None, users: Sequence[NamedUser] = ()
) -> dict[str, Any]:
    """The content, with the sandbox as current context."""
    is_secure = url.startswith("https:")
    cluster: dict[str, Any] = {"server": url if is_secure or token is None else url + token_path(token)}
    if authority is not None:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [
            {"name": _NAME, "user": {} if token is None else {"token": token}},
            *({"name": user.name, "user": {"token": user.token}} for user in users),
        ],
        "contexts": [
            {"name": name, "context": {"cluster": _NAME, "user": name, "namespace": "default"}}
            for name in (_NAME, *(user.name for user in users))
        ],
        "current-context": _NAME,
    }


def write_kubeconfig(
    path: Path, url: str, token: str | None, authority: bytes | None = None, users: Sequence[NamedUser] = ()
) -> None:
    """Write it with mode 0600, replacing what was there."""
    text = yaml.safe_dump(kubeconfig(url, token, authority, users), sort_keys=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
