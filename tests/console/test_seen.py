"""What is left of a report for somebody who may not list nodes, or the pods of other namespaces."""

from __future__ import annotations

from msgspec.structs import replace

from pilotage.console.seen import as_seen
from pilotage.explain.report import (
    Advice,
    Domain,
    GroupReport,
    JobQuota,
    MemberLack,
    MemberPlace,
    NearNode,
    RejectionGroup,
    Report,
    ScoredNode,
    Victims,
)
from pilotage.serve.console_door import Sight

ALL = Sight()
TENANT = Sight(frozenset({"mine"}), nodes=False)
REJECTED = RejectionGroup("P", "C", "no room", 1, ("secret-node",), True)
ADVICE = (
    Advice("SmallerRequest", "it asked for 1 cpu", 0.5, node="secret-node"),
    Advice("NodeLabel", "node secret-node had the label a=b", 1.5, node="secret-node"),
    Advice("MoreNodes", "there were one more node like secret-node", 2.0, like="secret-node", count=1),
    Advice("HigherPriority", "theirs/secret-pod were gone", 3.0, victims=("theirs/secret-pod",)),
)
VICTIMS = Victims("WouldEvict", 2, ("mine/one", "theirs/secret-pod"), "secret-node")
POD = Report(
    "mine/pod",
    "mine/pod fits: it would go to secret-node.",
    True,
    "s",
    2,
    rejections=(REJECTED,),
    nearest=(NearNode("secret-node", ()),),
    best=(ScoredNode("secret-node", 1, {}, 1),),
    rejected_by_extenders=(REJECTED,),
    would_fit_if=ADVICE,
    preemption=VICTIMS,
    feasible=1,
)
GROUP = GroupReport(
    "mine/group",
    "Unschedulable",
    "with host=secret-node",
    False,
    2,
    0,
    2,
    places=(MemberPlace("mine/pod", "secret-node"),),
    kept=(MemberPlace("mine/pod", "secret-node"),),
    topology_key="host",
    domain="secret-node",
    domains=(Domain("secret-node", 1, 1),),
    lacks=(MemberLack(1, ("mine/pod",), (REJECTED,), (NearNode("secret-node", ()),)),),
    would_fit_if=ADVICE,
    preemption=VICTIMS,
)


def test_whoever_may_see_everything_does() -> None:
    assert as_seen(ALL, POD) == POD and as_seen(ALL, GROUP) == GROUP


def test_no_name_of_a_node_or_of_another_tenants_pod_is_left() -> None:
    for report in (POD, GROUP):
        left = as_seen(TENANT, report)
        assert "secret" not in repr(left)
        assert "no room" in repr(left) and "it asked for 1 cpu" in repr(left)
        assert left.preemption is not None and left.preemption.examples == ("mine/one", "a pod of another namespace")


def test_whoever_sees_nodes_but_not_all_pods_learns_of_nodes_only() -> None:
    left = as_seen(Sight(frozenset({"mine"})), POD)
    assert "secret-node" in repr(left) and "secret-pod" not in repr(left)


def test_the_group_of_a_pod_is_hidden_as_well() -> None:
    left = as_seen(TENANT, Report("mine/pod", "see secret-node", False, "s", 2, pod_group=GROUP))
    assert "secret" not in repr(left) and "placed together with its group" in left.answer


def test_what_comes_first_is_still_said_when_nodes_are_hidden() -> None:
    quota = JobQuota("w", "pending", "queue", "QueueingStopped", "the queue is stopped")
    held = Report("mine/pod", "", True, "s", 2, held_by=("Gang",), held_on="secret-node", quota=quota)
    for report in (held, replace(GROUP, quota=quota)):
        left = as_seen(TENANT, report)
        assert "secret" not in repr(left)
        assert left.answer.startswith(
            "workload w is pending: QueueingStopped: the queue is stopped. When it has quota: "
        )
    assert as_seen(TENANT, held).answer.endswith("mine/pod has a place and is held there by plugin Gang (Permit).")
