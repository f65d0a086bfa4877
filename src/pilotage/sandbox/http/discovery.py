"""What clients ask first: which groups, versions and resources are served here.

Three forms of the same facts: the classic documents per group and version, and one aggregated document that current
clients prefer because it is one request. They are made anew when the registry has changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pilotage.sandbox.errors import no_such_path
from pilotage.sandbox.http.extensions import Extensions
from pilotage.sandbox.kinds.resources import ResourceRegistry, ResourceType, version_rank

AGGREGATED_TYPE: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

Document = dict[str, Any]

_STATUS_VERBS: Final = ("get", "patch", "update")
# (kind, group, version) of what a subresource speaks, where it is not the object itself; and its verbs.
_SUBRESOURCES: Final[dict[str, tuple[tuple[str, str, str] | None, tuple[str, ...]]]] = {
    "approval": (None, _STATUS_VERBS),
    "attach": (("PodAttachOptions", "", "v1"), ("create", "get")),
    "binding": (("Binding", "", "v1"), ("create",)),
    "ephemeralcontainers": (None, _STATUS_VERBS),
    "eviction": (("Eviction", "policy", "v1"), ("create",)),
    "exec": (("PodExecOptions", "", "v1"), ("create", "get")),
    "finalize": (None, ("update",)),
    "log": (None, ("get",)),
    "portforward": (("PodPortForwardOptions", "", "v1"), ("create", "get")),
    "proxy": (("PodProxyOptions", "", "v1"), ("create", "delete", "get", "patch", "update")),
    "resize": (None, _STATUS_VERBS),
    "scale": (("Scale", "autoscaling", "v1"), _STATUS_VERBS),
    "status": (None, _STATUS_VERBS),
    "token": (("TokenRequest", "authentication.k8s.io", "v1"), ("create",)),
}


class Discovery:
    """Discovery documents of a registry, and the groups that others answer."""

    def __init__(self, registry: ResourceRegistry, extensions: Extensions) -> None:
        self._registry = registry
        self._extensions = extensions

    def legacy_versions(self) -> Document:
        """/api"""
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}

    def groups(self) -> Document:
        """/apis"""
        groups = [self._group(group, versions) for group, versions in self._registry.groups().items() if group]
        groups += [extension.entry for extension in self._extensions]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def group(self, name: str) -> Document:
        """/apis/<group>"""
        versions = self._registry.groups().get(name)
        if not name or versions is None:
            raise no_such_path()
        return {"kind": "APIGroup", "apiVersion": "v1", **self._group(name, versions)}

    def resources(self, group: str, version: str) -> Document:
        """/api/v1 and /apis/<group>/<version>"""
        types = self._registry.in_group_version(group, version)
        if not types:
            raise no_such_path()
        entries = [entry for resource_type in types for entry in _entries(resource_type)]
        group_version = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}

    def aggregated(self, *, legacy: bool) -> Document:
        """/api (legacy) and /apis, as one document each."""
        items = [
            {
                "metadata": {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None},
                "versions": [self._aggregated_version(group, version) for version in versions],
            }
            for group, versions in self._registry.groups().items()
            if legacy == (not group)
        ]
        items += [] if legacy else [extension.aggregated for extension in self._extensions]
        head = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}}
        return {**head, "items": items}

    def _aggregated_version(self, group: str, version: str) -> Document:
        types = self._registry.in_group_version(group, version)
        resources = [_aggregated(resource_type) for resource_type in types]
        return {"version": version, "resources": resources, "freshness": "Current"}

    def _group(self, name: str, versions: list[str]) -> Document:
        entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
        preferred = max(entries, key=lambda entry: version_rank(entry["version"]))
        return {"name": name, "versions": entries, "preferredVersion": preferred}


def _entries(resource_type: ResourceType) -> Iterator[Document]:
    entry: Document = {
        "name": resource_type.plural,
        "singularName": resource_type.singular,
        "namespaced": resource_type.namespaced,
        "kind": resource_type.kind,
        "verbs": list(resource_type.verbs),
    }
    if resource_type.short_names:
        entry["shortNames"] = list(resource_type.short_names)
    if resource_type.categories:
        entry["categories"] = list(resource_type.categories)
    yield entry
    for name in resource_type.subresources:
        (kind, group, version), verbs = _subresource(resource_type, name)
        spoken: Document = {"kind": kind}
        if (group, version) != (resource_type.group, resource_type.version):
            spoken = {"group": group, "version": version, "kind": kind}
        base = {"name": f"{resource_type.plural}/{name}", "singularName": "", "namespaced": resource_type.namespaced}
        yield {**base, **spoken, "verbs": list(verbs)}


def _aggregated(resource_type: ResourceType) -> Document:
    entry: Document = {
        "resource": resource_type.plural,
        "responseKind": _kind(resource_type.kind, resource_type.group, resource_type.version),
        "scope": "Namespaced" if resource_type.namespaced else "Cluster",
        "singularResource": resource_type.singular,
        "verbs": list(resource_type.verbs),
    }
    if resource_type.short_names:
        entry["shortNames"] = list(resource_type.short_names)
    if resource_type.categories:
        entry["categories"] = list(resource_type.categories)
    if resource_type.subresources:
        entry["subresources"] = [
            {"subresource": name, "responseKind": _kind(*spoken), "verbs": list(verbs)}
            for name in resource_type.subresources
            for spoken, verbs in (_subresource(resource_type, name),)
        ]
    return entry


def _subresource(resource_type: ResourceType, name: str) -> tuple[tuple[str, str, str], tuple[str, ...]]:
    spoken, verbs = _SUBRESOURCES[name]
    return spoken or (resource_type.kind, resource_type.group, resource_type.version), verbs


def _kind(kind: str, group: str, version: str) -> dict[str, str]:
    return {"group": group, "version": version, "kind": kind}
