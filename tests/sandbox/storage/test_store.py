"""The guarantees of the store, one by one; random histories are in tests/properties/test_store.py."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilotage.sandbox.storage.store import AlreadyExists, Change, Conflict, Key, NotFound, Record, Store

A = Key("pods", "default", "a")
B = Key("pods", "default", "b")
NODE = Key("nodes", "", "n1")


def thing(name: str, **labels: str) -> dict[str, Any]:
    return {"kind": "Thing", "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels}, "spec": {"size": 1}}


@pytest.fixture
def store() -> Store:
    return Store(history=100)


def told(store: Store, resource: str | None) -> list[tuple[str, str, int]]:
    """Collects (type, name, revision) of what a listener hears from now on."""
    heard: list[tuple[str, str, int]] = []
    store.subscribe(resource, lambda change: heard.append((change.type, change.record.key.name, change.revision)))
    return heard


def test_writes_to_all_resources_count_up_one_revision(store: Store) -> None:
    assert store.revision == 0
    store.create(A, thing("a"))
    store.create(NODE, thing("n1"))
    store.update(A, thing("a"))
    store.delete(NODE)
    assert store.revision == 4


def test_created_object_carries_its_revision_and_keeps_unknown_fields(store: Store) -> None:
    store.create(B, thing("b"))
    record = store.create(A, {**thing("a", app="web"), "future": {"field": [1, 2.5, None]}})
    assert record == Record(A, 2, record.body, "uid-a", {"app": "web"})
    assert json.loads(record.body) == {
        "kind": "Thing",
        "metadata": {"name": "a", "uid": "uid-a", "labels": {"app": "web"}, "resourceVersion": "2"},
        "spec": {"size": 1},
        "future": {"field": [1, 2.5, None]},
    }
    assert store.get(A) is record


def test_object_without_labels_and_uid_gets_the_shared_empty_labels(store: Store) -> None:
    first = store.create(A, {"metadata": {"name": "a"}})
    second = store.create(B, {"metadata": {"name": "b", "labels": {}}})
    assert (first.uid, dict(first.labels)) == ("", {})
    assert first.labels is second.labels


def test_store_keeps_no_part_of_the_dict_it_was_given(store: Store) -> None:
    given = thing("a", app="web")
    record = store.create(A, given)
    given["metadata"]["labels"]["app"] = "changed"
    given["spec"]["size"] = 99
    assert record.labels == {"app": "web"}
    assert record.object()["spec"] == {"size": 1}


def test_decoded_object_is_fresh_each_time(store: Store) -> None:
    record = store.create(A, thing("a"))
    record.object()["spec"]["size"] = 99
    assert record.object()["spec"]["size"] == 1


def test_create_of_an_existing_object_is_rejected_and_changes_nothing(store: Store) -> None:
    record = store.create(A, thing("a"))
    with pytest.raises(AlreadyExists) as rejection:
        store.create(A, thing("other"))
    assert rejection.value.key == A
    assert (store.get(A), store.revision) == (record, 1)


def test_update_with_the_expected_revision_replaces_the_object(store: Store) -> None:
    store.create(A, thing("a"))
    record = store.update(A, {"metadata": {"name": "a"}}, expect=1)
    assert record.revision == 2
    assert store.get(A) is record
    assert record.object() == {"metadata": {"name": "a", "resourceVersion": "2"}}


@pytest.mark.parametrize("verb", ["update", "delete"])
def test_write_with_a_stale_expectation_is_a_conflict_and_changes_nothing(store: Store, verb: str) -> None:
    store.create(A, thing("a"))
    record = store.update(A, thing("a"))
    with pytest.raises(Conflict) as rejection:
        getattr(store, verb)(A, thing("stale"), expect=1)
    assert (rejection.value.key, rejection.value.expected, rejection.value.actual) == (A, 1, 2)
    assert (store.get(A), store.revision) == (record, 2)


@pytest.mark.parametrize("verb", ["update", "delete"])
def test_write_to_a_missing_object_is_not_found(store: Store, verb: str) -> None:
    with pytest.raises(NotFound) as rejection:
        getattr(store, verb)(A, thing("a"))
    assert rejection.value.key == A
    assert store.revision == 0


def test_object_that_cannot_be_encoded_is_rejected_and_changes_nothing(store: Store) -> None:
    record = store.create(A, thing("a"))
    with pytest.raises(TypeError):
        store.update(A, {"metadata": {"name": "a"}, "spec": object()})
    assert (store.get(A), store.revision) == (record, 1)
    store.check()


def test_deletion_returns_the_last_state_stamped_with_its_own_revision(store: Store) -> None:
    store.create(A, thing("a", app="web"))
    store.create(B, thing("b"))
    deleted = store.delete(A, expect=1)
    assert (deleted.revision, deleted.uid, deleted.labels) == (3, "uid-a", {"app": "web"})
    expected = thing("a", app="web")
    expected["metadata"]["resourceVersion"] = "3"
    assert deleted.object() == expected
    assert store.get(A) is None


def test_deletion_with_a_last_state_shows_that_state(store: Store) -> None:
    store.create(A, thing("a"))
    last = thing("a")
    last["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert store.delete(A, last).object()["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"


def test_deleted_name_can_be_created_again(store: Store) -> None:
    store.create(A, thing("a"))
    store.delete(A)
    assert store.create(A, thing("a")).revision == 3
    assert store.count("pods") == 1


def test_list_is_sorted_by_namespace_and_name(store: Store) -> None:
    for namespace, name in [("b", "z"), ("a", "y"), ("a-", "x"), ("b", "a"), ("a", "b")]:
        store.create(Key("pods", namespace, name), thing(name))
    store.create(NODE, thing("n1"))
    assert [(r.key.namespace, r.key.name) for r in store.list("pods")] == [
        ("a", "b"),
        ("a", "y"),
        ("a-", "x"),
        ("b", "a"),
        ("b", "z"),
    ]
    assert [r.key.name for r in store.list("pods", "a")] == ["b", "y"]
    assert [r.key.name for r in store.list("nodes", "")] == ["n1"]
    assert store.list("pods", "nowhere") == store.list("services") == []


def test_count_and_resources_tell_what_is_alive(store: Store) -> None:
    store.create(A, thing("a"))
    store.create(NODE, thing("n1"))
    store.delete(NODE)
    assert (store.count("pods"), store.count("nodes"), store.count("services")) == (1, 0, 0)
    assert store.resources() == ["pods"]


def test_change_renders_as_a_watch_line(store: Store) -> None:
    store.create(A, {"metadata": {"name": "a"}})
    store.update(A, {"metadata": {"name": "a"}})
    store.delete(A)
    assert [change.line for change in store.changes_since("pods", 0)] == [
        b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"1"}}}\n',
        b'{"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":"2"}}}\n',
        b'{"type":"DELETED","object":{"metadata":{"name":"a","resourceVersion":"3"}}}\n',
    ]


def test_line_is_encoded_once_for_all_watchers(store: Store) -> None:
    store.create(A, thing("a"))
    [change] = store.changes_since("pods", 0)
    assert change.line is change.line


def test_change_shows_the_record_before_it(store: Store) -> None:
    created = store.create(A, thing("a"))
    updated = store.update(A, thing("a"))
    store.delete(A)
    changes = store.changes_since("pods", 0)
    assert [change.previous for change in changes] == [None, created, updated]


def test_listener_hears_only_its_resource_and_none_means_all(store: Store) -> None:
    pods, everything = told(store, "pods"), told(store, None)
    store.create(A, thing("a"))
    store.create(NODE, thing("n1"))
    store.delete(A)
    assert pods == [("ADDED", "a", 1), ("DELETED", "a", 3)]
    assert everything == [("ADDED", "a", 1), ("ADDED", "n1", 2), ("DELETED", "a", 3)]


def test_listener_is_called_when_the_write_is_visible(store: Store) -> None:
    seen: list[Record | None] = []
    store.subscribe("pods", lambda change: seen.append(store.get(change.record.key)))
    record = store.create(A, thing("a"))
    store.delete(A)
    assert seen == [record, None]


def test_listener_that_left_hears_no_more_even_of_the_change_in_delivery(store: Store) -> None:
    heard: list[str] = []
    leave = store.subscribe("pods", lambda change: heard.append("second"))
    store.subscribe(None, lambda change: leave())
    store.create(A, thing("a"))
    leave()
    store.create(B, thing("b"))
    assert heard == []


def test_writes_of_a_listener_reach_every_listener_in_order(store: Store) -> None:
    def answer(change: Change) -> None:
        if change.record.key == A:
            store.create(B, thing("b"))

    store.subscribe("pods", answer)
    heard = told(store, "pods")
    store.create(A, thing("a"))
    assert heard == [("ADDED", "a", 1), ("ADDED", "b", 2)]


def test_listener_that_subscribes_another_does_not_replay_what_was_already_visible(store: Store) -> None:
    late: list[list[tuple[str, str, int]]] = []

    def answer(change: Change) -> None:
        if change.record.key == A:
            store.create(B, thing("b"))
            late.append(told(store, "pods"))

    store.subscribe("pods", answer)
    store.create(A, thing("a"))
    store.create(Key("pods", "default", "c"), thing("c"))
    assert late == [[("ADDED", "c", 3)]]


def test_failing_listener_harms_neither_the_writer_nor_the_others(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(change: Change) -> None:
        raise RuntimeError("broken listener")

    store.subscribe("pods", fail)
    heard = told(store, "pods")
    store.create(A, thing("a"))
    store.create(B, thing("b"))
    assert heard == [("ADDED", "a", 1), ("ADDED", "b", 2)]
    assert "broken listener" in caplog.text
    store.check()


async def test_everything_is_durable_at_once_without_a_journal(store: Store) -> None:
    store.create(A, thing("a"))
    await store.durable(store.revision)
