"""Discovery documents of the visibility API.

As in Kueue the queues themselves have no verbs here, only their subresource has one: so kubectl lists nothing twice,
and `clusterqueues` goes on to mean those of kueue.x-k8s.io.
"""

from __future__ import annotations

from typing import Any, Final

GROUP: Final = "visibility.kueue.x-k8s.io"
VERSIONS: Final = ("v1beta2", "v1beta1")
"""The preferred one first. They differ in their name only."""

Document = dict[str, Any]

_KIND: Final = "PendingWorkloadsSummary"
_QUEUES: Final = (("clusterqueues", "clusterqueue", False), ("localqueues", "localqueue", True))


def group_document() -> Document:
    """The entry of the group in /apis."""
    versions = [{"groupVersion": f"{GROUP}/{version}", "version": version} for version in VERSIONS]
    return {"name": GROUP, "versions": versions, "preferredVersion": versions[0]}


def resource_list(version: str) -> Document:
    """/apis/<group>/<version>"""
    resources: list[Document] = []
    for plural, singular, is_namespaced in _QUEUES:
        common = {"namespaced": is_namespaced, "kind": _KIND}
        resources.append({"name": plural, "singularName": singular, **common, "verbs": []})
        resources.append({"name": f"{plural}/pendingworkloads", "singularName": "", **common, "verbs": ["get"]})
    head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{version}"}
    return {**head, "resources": resources}


def aggregated_document() -> Document:
    """The entry of the group where one document says everything (apidiscovery.k8s.io/v2)."""
    versions = [
        {"version": version, "resources": [_aggregated(version, *queue) for queue in _QUEUES], "freshness": "Current"}
        for version in VERSIONS
    ]
    return {"metadata": {"name": GROUP, "creationTimestamp": None}, "versions": versions}


def _aggregated(version: str, plural: str, singular: str, is_namespaced: bool) -> Document:
    kind = {"group": GROUP, "version": version, "kind": _KIND}
    return {
        "resource": plural,
        "responseKind": kind,
        "scope": "Namespaced" if is_namespaced else "Cluster",
        "singularResource": singular,
        "verbs": [],
        "subresources": [{"subresource": "pendingworkloads", "responseKind": kind, "verbs": ["get"]}],
    }
