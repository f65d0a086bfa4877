from __future__ import annotations

import pytest

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.kinds.builtin_kinds import BUILTIN_TYPES, builtin_registry
from pilotage.sandbox.kinds.resources import ResourceType, version_rank

WIDGET = ResourceType("example.com", "v1", "widgets", "widget", "Widget", True, is_custom=True)


def test_a_type_is_found_by_url_and_by_storage() -> None:
    registry = builtin_registry()
    deployments = registry.find("apps", "v1", "deployments")
    assert deployments.kind == "Deployment"
    assert registry.of("deployments.apps") is deployments
    assert deployments.path("shop", "web") == "/apis/apps/v1/namespaces/shop/deployments/web"
    assert registry.of("nodes").path(name="a") == "/api/v1/nodes/a"


@pytest.mark.parametrize("url", [("apps", "v1", "pods"), ("", "v2", "pods"), ("nope", "v1", "pods")])
def test_an_unknown_url_is_404(url: tuple[str, str, str]) -> None:
    with pytest.raises(ApiError) as refused:
        builtin_registry().find(*url)
    assert refused.value.code == 404


def test_both_kinds_of_events_share_one_storage() -> None:
    registry = builtin_registry()
    assert registry.find("events.k8s.io", "v1", "events").storage == registry.find("", "v1", "events").storage
    assert registry.of("events").group == ""


def test_older_versions_share_the_storage_of_the_stored_one() -> None:
    registry = builtin_registry()
    older = registry.find("kueue.x-k8s.io", "v1beta1", "workloads")
    assert not older.is_stored_as_served
    assert registry.of(older.storage).version == "v1beta2"


def test_for_kind_says_kinds_of_the_same_name_apart() -> None:
    registry = builtin_registry()
    assert registry.for_kind("apps/v1", "ReplicaSet") is registry.of("replicasets.apps")
    assert registry.for_kind("other/v1", "ReplicaSet") is None


def test_no_two_rows_share_a_url_or_a_short_name() -> None:
    urls = [(t.group, t.version, t.plural) for t in BUILTIN_TYPES]
    assert len(urls) == len(set(urls))
    names = [(name, t.group, t.version) for t in BUILTIN_TYPES for name in t.short_names]
    assert len(names) == len(set(names))


def test_a_definition_adds_types_and_takes_them_away_again() -> None:
    registry = builtin_registry()
    before = registry.version
    registry.add_crd("widgets.example.com", [WIDGET])
    assert registry.version > before
    assert registry.of("widgets.example.com") is WIDGET
    assert "example.com" in registry.groups()
    registry.remove_crd("widgets.example.com")
    assert not registry.knows("widgets.example.com")
    assert "example.com" not in registry.groups()


def test_a_definition_in_the_place_of_a_built_in_custom_kind_gives_it_back() -> None:
    registry = builtin_registry()
    built_in = registry.find("kueue.x-k8s.io", "v1beta2", "workloads")
    own = ResourceType("kueue.x-k8s.io", "v1beta2", "workloads", "workload", "Workload", True, is_custom=True)
    registry.add_crd("workloads.kueue.x-k8s.io", [own])
    assert registry.find("kueue.x-k8s.io", "v1beta2", "workloads") is own
    registry.remove_crd("workloads.kueue.x-k8s.io")
    assert registry.find("kueue.x-k8s.io", "v1beta2", "workloads") is built_in
    assert registry.of("workloads.kueue.x-k8s.io") is built_in


def test_versions_are_ranked_as_kubernetes_ranks_them() -> None:
    versions = ["v1alpha1", "v1", "v1beta2", "v2", "v1beta1", "v10", "odd"]
    ranked = sorted(versions, key=version_rank, reverse=True)
    assert ranked == ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "odd"]
