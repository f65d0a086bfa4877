"""The roles that every cluster has for its users, made where roles are asked what users may do.

    cluster-admin   everything                            admin   of a namespace: edit, and roles and their bindings
    edit            of a namespace: read and write        view    read, but no secrets

`admin`, `edit` and `view` have the rules of every ClusterRole with the label for them, so that whoever installs custom
kinds can add rules for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pilotage.sandbox.rules.rbac import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, MASTERS

_READ: Final = ("get", "list", "watch")
_WRITE: Final = ("create", "delete", "deletecollection", "patch", "update")
_ALL: Final = ("*",)
_AGGREGATE: Final = "rbac.authorization.k8s.io/aggregate-to"
_BOOTSTRAP: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_SCALED: Final = ("deployments", "replicasets", "statefulsets")

# By API group: what members of a team read and write in their namespace. Services' status and the like are read only.
_OF_TEAMS: Final = {
    "": (
        *(
            "configmaps",
            "endpoints",
            "events",
            "persistentvolumeclaims",
            "pods",
            "pods/attach",
            "pods/ephemeralcontainers",
        ),
        *("pods/exec", "pods/portforward", "pods/proxy", "replicationcontrollers"),
        *("replicationcontrollers/scale", "serviceaccounts", "services", "services/proxy"),
    ),
    "apps": ("controllerrevisions", "daemonsets", *_SCALED, *(f"{kind}/scale" for kind in _SCALED)),
    "autoscaling": ("horizontalpodautoscalers",),
    "batch": ("cronjobs", "jobs"),
    "discovery.k8s.io": ("endpointslices",),
    "networking.k8s.io": ("ingresses", "networkpolicies"),
    "policy": ("poddisruptionbudgets",),
    "resource.k8s.io": ("resourceclaims", "resourceclaimtemplates"),
    "scheduling.k8s.io": ("podgroups", "workloads"),
}
_READ_ONLY: Final = {
    "": (
        *("bindings", "limitranges", "namespaces", "namespaces/status", "persistentvolumeclaims/status", "pods/log"),
        *("pods/status", "resourcequotas", "resourcequotas/status", "services/status"),
    ),
    "apps": tuple(f"{kind}/status" for kind in ("daemonsets", *_SCALED)),
    "batch": ("cronjobs/status", "jobs/status"),
}
_NOT_VIEWED: Final = frozenset(
    {"pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "services/proxy", "pods/ephemeralcontainers"}
)
_DOCUMENTS: Final = ("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz")
_VERSION: Final = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_ISSUER: Final = ("/.well-known/openid-configuration", "/openid/v1/jwks")


def default_roles() -> Iterator[tuple[str, dict[str, Any]]]:
    """Resource and object of each."""
    for name, rules in (
        ("cluster-admin", [_rule(_ALL, _ALL, _ALL), {"verbs": ["*"], "nonResourceURLs": ["*"]}]),
        ("system:discovery", [{"verbs": ["get"], "nonResourceURLs": [*_DOCUMENTS, *_VERSION]}]),
        ("system:public-info-viewer", [{"verbs": ["get"], "nonResourceURLs": list(_VERSION)}]),
        ("system:service-account-issuer-discovery", [{"verbs": ["get"], "nonResourceURLs": list(_ISSUER)}]),
        ("system:basic-user", list(_reviews())),
        ("system:aggregate-to-view", list(_viewed())),
        ("system:aggregate-to-edit", list(_edited())),
        ("system:aggregate-to-admin", list(_administered())),
    ):
        labels = dict(_BOOTSTRAP)
        if name.startswith("system:aggregate-to-"):
            labels[f"{_AGGREGATE}-{name.rpartition('-')[2]}"] = "true"
        yield CLUSTER_ROLES, {"metadata": {"name": name, "labels": labels}, "rules": rules}
    for name, parts in (("admin", ("admin", "edit", "view")), ("edit", ("edit", "view")), ("view", ("view",))):
        selectors = [{"matchLabels": {f"{_AGGREGATE}-{part}": "true"}} for part in parts]
        metadata = {"name": name, "labels": dict(_BOOTSTRAP)}
        yield CLUSTER_ROLES, {"metadata": metadata, "aggregationRule": {"clusterRoleSelectors": selectors}, "rules": []}
    for name, group in (
        ("cluster-admin", MASTERS),
        ("system:basic-user", "system:authenticated"),
        ("system:discovery", "system:authenticated"),
        ("system:public-info-viewer", "system:authenticated"),
        ("system:service-account-issuer-discovery", "system:serviceaccounts"),
    ):
        yield CLUSTER_ROLE_BINDINGS, _binding(name, group)


def _binding(role: str, group: str) -> dict[str, Any]:
    return {
        "metadata": {"name": role, "labels": dict(_BOOTSTRAP)},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
    }


def _reviews() -> Iterator[dict[str, Any]]:
    yield _rule(("create",), ("authorization.k8s.io",), ("selfsubjectaccessreviews", "selfsubjectrulesreviews"))
    yield _rule(("create",), ("authentication.k8s.io",), ("selfsubjectreviews",))


def _viewed() -> Iterator[dict[str, Any]]:
    for group in _OF_TEAMS:
        resources = [one for one in _OF_TEAMS[group] if one not in _NOT_VIEWED]
        yield _rule(_READ, (group,), [*resources, *_READ_ONLY.get(group, ())])


def _edited() -> Iterator[dict[str, Any]]:
    yield _rule(
        _READ, ("",), ("pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "secrets", "services/proxy")
    )
    yield _rule(("impersonate",), ("",), ("serviceaccounts",))
    yield _rule(("create",), ("",), ("pods/eviction", "serviceaccounts/token"))
    for group, resources in _OF_TEAMS.items():
        yield _rule(_WRITE, (group,), [*resources, "secrets"] if not group else resources)


def _administered() -> Iterator[dict[str, Any]]:
    yield _rule((*_READ, *_WRITE), ("rbac.authorization.k8s.io",), ("rolebindings", "roles"))
    yield _rule(("create",), ("authorization.k8s.io",), ("localsubjectaccessreviews",))


def _rule(verbs: Sequence[str], groups: Sequence[str], resources: Sequence[str]) -> dict[str, Any]:
    return {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)}
