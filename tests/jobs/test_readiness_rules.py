"""The condition PodsReady, row by row."""

from __future__ import annotations

import pytest

from pilotage.jobs import conditions as c
from pilotage.jobs import pods_ready
from pilotage.jobs.record import WorkloadRecord
from tests.jobs.world import World


def _record(*, is_admitted: bool, before: tuple[bool, str] | None) -> WorkloadRecord:
    world = World()
    world.queue("main")
    world.submit("a", "main")
    record: WorkloadRecord = world.engine._workloads.records["ns/a"]
    record.conditions.set(c.ADMITTED, is_admitted, "x", "", 0)
    record.conditions.remove(c.PODS_READY)
    if before is not None:
        record.conditions.set(c.PODS_READY, *before, "", 0)
    return record


@pytest.mark.parametrize(
    ("is_admitted", "is_ready", "before", "after"),
    [
        (False, True, (True, "Started"), (False, "WaitForStart")),
        (False, False, (False, "WaitForRecovery"), (False, "WaitForStart")),
        (True, True, (False, "WaitForRecovery"), (True, "Recovered")),
        (True, True, (True, "Recovered"), (True, "Recovered")),
        (True, True, (False, "WaitForStart"), (True, "Started")),
        (True, True, None, (True, "Started")),
        (True, False, None, (False, "WaitForStart")),
        (True, False, (True, "Started"), (False, "WaitForRecovery")),
        (True, False, (True, "Recovered"), (False, "WaitForRecovery")),
        (True, False, (False, "WaitForRecovery"), (False, "WaitForRecovery")),
        (True, False, (False, "WaitForStart"), (False, "WaitForStart")),
    ],
)
def test_condition(is_admitted: bool, is_ready: bool, before: tuple[bool, str] | None, after: tuple[bool, str]) -> None:
    assert pods_ready.condition(_record(is_admitted=is_admitted, before=before), is_ready)[:2] == after


def test_what_waits_has_the_condition_from_the_start_unless_the_feature_is_off() -> None:
    for config, expected in (({}, ["False/WaitForStart"]), ({"waitForPodsReady": {"enable": False}}, [])):
        world = World(**config)
        world.queue("main", std=1)
        world.submit("big", "main", 2)
        found = [one for one in world.workload("big").status.conditions if one.type == "PodsReady"]
        assert [f"{one.status}/{one.reason}" for one in found] == expected


def test_the_end_of_a_former_eviction_keeps_its_text() -> None:
    world = World(waitForPodsReady={"timeout": "5s", "requeuingStrategy": {"backoffBaseSeconds": 1}})
    world.queue("main")
    world.submit("a", "main")
    world.stage.advance(6)
    world.settle()
    evicted = next(one for one in world.workload("a").status.conditions if one.type == "Evicted")
    assert (evicted.status, evicted.reason) == ("False", "QuotaReserved")
    assert evicted.message == "Previously: Exceeded the PodsReady timeout of 5s"
