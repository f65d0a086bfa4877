"""A pod whose spec was seen before is stored exactly as if it were the first with that spec."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.operations.field_management import SYSTEM, Author
from tests.sandbox.api_world import World

_EACH_ITS_OWN = ("uid", "resourceVersion")
_LIMITED = {"resources": {"limits": {"cpu": "100m", "memory": "1Gi"}}}
_MOUNT = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}


def _pod(name: str, container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "example.com/app:1", **(container or {})}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def _volume(claim: str) -> dict[str, Any]:
    return {"name": "data", "persistentVolumeClaim": {"claimName": claim}}


def _own(pod: dict[str, Any]) -> dict[str, Any]:
    """Everything but what is each pod's own."""
    return {"spec": pod["spec"], "status": pod["status"], "apiVersion": pod["apiVersion"], "kind": pod["kind"]}


_PODS = [
    _pod("p"),
    _pod("p", _LIMITED, priorityClassName="system-node-critical"),
    _pod("p", _MOUNT, volumes=[_volume("first"), {"name": "scratch"}]),
    _pod("p", schedulingGates=[{"name": "example.com/wait"}]),
    _pod("p", nodeSelector={"disk": "ssd"}, tolerations=[{"operator": "Exists"}]),
    _pod("p", dnsPolicy=None, volumes=None),
]


@pytest.mark.parametrize("manifest", _PODS)
def test_the_second_pod_of_a_spec_is_completed_like_the_first(manifest: dict[str, Any]) -> None:
    world = World()
    first = world.api.create("pods", "default", copy.deepcopy(manifest))
    manifest["metadata"]["name"] = "q"
    second = world.api.create("pods", "default", copy.deepcopy(manifest))
    assert _own(second) == _own(first)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert world.api.get("pods", "default", "q") == second
    world.store.check()


def test_the_second_resource_claim_of_a_spec_is_completed_like_the_first() -> None:
    world = World()
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    resource = "resourceclaims.resource.k8s.io"
    first, second = (
        world.api.create(resource, "default", {"metadata": {"name": name}, "spec": copy.deepcopy(spec)})
        for name in ("c", "d")
    )
    assert second["spec"] == first["spec"] and second.get("status") == first.get("status")
    assert first["spec"]["devices"]["requests"][0]["exactly"]["allocationMode"] == "ExactCount"
    assert world.api.get(resource, "default", "d") == second
    spec["devices"]["requests"][0]["exactly"]["count"] = -1
    with pytest.raises(ApiError):
        world.api.create(resource, "default", {"metadata": {"name": "e"}, "spec": spec})
    world.store.check()


def test_pods_of_one_template_keep_their_own_claims() -> None:
    world = World()
    for number in range(3):
        volumes = [_volume(f"claim-{number}"), {"name": "none"}, {**_volume(f"other-{number}"), "name": "more"}]
        world.api.create("pods", "default", _pod(f"p{number}", _MOUNT, volumes=volumes))
    for number in range(3):
        volumes = world.api.get("pods", "default", f"p{number}")["spec"]["volumes"]
        claims = [volume.get("persistentVolumeClaim") for volume in volumes]
        assert claims == [{"claimName": f"claim-{number}"}, None, {"claimName": f"other-{number}"}]
        assert volumes[1] == {"name": "none", "emptyDir": {}}


def test_a_volume_without_the_name_of_its_claim_is_rejected_also_after_one_with_a_name() -> None:
    world = World()
    world.api.create("pods", "default", _pod("p", volumes=[_volume("first")]))
    with pytest.raises(ApiError) as rejection:
        world.api.create("pods", "default", _pod("q", volumes=[_volume("")]))
    assert "claimName" in str(rejection.value)


def test_a_class_that_is_made_the_default_later_counts_for_later_pods() -> None:
    world = World()
    assert world.api.create("pods", "default", _pod("p"))["spec"]["priority"] == 0
    important = {"metadata": {"name": "important"}, "value": 7, "globalDefault": True}
    world.api.create("priorityclasses.scheduling.k8s.io", "", important)
    assert world.api.create("pods", "default", _pod("q"))["spec"]["priority"] == 7
    world.api.delete("priorityclasses.scheduling.k8s.io", "", "important")
    assert world.api.create("pods", "default", _pod("r"))["spec"]["priority"] == 0


async def test_a_gated_pod_says_the_time_of_its_own_creation() -> None:
    world = World()
    gates = [{"name": "example.com/wait"}]
    world.api.create("pods", "default", _pod("p", schedulingGates=gates))
    await world.clock.advance(60)
    gated = world.api.create("pods", "default", _pod("q", schedulingGates=gates))
    assert gated["status"]["conditions"][0]["lastTransitionTime"] == gated["metadata"]["creationTimestamp"]


