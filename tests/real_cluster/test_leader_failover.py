"""Two instances: one schedules, the other takes over when it is gone, and never do both."""

from __future__ import annotations

import threading

from .bindings_seen import BindingsSeen
from .client import Client
from .objects import node, pod
from .scheduler_process import SchedulerProcess
from .servers import eventually
from .world import World

QUICK = ("--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=500ms")
PODS_PER_NODE = 10


def instance(world: World) -> SchedulerProcess:
    return world.start_instance("--secure-port=0", *QUICK)


def holder(world: World) -> str:
    lease = world.api.get("leases", "kube-scheduler", "kube-system")
    return "" if lease is None else lease["spec"].get("holderIdentity") or ""


def test_the_standby_takes_over_from_a_killed_leader_and_no_pod_is_bound_twice(world: World) -> None:
    nodes = 10
    world.create(*(node(f"n{number}", cpu="1") for number in range(nodes)))
    first = instance(world)
    led_first = eventually("the first leads", lambda: holder(world))
    second = instance(world)
    creator = Client(world.server.admin)

    def create_pods() -> None:
        for number in range(nodes * PODS_PER_NODE):
            creator.create(pod(f"p{number:03}", cpu="100m"))

    with BindingsSeen(Client(world.server.admin)) as seen:
        creating = threading.Thread(target=create_pods)
        creating.start()
        eventually("some pods are bound", lambda: len(seen.nodes_of) > PODS_PER_NODE)
        first.kill()
        creating.join()
        eventually("all pods are bound", lambda: len(seen.nodes_of) == nodes * PODS_PER_NODE)
        assert seen.bound_more_than_once() == {}
    assert holder(world) != led_first
    assert second.is_running


def test_a_leader_that_ends_in_order_leaves_the_lease_to_the_standby_at_once(world: World) -> None:
    world.create(node("n"))
    first = instance(world)
    led_first = eventually("the first leads", lambda: holder(world))
    second = instance(world)
    eventually("the second stands by", lambda: "attempting to acquire" in second.said() or second.is_running)
    assert first.end() == 0
    eventually("the second leads", lambda: holder(world) not in ("", led_first))
    world.create(pod("p"))
    world.wait_bound("p")


def test_a_leader_that_was_asleep_too_long_does_not_go_on(world: World) -> None:
    """Its lease was taken meanwhile: it must end, not schedule beside the other."""
    world.create(node("n"))
    first = instance(world)
    led_first = eventually("the first leads", lambda: holder(world))
    second = instance(world)
    first.pause()
    eventually("the second leads", lambda: holder(world) not in ("", led_first))
    first.resume()
    assert first.wait() == 1
    assert "lost" in first.said()
    world.create(pod("p"))
    world.wait_bound("p")
    assert second.is_running
