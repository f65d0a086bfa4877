from __future__ import annotations

from typing import Any

import pytest

from pilotage.rng import seeded
from pilotage.sandbox.api import Api
from pilotage.sandbox.manifests import Manifest, ManifestError
from pilotage.sandbox.seeding import Seeded, dry_run, seed
from pilotage.sandbox.storage.store import Store
from pilotage.testing.virtual_clock import VirtualClock


@pytest.fixture
def api() -> Api:
    return Api(Store(history=1000), clock=VirtualClock(), rng=seeded(1))


def manifest(kind: str, name: str, api_version: str = "v1", namespace: str = "", **content: Any) -> Manifest:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return Manifest("w.yaml: document 1", {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content})


def pod(name: str, namespace: str = "", cpu: Any = "1", **spec: Any) -> Manifest:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return manifest("Pod", name, namespace=namespace, spec={"containers": [container], **spec})


def problems(api: Api, *manifests: Manifest) -> tuple[str, ...]:
    with pytest.raises(ManifestError) as refused:
        seed(api, manifests)
    return refused.value.problems


def test_missing_objects_are_created_and_present_ones_left_alone(api: Api) -> None:
    assert seed(api, [pod("a")]) == Seeded(created=1)
    before = api.get("pods", "default", "a")
    assert seed(api, [pod("a", cpu="2"), pod("b")]) == Seeded(created=1, kept=1)
    assert api.get("pods", "default", "a") == before


def test_namespaces_and_classes_go_first_whatever_the_order(api: Api) -> None:
    high = manifest("PriorityClass", "high", "scheduling.k8s.io/v1", value=1000)
    seed(api, [pod("a", namespace="shop", priorityClassName="high"), high, manifest("Namespace", "shop")])
    assert api.get("pods", "shop", "a")["spec"]["priority"] == 1000


def test_a_kind_may_be_defined_next_to_its_objects(api: Api) -> None:
    definition = manifest(
        "CustomResourceDefinition",
        "lamps.example.com",
        "apiextensions.k8s.io/v1",
        spec={
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "lamps", "kind": "Lamp"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    )
    seed(api, [manifest("Lamp", "desk", "example.com/v1", watts=5), definition])
    assert api.get("lamps.example.com", "default", "desk")["watts"] == 5


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (manifest("Podd", "a"), 'Podd a: kind: no kind "Podd" in version "v1"; did you mean "Pod"?'),
        (manifest("Deployment", "a"), "write apiVersion: apps/v1"),
        (manifest("Lamp", "a", "example.com/v1"), "define it by a CustomResourceDefinition"),
        (pod("a", cpu="-1"), "Pod default/a: spec.containers[0].resources.requests[cpu]: Invalid value"),
        (pod("a", cpu=["1"]), "Pod default/a: spec.containers[0].resources.requests"),
        (manifest("Pod", "a", spec={"containers": "none"}), "Pod default/a: spec.containers: expected array, got str"),
        (pod("a", replcas=3), "Pod default/a: spec.replcas: unknown field"),
        (pod("a", namespace="nowhere"), 'Pod nowhere/a: namespaces "nowhere" not found'),
        (pod("A_b"), "Pod default/A_b: metadata.name: Invalid value"),
        (manifest("ConfigMap", "a", data={"blob": "x" * 10_000_000}), "ConfigMap default/a: has 10000"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_rejection_names_file_object_and_field(api: Api, wrong: Manifest, problem: str) -> None:
    (told,) = problems(api, wrong)
    assert told.startswith("w.yaml: document 1: ")
    assert problem in told
    assert "\n" not in told


def test_one_rejected_object_does_not_hide_the_next(api: Api) -> None:
    assert len(problems(api, pod("a", cpu="-1"), pod("b"), pod("c", cpu="x"))) == 2


def test_an_object_that_is_defined_twice_is_rejected(api: Api) -> None:
    (told,) = problems(api, pod("a"), Manifest("other.yaml: document 3", pod("a").obj))
    assert told == "other.yaml: document 3: Pod default/a: is defined in w.yaml: document 1 already"


def test_a_dry_run_leaves_no_trace(api: Api) -> None:
    wanted = [pod("a"), manifest("Namespace", "shop"), pod("b", namespace="shop")]
    revision = api.store.revision
    dry_run(api, wanted, api.clock)
    assert api.store.revision == revision
    assert seed(api, wanted) == Seeded(created=3)


def test_a_dry_run_knows_what_is_there(api: Api) -> None:
    seed(api, [manifest("Namespace", "shop")])
    dry_run(api, [pod("b", namespace="shop")], api.clock)
    with pytest.raises(ManifestError):
        dry_run(api, [pod("b", namespace="shops")], api.clock)
