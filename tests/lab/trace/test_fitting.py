"""A trace like another one: as many pods an hour, of the same shapes, for as long."""

from __future__ import annotations

import statistics
from collections import Counter

import pytest

from pilotage.lab.trace.distributions import arrivals, lifetime
from pilotage.lab.trace.fitting import FitError, WorkloadFit
from pilotage.lab.trace.format import TraceRecord
from pilotage.lab.trace.generating import NodePool, PodShape, WorkloadModel, generated
from pilotage.lab.trace.pod_facts import group_of, shape_of
from pilotage.model.pod import decode_pod
from pilotage.rng import seeded

from .making import gone, node, pod, put


def fitted(records: list[TraceRecord]) -> WorkloadFit:
    fit = WorkloadFit(seeded(1))
    fit.observe(iter(records))
    return fit


def original() -> list[TraceRecord]:
    shapes = [PodShape({"cpu": "1"}, 3.0, namespace="web"), PodShape({"cpu": "8", "memory": "4Gi"}, gang=4, priority=9)]
    lifetimes = [lifetime("exponential:mean=5m"), lifetime("fixed:2h")]
    pools = [NodePool("a", 5, {"cpu": "8"}), NodePool("b", 2, {"cpu": "64"})]
    spec = WorkloadModel(pools, shapes, arrivals("diurnal:rate=200/h,peak=2,at=6h"), lifetimes)
    return list(generated(spec, seeded(1), 86_400.0, 10**9))


def facts(records: list[TraceRecord]) -> tuple[Counter[str], list[float], Counter[int], Counter[int]]:
    pods = [(one, decode_pod(bytes(one.put))) for one in records if one.name is not None and one.name.kind == "Pod"]
    shapes = Counter(f"{shape_of(pod)} {pod.priority} {pod.namespace}" for _, pod in pods)
    groups = Counter(group_of(pod) for _, pod in pods if group_of(pod))
    return (
        shapes,
        [one.runs or 0 for one, _ in pods],
        Counter(groups.values()),
        Counter(int(one.at // 10_800) for one, _ in pods),
    )


def test_what_is_generated_is_like_what_was_seen() -> None:
    seen = original()
    fit = fitted(seen)
    like = list(generated(fit.workload(), seeded(2), fit.span, 10**9))
    (shapes, runs, groups, times), (new_shapes, new_runs, new_groups, new_times) = facts(seen), facts(like)
    assert shapes.keys() == new_shapes.keys()
    for shape, count in shapes.items():
        assert new_shapes[shape] == pytest.approx(count, rel=0.15)
    assert set(groups) == set(new_groups) == {4}
    assert statistics.mean(new_runs) == pytest.approx(statistics.mean(runs), rel=0.15)
    assert all(new_times[part] == pytest.approx(times[part], rel=0.35, abs=40) for part in range(8))
    nodes = [one.put_object() for one in like if one.name is not None and one.name.kind == "Node"]
    assert Counter(node["status"]["allocatable"]["cpu"] for node in nodes) == {"8": 5, "64": 2}


def test_changes_of_pods_are_no_arrivals() -> None:
    records = [put(1, pod("p")), put(2, pod("p", labels={"a": "b"})), gone(3, "p"), put(4, pod("q"), 5)]
    records += [put(5, pod("q", labels={"a": "b"}))]
    assert fitted(records).pods == 2


def test_of_no_pods_nothing_can_be_learned() -> None:
    with pytest.raises(FitError, match="no pods"):
        fitted([put(0, node("a"))]).workload()


def test_what_was_there_from_the_start_comes_over_time() -> None:
    fit = fitted([put(0, pod(f"p{number}")) for number in range(10)])
    made = list(generated(fit.workload(), seeded(1), 3600.0 * 4, 10**9))
    assert sum(one.name is not None and one.name.kind == "Pod" for one in made) == pytest.approx(40, rel=0.5)
