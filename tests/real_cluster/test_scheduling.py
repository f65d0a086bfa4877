"""Where pods go, and what the API server has stored about it afterwards."""

from __future__ import annotations

import pytest

from .objects import condition, node, pod, priority_class, taint
from .servers import eventually
from .world import World


def test_a_pod_is_bound_and_the_server_says_so(world: World) -> None:
    world.create(node("n"), pod("p"))
    world.start_scheduler()
    assert world.wait_bound("p") == ["n"]
    scheduled = condition(world.pod("p"), "PodScheduled")
    assert scheduled is not None and scheduled["status"] == "True"
    assert "reason" not in scheduled and "message" not in scheduled
    assert scheduled["lastTransitionTime"]


def test_the_event_of_a_bound_pod(world: World) -> None:
    world.create(node("n"), pod("p"))
    world.start_scheduler()
    event = world.wait_event("p", "Scheduled")
    facts = {key: event[key] for key in ("type", "action", "note", "reportingController")}
    assert facts == {
        "type": "Normal",
        "action": "Binding",
        "note": "Successfully assigned default/p to n",
        "reportingController": "default-scheduler",
    }
    assert event["reportingInstance"].startswith("default-scheduler-") and event["eventTime"]
    assert event["regarding"]["kind"] == "Pod" and event["regarding"]["uid"] == world.pod("p")["metadata"]["uid"]


def test_a_pod_that_does_not_fit_is_told_why(world: World) -> None:
    world.create(node("small", cpu="1"), node("tainted", taints=[taint("dedicated", "db")]), pod("p", cpu="2"))
    world.start_scheduler()
    (rejection,) = world.wait_refused("p")
    reasons = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s)."
    assert rejection["status"] == "False"
    assert rejection["message"].startswith(reasons), rejection["message"]
    assert rejection["lastTransitionTime"]
    event = world.wait_event("p", "FailedScheduling")
    assert (event["type"], event["action"], event["note"]) == ("Warning", "Scheduling", rejection["message"])


def test_pods_of_other_schedulers_are_left_alone(world: World) -> None:
    world.create(node("n"), pod("theirs", schedulerName="another"), pod("ours"))
    world.start_scheduler()
    world.wait_bound("ours")
    assert world.node_of("theirs") == ""
    assert condition(world.pod("theirs"), "PodScheduled") is None


def test_a_gated_pod_waits_for_its_gate(world: World) -> None:
    world.create(node("n"), pod("gated", schedulingGates=[{"name": "example.com/wait"}]), pod("free"))
    world.start_scheduler()
    world.wait_bound("free")
    waiting = condition(world.pod("gated"), "PodScheduled")
    assert waiting is not None and (waiting["status"], waiting["reason"]) == ("False", "SchedulingGated")
    world.api.patch("pods", "gated", {"spec": {"schedulingGates": []}})
    assert world.wait_bound("gated") == ["n"]


def test_the_more_important_pod_goes_first(world: World) -> None:
    world.create(priority_class("low", 10), priority_class("high", 1000), node("n", cpu="1"))
    world.create(pod("first", cpu="1", priority_class="low"), pod("second", cpu="1", priority_class="high"))
    world.start_scheduler()
    world.wait_bound("second")
    world.wait_refused("first")


@pytest.mark.parametrize("grace", [0, 30])
def test_a_less_important_pod_makes_room(world: World, grace: int) -> None:
    world.create(priority_class("low", 10), priority_class("high", 1000), node("n", cpu="1"))
    world.create(pod("victim", cpu="1", priority_class="low", grace=grace))
    world.start_scheduler()
    world.wait_bound("victim")
    world.create(pod("winner", cpu="1", priority_class="high"))
    if grace:
        terminating = eventually("the victim must go", lambda: _terminating(world, "victim"))
        disrupted = condition(terminating, "DisruptionTarget")
        assert disrupted is not None and (disrupted["status"], disrupted["reason"]) == ("True", "PreemptionByScheduler")
        assert disrupted["message"] == "default-scheduler: preempting to accommodate a higher priority pod"
        eventually("a place is kept", lambda: world.pod("winner")["status"].get("nominatedNodeName") == "n")
        assert world.node_of("winner") == ""
        world.api.delete("pods", "victim", grace=0)
    world.wait_bound("winner")
    assert world.api.get("pods", "victim") is None
    assert "nominatedNodeName" not in world.pod("winner")["status"]
    event = world.wait_event("victim", "Preempted")
    assert (event["type"], event["action"]) == ("Normal", "Preempting")
    assert event["related"]["name"] == "winner"


def _terminating(world: World, name: str) -> dict[str, object] | None:
    found = world.pod(name)
    return found if "deletionTimestamp" in found["metadata"] else None


def test_many_pods_fill_the_nodes_exactly(world: World) -> None:
    world.create(*(node(f"n{number}", cpu="2") for number in range(5)))
    world.create(*(pod(f"p{number:02}", cpu="500m") for number in range(21)))
    world.start_scheduler()
    eventually("twenty are bound", lambda: sum(1 for p in world.api.list("pods") if p["spec"].get("nodeName")) == 20)
    (left,) = [p["metadata"]["name"] for p in world.api.list("pods") if not p["spec"].get("nodeName")]
    (rejection,) = world.wait_refused(left)
    assert "5 Insufficient cpu" in rejection["message"]
    per_node = [p["spec"].get("nodeName") for p in world.api.list("pods")]
    assert all(per_node.count(f"n{number}") == 4 for number in range(5))
