"""Known differences from kube-scheduler are recognised by what makes them so, and by nothing less."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pilotage.conformance.cases import ConformanceCase
from pilotage.conformance.preemption import answer_preemption
from pilotage.conformance.replay import ANSWERERS, load
from pilotage.testing import NodeBuilder, PodBuilder, node, pod
from tests.conformance.tools import tool
from tests.plugins.volume_world import ZONE, capacity, claim, csi_driver, storage_class, using

Json = dict[str, Any]
KINDS = {"filter-score": ANSWERERS["filter-score"], "hint": ANSWERERS["hint"]}


def case_of(*objects: NodeBuilder | PodBuilder | Json, kind: str = "filter-score", **more: Any) -> Json:
    written = [obj if isinstance(obj, dict) else obj.json() for obj in objects]
    for obj in written:
        obj["metadata"].setdefault("uid", obj["metadata"]["name"])
    return {"name": "own-1", "kind": kind, "objects": written, "pod": "default/p", **more}


def own(case: Json) -> Json:
    given = ConformanceCase(case["name"], case["kind"], case["objects"], case["pod"], {})
    if case["kind"] == "preemption":
        return answer_preemption(load(given), searched_before=False)
    return KINDS[case["kind"]](given)


def reason(case: Json, theirs: Json) -> str | None:
    problems = tool("answer_differences").differences(case, theirs, own(case))
    assert problems, "there must be something to recognise"
    found: str | None = tool("known_differences").known_reason(case, theirs, problems, own)
    return found


def scores(answer: Json, **changed: int) -> Json:
    """The answer with other points of a plugin on every node."""
    found = {}
    for name, score in answer["scores"].items():
        plugins = {**score["plugins"], **changed}
        found[name] = {"plugins": plugins, "total": sum(plugins.values())}
    return {**answer, "scores": found}


def image(size: int) -> list[Json]:
    return [{"names": ["big:latest"], "sizeBytes": size}]


BIG = pod("p").spec(containers=[{"name": "c", "image": "big"}])


@pytest.mark.parametrize(("other", "is_known"), [(300_000_000, True), (200_000_000, False)])
def test_images_of_different_sizes(other: int, is_known: bool) -> None:
    case = case_of(node("a").status(images=image(200_000_000)), node("b").status(images=image(other)), BIG)
    found = reason(case, scores(own(case), ImageLocality=50))
    assert found == ("no single answer: nodes report an image with different sizes" if is_known else None)
    assert reason(case, scores(own(case), ImageLocality=50, NodeResourcesFit=1)) is None, "something else differs too"


def test_image_volumes() -> None:
    mounting = BIG.spec(volumes=[{"name": "v", "image": {"reference": "data:1"}}])
    case = case_of(node("a").status(images=image(800_000_000)), mounting)
    found = reason(case, scores(own(case), ImageLocality=78))
    assert found == "newer rule: image volumes count as containers in ImageLocality"
    without = case_of(node("a").status(images=image(800_000_000)), BIG)
    assert reason(without, scores(own(without), ImageLocality=78)) is None


@pytest.mark.parametrize(("zone", "is_known"), [("z", True), ("far", False)])
def test_storage_that_is_announced_twice(zone: str, is_known: bool) -> None:
    def announced(name: str, amount: str, where: str) -> Json:
        return capacity(name, "s", amount, {"matchLabels": {ZONE: where}})

    objects = [storage_class("s"), claim("c", class_name="s"), csi_driver("csi.example.com", storageCapacity=True)]
    objects += [announced("one", "2Gi", "z"), announced("two", "100Gi", zone)]
    case = case_of(node("n").zone("z"), using("c"), *objects)
    points = own(case)["scores"]["n"]["plugins"]["VolumeBinding"]
    found = reason(case, scores(own(case), VolumeBinding=points + 1))
    assert found == ("no single answer: storage of one class for a node is announced twice" if is_known else None)


def resized(in_use: str) -> PodBuilder:
    """Two containers: one is being made smaller, the other larger."""
    asked = [{"name": name, "resources": {"requests": {"cpu": cpu}}} for name, cpu in (("a", "2"), ("b", "1"))]
    used = [
        {"name": name, "resources": {"requests": {"cpu": cpu}}, "allocatedResources": {"cpu": cpu}}
        for name, cpu in (("a", "1"), ("b", in_use))
    ]
    return pod("resized").node("n").spec(containers=asked).status(phase="Running", containerStatuses=used)


def test_a_pod_that_is_resized() -> None:
    waiting, by_container = pod("p").requests(cpu="1"), pod("resized").node("n").requests(cpu="4")
    case = case_of(node("n").cpu("4"), waiting, resized("2"))
    assert own(case)["filter"] == {"n": None}, "3 of 4 are in use: the larger sum"
    theirs = own(case_of(node("n").cpu("4"), waiting, by_container))
    assert reason(case, theirs) == (
        "newer rule: of a pod that is resized the larger sums count, not the larger requests of each container"
    )
    assert reason(case_of(node("n").cpu("4"), waiting, by_container.requests(cpu="1")), theirs) is None, "no resize"


def test_options_of_bind_mounts() -> None:
    mount = {"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}
    case = case_of(node("n"), pod("p").spec(containers=[{"name": "c", "volumeMounts": [mount]}]))
    theirs = own(case_of(node("n"), pod("p").spec(containers=[{"name": "c"}])))
    assert reason(case, theirs) == "newer rule: options of bind mounts are a feature that nodes declare"


def announcing(name: str, slices: int) -> Json:
    pool = {"name": "n", "generation": 1, "resourceSliceCount": slices}
    spec = {"driver": "d", "pool": pool, "nodeName": "n", "devices": [{"name": name}]}
    return {"kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(("slices", "is_known"), [(1, True), (2, False)])
def test_slices_that_announce_different_numbers(slices: int, is_known: bool) -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 5}}
    claim = {
        "metadata": {"namespace": "default", "name": "c", "uid": "c"},
        "spec": {"devices": {"requests": [request]}},
    }
    gpu = {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
    waiting = pod("p").spec(resourceClaims=[{"name": "c", "resourceClaimName": "c"}])
    case = case_of(
        node("n"), waiting, gpu, claim | {"kind": "ResourceClaim"}, announcing("a", 2), announcing("b", slices)
    )
    ours = own(case)
    assert ours["filter"]["n"]["plugin"] == "DynamicResources"
    found = reason(case, {**ours, "filter": {"n": {**ours["filter"]["n"], "reasons": ["another"]}}})
    assert found == ("no single answer: slices of a pool announce different numbers of slices" if is_known else None)


@pytest.mark.parametrize(("other_name", "is_known"), [("example.com/gpu", True), ("example.com/nic", False)])
def test_a_class_that_shares_its_resource_name_with_a_newer_one(other_name: str, is_known: bool) -> None:
    def device_class(name: str, resource: str, created: str) -> Json:
        metadata = {"name": name, "creationTimestamp": created}
        return {"kind": "DeviceClass", "metadata": metadata, "spec": {"extendedResourceName": resource}}

    old = device_class("old", "example.com/gpu", "2026-01-01T00:00:00Z")
    new = device_class("new", other_name, "2026-02-01T00:00:00Z")
    waiting = pod("p").requests(**{"deviceclass.resource.kubernetes.io/old": "1"})
    case = case_of(node("n"), waiting, old, new)
    found = reason(case, {**own(case), "filter": {"n": None}, "message": "other"})
    expected = (
        "no single answer: the pod asks by its implicit name for a class that shares its resource name with a newer one"
    )
    assert found == (expected if is_known else None)


def test_a_pod_in_two_budgets() -> None:
    """`a` uses up the second budget only under the rule of the release, so that `b` is protected too."""
    nodes = [node(name).cpu("1") for name in ("n", "m")]
    low = [
        pod("a").node("n").priority(2).label("x", "1").label("y", "1").requests(cpu="0.5"),
        pod("b").node("n").priority(1).label("y", "1").requests(cpu="0.5"),
        pod("c").node("m").priority(3).requests(cpu="1"),
    ]
    budgets = [
        {
            "kind": "PodDisruptionBudget",
            "metadata": {"namespace": "default", "name": name},
            "spec": {"selector": {"matchLabels": {label: "1"}}},
            "status": {"disruptionsAllowed": allowed},
        }
        for name, label, allowed in (("first", "x", 0), ("second", "y", 1))
    ]
    case = case_of(*nodes, *low, *budgets, pod("p").priority(9).requests(cpu="0.5"), kind="preemption")
    ours = own(case)
    assert ours["nominatedNode"] == "n" and ours["candidates"]["n"]["victims"] == ["default/b"]
    result = {"code": "Success", "nominatedNode": "m", "nomination": "set", "message": "", "deleted": ["default/c"]}
    theirs = {"filter": ours["filter"], "message": ours["filterMessage"], "postFilter": result}
    assert reason(case, theirs) == "newer rule: a pod that one budget protects does not use up the others"
    assert (
        reason({**case, "objects": [o for o in case["objects"] if o["kind"] != "PodDisruptionBudget"]}, theirs) is None
    )


@pytest.mark.parametrize(("port", "is_known"), [(80, True), (81, False)])
def test_two_pods_that_hold_the_same_host_port(port: int, is_known: bool) -> None:
    """Of two pods with the port one is too important to go, so nothing helps; kube-scheduler forgets its port."""

    def serving(name: str, port: int) -> PodBuilder:
        ports = [{"containerPort": 80, "hostPort": port, "protocol": "TCP"}]
        return pod(name).spec(containers=[{"name": "c", "ports": ports}])

    low, high = serving("low", port).node("n").priority(1), serving("high", 80).node("n").priority(99)
    case = case_of(node("n"), low, high, serving("p", 80).priority(9), kind="preemption")
    ours = own(case)
    assert ours["nominatedNode"] == "" and ours["candidates"] == {}
    result = {"code": "Success", "nominatedNode": "n", "nomination": "set", "message": "", "deleted": ["default/low"]}
    found = reason(case, {"filter": ours["filter"], "message": ours["filterMessage"], "postFilter": result})
    expected = "fault of kube-scheduler: of two pods with the same host port one is forgotten"
    assert found == (expected if is_known else None)


def test_the_deletion_of_a_claim() -> None:
    known = tool("known_differences").known_reason
    case = {"kind": "hint", "plugin": "DynamicResources", "event": {"resource": "ResourceClaim", "action": "Delete"}}
    case |= {"objects": [pod("p").json()], "pod": "default/p"}

    def same(case: Json) -> Json:
        return {"events": ["e"], "hint": "Queue"}

    expected = "newer rule: the deletion of an allocated ResourceClaim may help any pod"
    assert known(case, {"hint": "QueueSkip"}, [("hint to e", "QueueSkip", "Queue")], same) == expected
    assert known(case, {"hint": "Queue"}, [("hint to e", "Queue", "QueueSkip")], same) is None


def test_what_fits_no_class_is_a_finding() -> None:
    case = case_of(node("n"), pod("p"))
    assert reason(case, {**own(case), "message": "something else"}) is None


def test_a_crash_of_ours_is_a_difference() -> None:
    differences = tool("answer_differences").differences
    assert differences(case_of(), {"filter": {}}, {"crash": "KeyError: 'x'"}) == [("crash", None, "KeyError: 'x'")]
    assert differences(case_of(), {"cannot": "read it"}, {"crash": "KeyError: 'x'"}) == []


def test_every_known_difference_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "commands" / "conformance.md").read_text()
    missing = [reason for reason in tool("known_differences").CLASSES if f"| {reason} |" not in page]
    assert not missing
