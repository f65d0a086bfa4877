"""A path means the same whether or not its collection was asked for before."""

from __future__ import annotations

import pytest

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.http.routes.paths import Paths, Target
from pilotage.sandbox.kinds.builtin_kinds import builtin_registry

_ASKED_BEFORE = (
    "/api/v1/namespaces",
    "/api/v1/namespaces/shop",
    "/api/v1/namespaces/shop/status",
    "/api/v1/namespaces/shop/pods/web-1/status",
    "/api/v1/namespaces/shop/pods/",
    "/api/v1/pods",
    "/api/v1/nodes/n1",
    "/apis/apps/v1/namespaces/shop/deployments/web",
)


@pytest.mark.parametrize(
    ("path", "resource", "namespace", "name", "subresource"),
    [
        ("/api/v1/namespaces/shop/pods", "pods", "shop", "", ""),
        ("/api/v1/namespaces/shop/pods/", "pods", "shop", "", ""),
        ("/api/v1/namespaces/shop/pods/web-1", "pods", "shop", "web-1", ""),
        ("/api/v1/namespaces/shop/pods/web-1/binding", "pods", "shop", "web-1", "binding"),
        ("/api/v1/namespaces/shop/pods/pods/status", "pods", "shop", "pods", "status"),
        ("/api/v1/namespaces/shop/configmaps", "configmaps", "shop", "", ""),
        ("/api/v1/namespaces/shop", "namespaces", None, "shop", ""),
        ("/api/v1/namespaces/shop/finalize", "namespaces", None, "shop", "finalize"),
        ("/api/v1/namespaces/namespaces", "namespaces", None, "namespaces", ""),
        ("/api/v1/nodes/n2/status", "nodes", None, "n2", "status"),
        ("/api/v1/pods/p", "pods", None, "p", ""),
        ("/apis/apps/v1/namespaces/shop/deployments/web/scale", "deployments.apps", "shop", "web", "scale"),
    ],
)
def test_a_path_addresses_the_same_when_its_collection_is_known(
    path: str, resource: str, namespace: str | None, name: str, subresource: str
) -> None:
    registry = builtin_registry()
    expected = Target(registry.of(resource), namespace, name, subresource)
    assert Paths(registry).target_of(path) == expected
    paths = Paths(registry)
    for before in _ASKED_BEFORE:
        paths.target_of(before)
    assert paths.target_of(path) == expected
    assert paths.target_of(path) == expected


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/shop/pods//web-1",
        "/api/v1/namespaces/shop/pods/web-1/status/more",
        "/api/v1/namespaces/shop/pods/web-1//status",
        "/api/v1/namespaces/shop/nothing",
    ],
)
def test_a_path_to_nowhere_stays_one_when_collections_are_known(path: str) -> None:
    paths = Paths(builtin_registry())
    for before in _ASKED_BEFORE:
        paths.target_of(before)
    with pytest.raises(ApiError) as rejection:
        paths.target_of(path)
    assert rejection.value.code == 404
