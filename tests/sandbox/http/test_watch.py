from __future__ import annotations

import asyncio

import pytest

from tests.sandbox.api_world import MERGE, PODS, World, config_map, labelled, pod

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def world() -> World:
    return World()


def change(world: World, name: str, **metadata: object) -> None:
    world.ok("PATCH", f"{MAPS}/{name}", {"metadata": metadata}, content_type=MERGE)


async def test_a_watch_starts_with_what_is_there_and_goes_on_with_what_happens(world: World) -> None:
    world.ok("POST", MAPS, config_map("a"))
    watch = world.watch(MAPS)
    assert await watch.names() == [("ADDED", "a")]
    world.ok("POST", MAPS, config_map("b"))
    change(world, "a", labels={"x": "y"})
    world.ok("DELETE", f"{MAPS}/b")
    assert await watch.names() == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


async def test_a_watch_from_a_listed_version_misses_and_repeats_nothing(world: World) -> None:
    world.ok("POST", MAPS, config_map("a"))
    listed = world.ok("GET", MAPS)
    world.ok("POST", MAPS, config_map("b"))
    watch = world.watch(MAPS, resourceVersion=listed["metadata"]["resourceVersion"])
    world.ok("POST", MAPS, config_map("c"))
    assert await watch.names() == [("ADDED", "b"), ("ADDED", "c")]


async def test_other_namespaces_and_kinds_are_not_seen(world: World) -> None:
    world.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    watch = world.watch(MAPS, resourceVersion=str(world.store.revision))
    world.ok("POST", "/api/v1/namespaces/shop/configmaps", config_map("elsewhere"))
    world.ok("POST", PODS, pod())
    world.ok("POST", MAPS, config_map("here"))
    assert await watch.names() == [("ADDED", "here")]


async def test_an_object_enters_and_leaves_a_selection(world: World) -> None:
    world.ok("POST", MAPS, labelled(config_map("a"), color="red"))
    watch = world.watch(MAPS, labelSelector="color=blue", resourceVersion=str(world.store.revision))
    change(world, "a", labels={"color": "blue"})
    change(world, "a", labels={"color": "blue", "more": "1"})
    change(world, "a", labels={"color": "green"})
    change(world, "a", labels={"color": "red"})
    events = await watch.next()
    assert [kind for kind, _ in events] == ["ADDED", "MODIFIED", "DELETED"]
    # What left is shown as the watcher knew it, at the version at which it left.
    left = events[-1][1]["metadata"]
    assert left["labels"]["color"] == "blue"
    assert int(left["resourceVersion"]) == world.store.revision - 1


async def test_the_deletion_of_a_selected_object_is_seen(world: World) -> None:
    world.ok("POST", MAPS, labelled(config_map("a"), color="red"))
    world.ok("POST", MAPS, labelled(config_map("b"), color="blue"))
    watch = world.watch(MAPS, labelSelector="color=red", resourceVersion=str(world.store.revision))
    world.ok("DELETE", f"{MAPS}/b")
    world.ok("DELETE", f"{MAPS}/a")
    assert await watch.names() == [("DELETED", "a")]


async def test_pods_are_watched_by_node(world: World) -> None:
    world.ok("POST", PODS, pod("a"))
    world.ok("POST", PODS, pod("b"))
    watch = world.watch("/api/v1/pods", fieldSelector="spec.nodeName=n1", resourceVersion=str(world.store.revision))
    world.api.bind("default", "a", "n1")
    world.api.bind("default", "b", "n2")
    assert await watch.names() == [("ADDED", "a")]


async def test_a_watch_from_too_long_ago_is_told_so_and_ends() -> None:
    world = World(history=10)
    start = world.store.revision
    for at in range(30):
        world.ok("POST", MAPS, config_map(f"c{at}"))
    watch = world.watch(MAPS, resourceVersion=str(start))
    [(kind, status)] = await watch.next()
    assert kind == "ERROR" and (status["code"], status["reason"]) == (410, "Expired")
    assert status["message"].startswith("too old resource version")
    assert await watch.is_over()


async def test_a_watcher_that_falls_behind_is_cut_and_can_resume() -> None:
    world = World(history=10)
    watch = world.watch(MAPS, resourceVersion=str(world.store.revision))
    world.ok("POST", MAPS, config_map("seen"))
    assert await watch.names() == [("ADDED", "seen")]
    for at in range(30):
        world.ok("POST", MAPS, config_map(f"c{at}"))
    [(kind, _)] = await watch.next()
    assert kind == "ERROR"
    assert await watch.is_over()
    again = world.watch(MAPS, resourceVersion=world.ok("GET", MAPS)["metadata"]["resourceVersion"])
    world.ok("POST", MAPS, config_map("after"))
    assert await again.names() == [("ADDED", "after")]