def test_selectors_are_completed_from_the_labels_of_each_pod() -> None:
    world = World()
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["version"],
    }
    for version in ("1", "2"):
        pod = _pod(f"p{version}", topologySpreadConstraints=[copy.deepcopy(constraint)])
        pod["metadata"]["labels"] = {"app": "web", "version": version}
        stored = world.api.create("pods", "default", pod)["spec"]["topologySpreadConstraints"][0]["labelSelector"]
        assert stored["matchExpressions"] == [{"key": "version", "operator": "In", "values": [version]}]


@pytest.mark.parametrize("author", [SYSTEM, Author("kubectl", "v1")])
@pytest.mark.parametrize(
    "said",
    [
        {},
        {"labels": {"app": "web"}, "annotations": {"a": "b"}, "finalizers": ["example.com/hold"]},
        {"labels": {}, "annotations": None},
        {"labels": {"app": "web"}, "annotations": {"long": "x" * 2000}},
        {"generateName": "p-", "namespace": "default", "uid": "mine", "creationTimestamp": None},
    ],
)
def test_pods_with_the_same_metadata_differ_in_their_names_alone(said: dict[str, Any], author: Author) -> None:
    world = World()
    pods = world.api.registry.of("pods")
    made = []
    for number in range(4):
        pod = _pod(f"p{number}")
        pod["metadata"] |= copy.deepcopy(said)
        obj = world.api.verbs.create(pods, "default", pod, author=author).object()
        assert obj["metadata"].pop("name") == f"p{number}"
        made.append({**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k not in _EACH_ITS_OWN}})
    assert made[1:] == made[:1] * 3
    assert ("managedFields" in made[0]["metadata"]) == bool(author.name)
    assert made[0]["metadata"].get("labels", {"app": "web"}) == {"app": "web"}


def test_a_pod_without_an_author_has_no_managers_after_one_with_an_author() -> None:
    world = World()
    pods = world.api.registry.of("pods")
    authors = [Author("kubectl", "v1"), SYSTEM, Author("helm", "v1")] * 2
    made = [world.api.verbs.create(pods, "default", _pod(f"p{at}"), author=by) for at, by in enumerate(authors)]
    managers = [[one["manager"] for one in pod.object()["metadata"].get("managedFields", [])] for pod in made]
    assert managers == [["kubectl"], [], ["helm"]] * 2


@pytest.mark.parametrize("seen", [1, 3])
@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ({"name": "Not A Name"}, 422),
        ({"name": "q", "labels": {"a b": "c"}}, 422),
        ({"name": "q", "labels": {"a": 1}}, 400),
        ({"name": "p"}, 409),
        ({}, 422),
        ({"name": 5}, 400),
        ({"name": "q", "namespace": 5}, 400),
        ({"name": "q", "namespace": "other"}, 400),
    ],
)
def test_metadata_is_judged_also_when_the_spec_is_known(metadata: dict[str, Any], code: int, seen: int) -> None:
    world = World()
    for number in range(seen):
        world.api.create("pods", "default", _pod("p" * (number + 1)))
    with pytest.raises(ApiError) as rejection:
        world.api.create("pods", "default", {**_pod("p"), "metadata": metadata})
    assert rejection.value.code == code


def test_null_in_metadata_counts_as_absent_also_when_the_spec_is_known() -> None:
    world = World()
    world.api.create("pods", "default", _pod("p"))
    pod = _pod("q")
    pod["metadata"] |= {"creationTimestamp": None, "labels": None}
    assert "labels" not in world.api.create("pods", "default", pod)["metadata"]


def test_a_rejected_spec_is_rejected_again() -> None:
    world = World()
    for name in ("p", "q"):
        with pytest.raises(ApiError) as rejection:
            world.api.create("pods", "default", _pod(name, restartPolicy="Sometimes"))
        assert rejection.value.code == 422


def test_a_spec_that_was_seen_where_there_are_no_limits_is_not_taken_for_complete_where_there_are() -> None:
    world = World()
    world.api.create("pods", "default", _pod("p"))
    world.api.create("namespaces", "", {"metadata": {"name": "other"}})
    limits = [{"type": "Container", "max": {"cpu": "1"}}]
    world.api.create("limitranges", "other", {"metadata": {"name": "bounds"}, "spec": {"limits": limits}})
    limited = world.api.create("pods", "other", _pod("p"))
    assert limited["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}
    assert world.api.create("pods", "default", _pod("q"))["spec"]["containers"][0]["resources"] == {}
    with pytest.raises(ApiError, match="maximum cpu usage per Container is 1, but limit is 2"):
        world.api.create("pods", "other", _pod("q", {"resources": {"limits": {"cpu": "2"}}}))
    assert world.api.create("pods", "default", _pod("r", {"resources": {"limits": {"cpu": "2"}}}))
