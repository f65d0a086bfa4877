"""What is given back is stored before it is given away."""

from __future__ import annotations

import pytest

from pilotage.jobs.controller.release_order import ReleaseOrder
from pilotage.model.kueue import Admission, Workload, WorkloadSpec, WorkloadStatus
from pilotage.model.meta import ObjectMeta, TimedCondition


def workload(name: str, queue: str = "", *, true: tuple[str, ...] = (), active: bool = True) -> Workload:
    """With quota in `queue`, or without."""
    types = ("QuotaReserved", *true) if queue else true
    conditions = tuple(TimedCondition(type=one, status="True", reason="R") for one in types)
    status = WorkloadStatus(conditions=conditions, admission=Admission(queue) if queue else None)
    return Workload(metadata=ObjectMeta(name=name, namespace="ns"), spec=WorkloadSpec(active=active), status=status)


@pytest.fixture
def order() -> ReleaseOrder:
    """Queues named by their cohort and a digit; `a` holds quota in the API server."""
    found = ReleaseOrder(lambda queue: queue[:-1])
    found.stored(workload("a", "red1"))
    return found


def test_a_reservation_waits_for_the_releases_of_its_tree(order: ReleaseOrder) -> None:
    order.decided(workload("a"))
    assert not order.may_go(workload("b", "red2"))
    assert order.may_go(workload("c", "blue1")), "another tree"
    assert order.may_go(workload("a")) and order.may_go(workload("d")), "who gets nothing waits for nobody"
    assert order.stored(workload("a")) == ["ns/b"]
    assert order.may_go(workload("b", "red2"))


def test_later_releases_are_not_waited_for(order: ReleaseOrder) -> None:
    order.stored(workload("z", "red1"))
    order.decided(workload("a"))
    assert not order.may_go(workload("b", "red2"))
    order.decided(workload("z"))
    assert order.stored(workload("a")) == ["ns/b"] and not order.may_go(workload("late", "red2"))


@pytest.mark.parametrize(
    "end", [workload("a"), workload("a", "red1", true=("Finished",)), workload("a", "red1", active=False)]
)
def test_quota_is_given_back_by_eviction_end_and_deactivation(order: ReleaseOrder, end: Workload) -> None:
    order.decided(end)
    assert not order.may_go(workload("b", "red2"))
    assert order.stored(end) == ["ns/b"]


def test_who_is_gone_holds_no_one_up(order: ReleaseOrder) -> None:
    order.decided(workload("a"))
    assert not order.may_go(workload("b", "red2"))
    assert order.gone("ns/a") == ["ns/b"]


def test_whose_status_is_rejected_holds_no_one_up_and_keeps_what_the_api_server_has(order: ReleaseOrder) -> None:
    assert order.rejected("ns/a") == []
    order.decided(workload("a"))
    assert order.is_release("ns/a") and not order.may_go(workload("b", "red2"))
    assert order.rejected("ns/a") == ["ns/b"] and not order.is_release("ns/a")


def test_a_status_that_keeps_its_quota_is_no_release(order: ReleaseOrder) -> None:
    order.decided(workload("a", "red1", true=("Evicted",)))
    assert order.may_go(workload("b", "red2"))
    assert order.stored(workload("a", "red1", true=("Evicted",))) == []


def test_who_gets_back_what_it_had_before_that_was_written_holds_no_one_up(order: ReleaseOrder) -> None:
    order.decided(workload("a"))
    assert not order.may_go(workload("b", "red2"))
    assert order.decided(workload("a", "red1")) == ["ns/b"]
    assert order.may_go(workload("b", "red2"))


def test_another_admission_of_the_same_workload_is_a_release_and_a_reservation(order: ReleaseOrder) -> None:
    moved = workload("a", "red2")
    order.decided(moved)
    assert order.exchanges(moved) and not order.exchanges(workload("a", "red1")) and not order.exchanges(workload("a"))
    assert order.may_go(moved), "the old one has to be taken back first"
    assert not order.may_go(workload("b", "red1"))
    assert order.stored(workload("a")) == ["ns/b"]
    assert not order.exchanges(moved) and order.may_go(moved)


def test_what_stands_in_a_deactivated_workload_is_taken_back_too(order: ReleaseOrder) -> None:
    order.stored(workload("a", "red1", active=False))
    assert order.exchanges(workload("a", "red2"))
