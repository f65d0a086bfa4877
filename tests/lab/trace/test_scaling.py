"""More, faster, longer; the same seed gives the same trace."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.lab.trace.format import TraceRecord
from pilotage.lab.trace.scaling import Factors, Scaling

from .making import gone, node, observed, pod, put, told


def scaled(records: list[TraceRecord], **factors: Any) -> list[TraceRecord]:
    return list(Scaling(Factors(**factors)).records(iter(records)))


def member(name: str, group: str) -> dict[str, Any]:
    obj = pod(name)
    obj["spec"]["schedulingGroup"] = {"podGroupName": group}
    return obj


PODS = [put(number, pod(f"p{number}"), 10) for number in range(200)]


def test_nothing_changes_by_itself() -> None:
    records = [put(0, node("a")), put(1, pod("p"), 5), gone(2, "q")]
    assert scaled(records) == records


def test_time_runs_faster_and_lifetimes_stay() -> None:
    assert told(scaled([put(10, pod("p"), 60)], rate=4)) == [(2.5, "p", 60)]
    (made,) = scaled([put(10, observed("p", "a", 13.0), 60)], rate=2)
    assert made.put_object()["metadata"]["annotations"]["trace.pilotage.dev/observed-bound-at"] == "8.000"


def test_pods_run_longer() -> None:
    assert told(scaled([put(10, pod("p"), 60), put(11, pod("q"))], lifetimes=1.5)) == [(10, "p", 90), (11, "q", None)]


def test_copies_have_names_of_their_own_and_share_nodes() -> None:
    made = scaled([put(0, node("a")), put(1, observed("p", "a", 2.0), 5)], pods=3)
    assert told(made) == [(0, "a", None), (1, "p", 5), (1, "p-x1", 5), (1, "p-x2", 5)]
    copy = made[2].put_object()
    assert copy["metadata"]["uid"] != made[1].put_object()["metadata"]["uid"]
    assert copy["metadata"]["annotations"] == {}, "nobody has seen the copy"


@pytest.mark.parametrize("factor", [0.0, 0.25, 1.5, 2.0])
def test_the_number_of_pods(factor: float) -> None:
    count = len(scaled(PODS, pods=factor, seed=3))
    whole = factor.is_integer()
    assert count == factor * 200 if whole else abs(count - factor * 200) < 40


def test_copies_are_deleted_when_the_pod_is() -> None:
    made = scaled([put(1, pod("p")), gone(4, "p")], pods=2, spread=2, seed=1)
    (came, left) = (
        next(one.at for one in made if told([one])[0][1:] == end) for end in (("p-x1", None), ("gone", "p-x1"))
    )
    assert 1 < came < 3 and left - came == pytest.approx(3, abs=1e-5)


def test_a_group_is_copied_as_a_whole() -> None:
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
    }
    records = [put(1, group), *(put(1, member(f"m{number}", "g")) for number in range(3)), gone(5, "m1")]
    made = scaled(records, pods=2)
    groups = Counter(
        one.put_object()["spec"]["schedulingGroup"]["podGroupName"]
        for one in made
        if "m" in told([one])[0][1] and one.puts
    )
    assert groups == {"g": 3, "g-x1": 3}
    assert [name for _, name, *_ in told(made)].count("gone") == 2
    half = Counter(len(scaled(records, pods=0.5, seed=seed)) for seed in range(20))
    assert set(half) == {0, 5}


def test_pods_with_claims_of_their_own_are_not_copied() -> None:
    claimed = pod("db-0")
    claimed["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]
    scaling = Scaling(Factors(pods=3))
    assert told(scaling.records(iter([put(1, claimed), gone(2, "db-0")]))) == [(1, "db-0", None), (2, "gone", "db-0")]
    assert scaling.not_copied == 1


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=12),
    st.integers(0, 5),
    st.sampled_from([0.5, 1.0, 2.5]),
)
def test_records_stay_in_order_and_the_seed_decides(pods: list[tuple[int, int]], seed: int, factor: float) -> None:
    records = [put(at, pod(f"p{number}"), float(runs)) for number, (at, runs) in enumerate(sorted(pods))]
    made = scaled(records, pods=factor, rate=2, spread=7, seed=seed)
    assert [one.at for one in made] == sorted(one.at for one in made)
    assert scaled(records, pods=factor, rate=2, spread=7, seed=seed) == made
    names = [name for _, name, _ in told(made)]
    assert len(set(names)) == len(names)
