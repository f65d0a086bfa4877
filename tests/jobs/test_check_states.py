"""What controllers of admission checks say besides the state reaches the status and the pods."""

from __future__ import annotations

import msgspec

from pilotage.jobs.record import CheckState
from pilotage.model.kueue import AdmissionCheckState, PodSetUpdate, WorkloadStatus
from tests.jobs.world import World


def test_news_about_a_check_in_the_same_state_are_kept() -> None:
    """Else the next status would put the old text back, and the pods would not get what the check adds."""
    world = World()
    world.add("admissionCheck", "gate")
    world.queue("main", checks=[{"name": "gate"}])
    world.submit("a", "main", 1)
    update = PodSetUpdate(name="main", node_selector={"rack": "7"})
    _write(world, AdmissionCheckState(name="gate", state="Pending", message="3 nodes to go"))
    assert _check(world).message == "3 nodes to go"
    _write(world, AdmissionCheckState(name="gate", state="Ready", message="", pod_set_updates=()))
    _write(world, AdmissionCheckState(name="gate", state="Ready", message="all there", pod_set_updates=(update,)))
    world.engine.pods_ready("ns/a", True)
    world.settle()
    assert _check(world).message == "all there" and _check(world).pod_set_updates == (update,)


def _check(world: World) -> AdmissionCheckState:
    """As the engine would write it."""
    workload = world.engine.workload("ns/a")
    assert workload is not None
    (found,) = workload.status.admission_checks
    return found


def _write(world: World, check: AdmissionCheckState) -> None:
    workload = world.workload("a")
    status: WorkloadStatus = msgspec.structs.replace(workload.status, admission_checks=(check,))
    changed = msgspec.structs.replace(workload, status=status)
    world.stage.workloads[workload.key] = changed
    world.engine.upsert(changed)
    world.settle()


def test_every_eviction_begins_the_checks_anew_and_counts_retries() -> None:
    ready, retry = (
        CheckState(state="Ready", since=3, retries=1),
        CheckState(state="Retry", since=3, retries=1, requeue_after=9),
    )
    assert [(one.state, one.retries, one.since, one.requeue_after) for one in (ready.reset(5), retry.reset(5))] == [
        ("Pending", 1, 5, None),
        ("Pending", 2, 5, None),
    ]
    assert CheckState(since=3).reset(5).since == 3, "Pending it was already"


def test_the_latest_delay_of_those_in_retry_counts() -> None:
    world = World()
    world.queue("main")
    world.submit("a", "main")
    record = world.engine._workloads.records["ns/a"]
    record.checks = {
        "early": CheckState(state="Retry", since=10, requeue_after=5),
        "late": CheckState(state="Retry", since=2, requeue_after=20),
        "none": CheckState(state="Retry", since=90),
        "other": CheckState(state="Ready", since=90, requeue_after=90),
    }
    assert record.checks_retry_at == 22
