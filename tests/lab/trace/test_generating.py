"""Generated traces: nodes of pools, pods of shapes, gangs that come together; the seed decides."""

from __future__ import annotations

from collections import Counter

import pytest

from pilotage.lab.trace.distributions import DistributionError, arrivals, lifetime
from pilotage.lab.trace.format import TraceRecord
from pilotage.lab.trace.generating import NodePool, PodShape, WorkloadModel, generated, parse_pool, parse_shape
from pilotage.lab.trace.validation import problems
from pilotage.rng import seeded

from .making import write

SHAPES = [PodShape({"cpu": "1"}, weight=3), PodShape({"cpu": "4"}, gang=4, priority=10, namespace="batch")]


def records(seed: int = 1, *, until: float = 36_000.0, pods: int = 10**9) -> list[TraceRecord]:
    pools = [NodePool("a", 2, {"cpu": "8"}, zones=2), NodePool("b", 1, {"cpu": "64", "nvidia.com/gpu": "8"})]
    spec = WorkloadModel(
        pools, SHAPES, arrivals("poisson:rate=100/h"), [lifetime("exponential:mean=10m"), lifetime("none")]
    )
    return list(generated(spec, seeded(seed), until, pods))


def objects(kind: str, of: list[TraceRecord]) -> list[dict[str, object]]:
    return [one.put_object() for one in of if one.name is not None and one.name.kind == kind]


def test_the_trace_is_valid_and_has_what_was_asked_for(tmp_path_factory: pytest.TempPathFactory) -> None:
    made = records()
    assert list(problems(write(tmp_path_factory.mktemp("made") / "t.jsonl.gz", made))) == []
    nodes = objects("Node", made)
    assert [node["status"]["allocatable"]["cpu"] for node in nodes] == ["8", "8", "64"]  # type: ignore[index]
    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes]  # type: ignore[index]
    assert zones == ["zone-0", "zone-1", "zone-0"]
    singles = [one for one in made if one.runs is not None]
    gangs = objects("PodGroup", made)
    assert 3 * len(gangs) == pytest.approx(len(singles), rel=0.25)
    assert len(singles) + len(gangs) == pytest.approx(1000, rel=0.1)


def test_a_gang_comes_together_with_its_group_before_it() -> None:
    made = records(until=3600.0)
    members = Counter(
        (one.at, one.put_object()["spec"]["schedulingGroup"]["podGroupName"])
        for one in made
        if one.name is not None and one.name.kind == "Pod" and "schedulingGroup" in one.put_object()["spec"]
    )
    assert members and set(members.values()) == {4}
    first = {group["metadata"]["name"]: index for index, group in enumerate(objects("PodGroup", made))}  # type: ignore[index]
    assert {group for _, group in members} == set(first)


def test_the_seed_decides_and_the_limits_hold() -> None:
    assert records(5) == records(5) != records(6)
    assert max(one.at for one in records(until=100.0)) < 100
    assert 20 <= len(objects("Pod", records(pods=20))) <= 23, "a gang is not taken apart"
    assert objects("Pod", records(pods=0)) == []


def test_pools_and_shapes_are_read() -> None:
    assert parse_pool("name=gpu,count=3,cpu=64,zones=2,nvidia.com/gpu=8") == NodePool(
        "gpu", 3, {"cpu": "64", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "8"}, 2
    )
    assert parse_shape("cpu=500m,weight=3,gang=4,priority=-5,namespace=n,lifetime=lognormal:median=1h;sigma=1") == (
        PodShape({"cpu": "500m"}, 3.0, 4, -5, "n"),
        "lognormal:median=1h,sigma=1",
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cpu", '"cpu" is no key=value'),
        ("cpu=1,cpu=2", "cpu is there twice"),
        ("cpu=many", "not a quantity"),
        ("weight=0", "weight"),
        ("gang=0", 'gang: "0" is no whole number'),
        ("gang=9999999", "from 1 to 1,000,000"),
        ("priority=high", "priority"),
    ],
)
def test_a_wrong_shape_is_said(text: str, problem: str) -> None:
    with pytest.raises(DistributionError) as error:
        parse_shape(text)
    assert problem in str(error.value)
