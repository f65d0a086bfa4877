"""The status of Kueue's Workloads: what its definition and the policies about it refuse.

`tests/real_cluster/test_queueing_rules.py` asks a real API server the same.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.api_world import MERGE, World

Json = dict[str, Any]
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads"
NOW = "2026-01-01T00:00:00Z"


@pytest.fixture
def world() -> World:
    made = World()
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"podSets": [{"name": "main", "count": 2, "template": template}], "queueName": "lq"}
    made.ok("POST", WORKLOADS, {"metadata": {"name": "w"}, "spec": spec})
    return made


def write(world: World, **status: Any) -> None:
    world.ok("PATCH", f"{WORKLOADS}/w/status", {"status": status}, content_type=MERGE)


def rejection(world: World, **status: Any) -> str:
    told = world.refused("PATCH", f"{WORKLOADS}/w/status", {"status": status}, content_type=MERGE)
    assert told["code"] == 422
    return str(told["message"])


def conditions(*kinds: str) -> list[Json]:
    return [{"type": kind, "status": "True", "reason": "r", "message": "", "lastTransitionTime": NOW} for kind in kinds]


def admission(flavor: str = "std", *names: str) -> Json:
    assignments = [{"name": name, "flavors": {"cpu": flavor}, "count": 2} for name in names or ("main",)]
    return {"clusterQueue": "cq", "podSetAssignments": assignments}


def test_an_admission_is_not_exchanged_for_another_one(world: World) -> None:
    write(world, conditions=conditions("QuotaReserved"), admission=admission())
    write(world, conditions=conditions("QuotaReserved", "Admitted"), admission=admission())
    assert "status.admission: Invalid value" in rejection(world, admission=admission("other"))
    write(world, conditions=[], admission=None)
    write(world, admission=admission("other"))


@pytest.mark.parametrize("names", [("main", "more"), ("other",)])
def test_an_admission_is_for_all_pod_sets_and_no_others(world: World, names: tuple[str, ...]) -> None:
    expected = "podSetAssignments have to be those of the podSets of the spec"
    assert expected in rejection(world, admission=admission("std", *names))


def test_pods_that_were_given_back_stay_given_back_while_admitted(world: World) -> None:
    write(world, conditions=conditions("QuotaReserved", "Admitted"), admission=admission())
    write(world, reclaimablePods=[{"name": "main", "count": 2}])
    assert "reclaimablePods may only grow while the workload is admitted" in rejection(
        world, reclaimablePods=[{"name": "main", "count": 1}]
    )
    assert "reclaimablePods may only grow while the workload is admitted" in rejection(world, reclaimablePods=None)
    write(world, conditions=[], admission=None, reclaimablePods=None)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        (
            {"name": "main", "count": 3},
            "reclaimablePods have to name podSets of the spec and may not exceed their count",
        ),
        ({"name": "main", "count": -1}, "status.reclaimablePods[0].count: Invalid value: -1"),
        ({"name": "other", "count": 1}, "reclaimablePods have to name podSets of the spec"),
    ],
)
def test_no_more_pods_are_given_back_than_there_are(world: World, pods: Json, expected: str) -> None:
    assert expected in rejection(world, reclaimablePods=[pods])


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (
            {"admissionChecks": [{"name": "c", "state": "Perhaps"}]},
            "status.admissionChecks[0].state: Unsupported value",
        ),
        ({"requeueState": {"count": -1}}, "status.requeueState.count: Invalid value: -1"),
        ({"requeueState": {"count": "1"}}, "status.requeueState.count: Invalid value"),
        ({"conditions": [{"type": "Admitted", "status": "True"}]}, "status.conditions[0].reason: Required value"),
        ({"conditions": conditions("A", "A")}, 'status.conditions[1]: Duplicate value: {"type":"A"}'),
        ({"conditions": conditions(*map(str, range(17)))}, "status.conditions: Too many: 17"),
    ],
)
def test_a_status_has_to_make_sense(world: World, status: Json, expected: str) -> None:
    assert expected in rejection(world, **status)


def test_what_quota_was_reserved_for_stays_as_it_is(world: World) -> None:
    write(world, conditions=conditions("QuotaReserved", "Admitted"), admission=admission())
    for spec in ({"queueName": "other"}, {"podSets": [{"template": {"spec": {}}}]}, {"maximumExecutionTimeSeconds": 5}):
        told = world.refused("PATCH", f"{WORKLOADS}/w", {"spec": spec}, content_type=MERGE)
        assert told["code"] == 422 and f"{next(iter(spec))} is immutable while" in told["message"]
    world.ok("PATCH", f"{WORKLOADS}/w", {"spec": {"active": False, "priority": 3}}, content_type=MERGE)
