"""Nothing is lost and nothing is done twice, whoever dies at whatever moment."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter

from .bindings_seen import BindingsSeen
from .client import Client
from .objects import condition, node, pod, priority_class
from .servers import eventually
from .world import World

PODS_PER_NODE = 10


def unbound(world: World) -> list[str]:
    return [p["metadata"]["name"] for p in world.api.list("pods") if not p["spec"].get("nodeName")]


def pods_per_node(world: World) -> Counter[str]:
    return Counter(p["spec"].get("nodeName", "") for p in world.api.list("pods"))


def test_killed_at_random_moments_under_load(world: World) -> None:
    """The pods fill the nodes to the last place: one that is bound twice, or forgotten, shows."""
    seed, nodes = random.randrange(1000), 20
    print(f"seed {seed}")
    rng = random.Random(seed)
    world.create(*(node(f"n{number:02}", cpu="1") for number in range(nodes)))
    creator = Client(world.server.admin)

    def create_pods() -> None:
        for number in range(nodes * PODS_PER_NODE):
            creator.create(pod(f"p{number:03}", cpu="100m"))

    with BindingsSeen(Client(world.server.admin)) as seen:
        creating = threading.Thread(target=create_pods)
        creating.start()
        for _ in range(4):
            scheduler = world.start_scheduler()
            time.sleep(rng.uniform(0.8, 2.0))
            scheduler.kill()
        creating.join()
        world.start_scheduler()
        eventually("all pods are bound", lambda: not unbound(world))
        eventually("all were seen", lambda: len(seen.nodes_of) == nodes * PODS_PER_NODE)
        assert seen.bound_more_than_once() == {}
    assert set(pods_per_node(world).values()) == {PODS_PER_NODE}


def test_an_orderly_end_leaves_nothing_half_done(world: World) -> None:
    world.create(*(node(f"n{number}") for number in range(3)))
    scheduler = world.start_scheduler()
    world.create(pod("first"))
    world.wait_bound("first")
    world.create(*(pod(f"p{number:03}", cpu="10m") for number in range(80)))
    assert scheduler.end() == 0
    bound = [p["metadata"]["name"] for p in world.api.list("pods") if p["spec"].get("nodeName")]
    told = {event["regarding"]["name"] for event in world.api.list("events") if event["reason"] == "Scheduled"}
    assert set(bound) == told
    world.start_scheduler()
    eventually("the rest is bound", lambda: not unbound(world))


def test_a_server_that_is_not_there_yet_is_waited_for(world: World) -> None:
    world.create(node("n"), pod("p"))
    world.server.kill()
    scheduler = world.start_scheduler()
    eventually("it says so", lambda: "waiting for the API server" in scheduler.said())
    world.server.start()
    world.wait_bound("p")
    assert scheduler.is_running


def test_the_server_goes_away_and_comes_back(world: World) -> None:
    world.create(node("n", cpu="1"), pod("before", cpu="500m"), pod("waiting", cpu="900m"))
    scheduler = world.start_scheduler()
    world.wait_bound("before")
    world.wait_refused("waiting")
    world.server.kill()
    time.sleep(1.5)
    world.server.start()
    world.create(pod("after", cpu="500m"))
    world.wait_bound("after")
    world.api.delete("pods", "before", grace=0)
    world.api.delete("pods", "after", grace=0)
    world.wait_bound("waiting")
    assert scheduler.is_running


def test_what_happened_while_the_history_was_forgotten_is_caught_up_with(world: World) -> None:
    """The watches are cut and their versions are too old: everything is listed again, deletions included."""
    world.create(node("goes", cpu="2"), node("stays", cpu="1"), pod("blocks", cpu="1", nodeName="stays"))
    world.create(pod("waiting", cpu="1", nodeSelector={"kubernetes.io/hostname": "stays"}))
    scheduler = world.start_scheduler("-v")
    world.wait_refused("waiting")
    scheduler.pause()
    world.api.delete("nodes", "goes")
    world.api.delete("pods", "blocks", grace=0)
    world.create(pod("late", cpu="1", nodeSelector={"kubernetes.io/hostname": "comes"}))
    world.server.kill()
    world.server.forget_history()
    world.server.start()
    world.create(node("comes", cpu="1"))
    scheduler.resume()
    assert world.wait_bound("waiting", "late") == ["stays", "comes"]
    assert "410" in scheduler.said()


def test_the_history_is_forgotten_while_nothing_happens(world: World) -> None:
    world.create(node("n"))
    scheduler = world.start_scheduler()
    world.create(pod("before"))
    world.wait_bound("before")
    if world.server.name == "real":
        world.server.forget_history()
    world.create(pod("after"))
    world.wait_bound("after")
    assert scheduler.is_running


def test_a_place_that_was_kept_by_a_scheduler_that_died_is_still_kept(world: World) -> None:
    world.create(priority_class("low", 10), priority_class("high", 1000), node("n", cpu="1"))
    world.create(pod("victim", cpu="1", priority_class="low", grace=30, nodeName="n"))
    world.create(pod("winner", cpu="1", priority_class="high"))
    first = world.start_scheduler()
    eventually("a place is kept", lambda: world.pod("winner")["status"].get("nominatedNodeName") == "n")
    first.kill()
    world.create(pod("latecomer", cpu="1", priority_class="low"))
    world.start_scheduler()
    world.wait_refused("latecomer")
    world.api.delete("pods", "victim", grace=0)
    world.wait_bound("winner")
    assert world.node_of("latecomer") == ""


def test_a_cluster_full_of_pods_that_it_never_saw(world: World) -> None:
    """Of other schedulers, on nodes that do not exist, finished: what counts is what takes room."""
    world.create(node("n", cpu="2"))
    world.create(pod("theirs", cpu="1", schedulerName="another", nodeName="n"))
    world.create(pod("nowhere", cpu="1", nodeName="gone"), pod("finished", cpu="1", nodeName="n"))
    world.api.patch("pods", "finished", {"status": {"phase": "Succeeded"}}, subresource="status")
    world.create(pod("fits", cpu="1"))
    world.start_scheduler()
    world.wait_bound("fits")
    world.create(pod("too-much", cpu="1"))
    (rejection,) = world.wait_refused("too-much")
    assert "1 Insufficient cpu" in rejection["message"]


def test_a_pod_that_another_scheduler_bound_meanwhile_is_left_where_it_is(world: World) -> None:
    world.create(node("a"), node("b"), pod("blocker"))
    scheduler = world.start_scheduler()
    world.wait_bound("blocker")
    scheduler.pause()
    world.create(pod("p"))
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "b"},
    }
    world.api.request("POST", "/api/v1/namespaces/default/pods/p/binding", binding)
    scheduler.resume()
    world.create(pod("q"))
    world.wait_bound("q")
    assert world.node_of("p") == "b"
    scheduled = condition(world.pod("p"), "PodScheduled")
    assert scheduled is not None and scheduled["status"] == "True"
