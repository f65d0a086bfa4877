"""Find out if a kind that an API server does not have is misspelt or not there yet."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from pilotage.kube.client import KubeClient
from pilotage.kube.errors import ApiStatusError
from pilotage.kube.transport import TransportError
from pilotage.model.kinds import KindInfo
from pilotage.model.suggestions import suggestion

T = TypeVar("T")


class _ApiResource(msgspec.Struct):
    name: str


class _Resources(msgspec.Struct):
    resources: list[_ApiResource] = []


class _GroupVersion(msgspec.Struct):
    version: str


class _ApiGroup(msgspec.Struct):
    name: str
    versions: list[_GroupVersion] = []


class _Groups(msgspec.Struct):
    groups: list[_ApiGroup] = []


async def why_not_served(client: KubeClient, kind: KindInfo) -> str:
    """A sentence about a kind that the server does not have, with what it has instead; "" if it has the kind."""
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    resources = await _read(client, root, _Resources)
    if resources is not None:
        names = [resource.name for resource in resources.resources if "/" not in resource.name]
        if kind.plural in names:
            return ""
        return _sentence(kind, f"{kind.api_version} has no {kind.plural}{suggestion(kind.plural, names)}")
    groups = await _read(client, "/apis", _Groups)
    served = {} if groups is None else {group.name: group for group in groups.groups}
    if kind.group in served:
        versions = ", ".join(version.version for version in served[kind.group].versions)
        return _sentence(kind, f"{kind.group} has no version {kind.version}, but {versions}")
    near = suggestion(kind.group, served) if kind.group else ""
    return _sentence(kind, f"there is no API group {kind.group}{near}")


def _sentence(kind: KindInfo, fact: str) -> str:
    return f"{kind.kind}: the API server does not have this kind: {fact}; it is watched as soon as it is installed"


async def _read(client: KubeClient, path: str, type_: type[T]) -> T | None:
    """A document of discovery; None if it cannot be had."""
    try:
        return msgspec.json.decode(await client.document(path), type=type_)
    except (ApiStatusError, TransportError, msgspec.DecodeError):
        return None
