"""Which API groups are part of Kubernetes itself.

Rules that are written per kind (merge keys, defaults, validation, printed columns) must not touch a custom resource
that happens to share the name of a built-in kind, e.g. `Job` of another group. An object without an apiVersion is
taken for a built-in one: it came from inside the sandbox.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

BUILTIN_GROUPS: Final = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    }
)

KUEUE_GROUP: Final = "kueue.x-k8s.io"
"""Built in too, but custom kinds like any others."""


def group_of(api_version: str) -> str:
    """`apps` of `apps/v1`, the empty string of `v1`."""
    group, slash, _ = api_version.rpartition("/")
    return group if slash else ""


def is_builtin(obj: Mapping[str, Any]) -> bool:
    api_version = obj.get("apiVersion")
    if api_version == "v1" or not isinstance(api_version, str):
        return True
    return group_of(api_version) in BUILTIN_GROUPS