async def test_a_version_from_the_future_means_list_again(world: World) -> None:
    """A client of a sandbox that was restarted without a data directory."""
    watch = world.watch(MAPS, resourceVersion=str(world.store.revision + 1000))
    [(kind, status)] = await watch.next()
    assert (kind, status["code"]) == ("ERROR", 410)
    assert await watch.is_over()


async def test_a_watch_ends_at_its_time_with_a_last_bookmark(world: World) -> None:
    watch = world.watch(MAPS, timeoutSeconds="5", allowWatchBookmarks="true", resourceVersion="1")
    await world.clock.advance(4)
    world.server.watches.tick()
    assert len(world.server.watches) == 1
    await world.clock.advance(2)
    world.server.watches.tick()
    [(kind, bookmark)] = await watch.next()
    assert kind == "BOOKMARK"
    assert (bookmark["kind"], bookmark["metadata"]["resourceVersion"]) == ("ConfigMap", str(world.store.revision))
    assert await watch.is_over()
    assert len(world.server.watches) == 0


async def test_bookmarks_come_to_those_who_asked(world: World) -> None:
    start = str(world.store.revision)
    asked = world.watch(MAPS, allowWatchBookmarks="true", resourceVersion=start)
    not_asked = world.watch(MAPS, resourceVersion=start)
    world.ok("POST", PODS, pod())
    await world.clock.advance(61)
    world.server.watches.tick()
    [(kind, bookmark)] = await asked.next()
    assert (kind, bookmark["metadata"]["resourceVersion"]) == ("BOOKMARK", str(world.store.revision))
    world.ok("POST", MAPS, config_map("a"))
    assert await not_asked.names() == [("ADDED", "a")]


async def test_initial_events_end_with_a_marked_bookmark(world: World) -> None:
    world.ok("POST", MAPS, config_map("a"))
    watch = world.watch(MAPS, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true")
    (added, _), (kind, bookmark) = await watch.next()
    assert (added, kind) == ("ADDED", "BOOKMARK")
    assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_tables_are_watched_row_by_row(world: World) -> None:
    watch = world.watch(MAPS, accept="application/json;as=Table;v=v1;g=meta.k8s.io", resourceVersion="1")
    world.ok("POST", MAPS, config_map("a"))
    [(kind, table)] = await watch.next()
    assert (kind, table["kind"]) == ("ADDED", "Table")
    assert [row["cells"][0] for row in table["rows"]] == ["a"]


async def test_metadata_is_watched_alone(world: World) -> None:
    accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    watch = world.watch(MAPS, accept=accept, resourceVersion="1")
    world.ok("POST", MAPS, config_map("a", secret="x"))
    [(_, obj)] = await watch.next()
    assert (obj["kind"], obj["metadata"]["name"]) == ("PartialObjectMetadata", "a")
    assert "data" not in obj


async def test_events_are_watched_in_either_version(world: World) -> None:
    watch = world.watch("/apis/events.k8s.io/v1/events", resourceVersion="1")
    event = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "default"}, "message": "hi"}
    world.ok("POST", "/api/v1/namespaces/default/events", event)
    [(_, seen)] = await watch.next()
    assert (seen["apiVersion"], seen["note"]) == ("events.k8s.io/v1", "hi")


async def test_a_large_backlog_comes_in_pieces_that_a_socket_takes(world: World) -> None:
    for at in range(200):
        world.ok("POST", MAPS, config_map(f"c{at:03}", text="x" * 5000))
    watch = world.watch(MAPS)
    sizes, names = [], []
    while len(names) < 200:
        events = await watch.next()
        sizes.append(len(events))
        names += [obj["metadata"]["name"] for _, obj in events]
    assert names == [f"c{at:03}" for at in range(200)]
    assert len(sizes) > 2 and max(sizes) < 100


async def test_closing_ends_the_iteration_and_lets_go_of_the_store(world: World) -> None:
    watch = world.watch(MAPS, resourceVersion="1")
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(watch.is_over())
        await world.clock.settle()
        assert not waiting.done()
        watch.watch.close()
    assert waiting.result()
    assert len(world.server.watches) == 0


async def test_a_server_that_stops_ends_every_watch(world: World) -> None:
    watches = [world.watch(MAPS, resourceVersion="1") for _ in range(3)]
    world.server.watches.close()
    assert [await watch.is_over() for watch in watches] == [True] * 3
    assert await world.watch(MAPS, resourceVersion="1").is_over()


@pytest.mark.parametrize(
    "query",
    [
        {"resourceVersion": "abc"},
        {"resourceVersionMatch": "Exact"},
        {"sendInitialEvents": "true"},
        {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"},
        {"fieldSelector": "data.a=b"},
        {"timeoutSeconds": "soon"},
    ],
    ids=str,
)
def test_a_watch_that_cannot_be_is_rejected_at_once(world: World, query: dict[str, str]) -> None:
    assert world.refused("GET", MAPS, query={"watch": "1", **query})["code"] in (400, 422)
