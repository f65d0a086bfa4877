"""get and list: forms, selectors, versions and pages."""

from __future__ import annotations

import pytest

from tests.sandbox.api_world import PODS, World, config_map, labelled, pod

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


@pytest.fixture
def world() -> World:
    return World()


def test_a_list_is_a_list_with_a_version(world: World) -> None:
    for name in ("b", "a"):
        world.ok("POST", MAPS, config_map(name))
    listed = world.ok("GET", MAPS)
    assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b"]
    assert listed["metadata"] == {"resourceVersion": str(world.store.revision)}
    assert world.ok("GET", f"{MAPS}/a") == listed["items"][0]


def test_selectors_narrow_a_list(world: World) -> None:
    world.ok("POST", MAPS, labelled(config_map("a"), color="red"))
    world.ok("POST", MAPS, labelled(config_map("b"), color="blue"))

    def names(**query: str) -> list[str]:
        return [item["metadata"]["name"] for item in world.ok("GET", MAPS, query=query)["items"]]

    assert names(labelSelector="color=blue") == ["b"]
    assert names(labelSelector="color") == ["a", "b"]
    assert names(fieldSelector="metadata.name=a") == ["a"]
    assert names(fieldSelector="metadata.name=a", labelSelector="color=blue") == []


def test_a_list_of_all_namespaces(world: World) -> None:
    world.ok("POST", MAPS, config_map("a"))
    world.ok("POST", "/api/v1/namespaces/kube-system/configmaps", config_map("a"))
    listed = world.ok("GET", "/api/v1/configmaps")["items"]
    assert [item["metadata"]["namespace"] for item in listed] == ["default", "kube-system"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"resourceVersion": "0"}, 200),
        ({"resourceVersion": "1"}, 200),
        ({"resourceVersion": "1", "resourceVersionMatch": "NotOlderThan"}, 200),
        ({"resourceVersion": "1", "resourceVersionMatch": "Exact"}, 410),
        ({"resourceVersion": "999999"}, 504),
        ({"resourceVersion": "x"}, 422),
        ({"resourceVersion": "0", "resourceVersionMatch": "Exact"}, 422),
        ({"resourceVersionMatch": "Exact"}, 422),
        ({"resourceVersion": "1", "resourceVersionMatch": "Roughly"}, 422),
        ({"sendInitialEvents": "true"}, 422),
        ({"limit": "few"}, 400),
        ({"continue": "nonsense"}, 400),
        ({"includeObject": "Soul"}, 400),
    ],
    ids=str,
)
def test_versions_and_options_of_lists(world: World, query: dict[str, str], code: int) -> None:
    assert world.send("GET", MAPS, query=query).status == code


def test_the_current_version_can_be_asked_for_exactly(world: World) -> None:
    query = {"resourceVersion": str(world.store.revision), "resourceVersionMatch": "Exact"}
    assert world.ok("GET", MAPS, query=query)["items"] == []


def test_a_get_from_the_future_asks_to_come_back(world: World) -> None:
    world.ok("POST", PODS, pod())
    status = world.refused("GET", f"{PODS}/p", query={"resourceVersion": "999999"})
    assert status["code"] == 504 and status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_a_table_has_rows_with_metadata(world: World) -> None:
    world.ok("POST", PODS, pod())
    table = world.ok("GET", PODS, accept=TABLE)
    assert table["kind"] == "Table"
    assert table["columnDefinitions"][0]["name"] == "Name"
    [row] = table["rows"]
    assert row["cells"][0] == "p" and row["object"]["kind"] == "PartialObjectMetadata"
    assert table["metadata"]["resourceVersion"] == str(world.store.revision)
    assert world.ok("GET", f"{PODS}/p", accept=TABLE)["rows"][0]["cells"][0] == "p"


def test_metadata_only(world: World) -> None:
    world.ok("POST", PODS, pod())
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    listed = world.ok("GET", PODS, accept=accept)
    assert listed["kind"] == "PartialObjectMetadataList"
    assert set(listed["items"][0]) == {"kind", "apiVersion", "metadata"}


def fill(world: World, count: int = 5) -> None:
    for at in range(count):
        world.ok("POST", MAPS, config_map(f"c{at}"))


def test_pages_show_the_state_of_the_first(world: World) -> None:
    fill(world)
    first = world.ok("GET", MAPS, query={"limit": "2"})
    assert first["metadata"]["remainingItemCount"] == 3
    world.ok("DELETE", f"{MAPS}/c2")
    world.ok("POST", MAPS, config_map("c9"))
    names, token = [], first["metadata"]["continue"]
    while token:
        page = world.ok("GET", MAPS, query={"limit": "2", "continue": token})
        assert page["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        names += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue")
    assert names == ["c2", "c3", "c4"]


def test_a_list_that_fits_has_no_next_page(world: World) -> None:
    fill(world, 2)
    assert "continue" not in world.ok("GET", MAPS, query={"limit": "2"})["metadata"]


async def test_an_old_token_is_410_with_a_way_on(world: World) -> None:
    fill(world)
    token = world.ok("GET", MAPS, query={"limit": "2"})["metadata"]["continue"]
    await world.clock.advance(3600)
    status = world.refused("GET", MAPS, query={"limit": "2", "continue": token})
    assert (status["code"], status["reason"]) == (410, "Expired")
    world.ok("POST", MAPS, config_map("c1b"))
    rest = world.ok("GET", MAPS, query={"limit": "10", "continue": status["metadata"]["continue"]})
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c1b", "c2", "c3", "c4"]


def test_a_token_is_for_one_list_only(world: World) -> None:
    fill(world)
    token = world.ok("GET", MAPS, query={"limit": "2"})["metadata"]["continue"]
    other = {"limit": "2", "continue": token, "labelSelector": "a=b"}
    assert world.refused("GET", MAPS, query=other)["code"] == 400
    assert world.refused("GET", PODS, query={"continue": token})["code"] == 400


def test_tables_come_in_pages_too(world: World) -> None:
    fill(world)
    table = world.ok("GET", MAPS, query={"limit": "2"}, accept=TABLE)
    assert len(table["rows"]) == 2 and table["metadata"]["continue"]
