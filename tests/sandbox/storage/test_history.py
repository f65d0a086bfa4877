from __future__ import annotations

import pytest

from pilotage.sandbox.storage.store import Expired, Key, Store


def fill(store: Store, resource: str, count: int) -> None:
    for _ in range(count):
        name = f"{resource}-{store.revision + 1}"
        store.create(Key(resource, "", name), {"metadata": {"name": name}})


def revisions(store: Store, resource: str, since: int) -> list[int]:
    return [change.revision for change in store.changes_since(resource, since)]


def test_changes_since_a_revision_are_those_of_the_resource_after_it() -> None:
    store = Store(history=100)
    fill(store, "pods", 2)
    fill(store, "nodes", 1)
    fill(store, "pods", 2)
    assert revisions(store, "pods", 0) == [1, 2, 4, 5]
    assert revisions(store, "pods", 2) == [4, 5]
    assert revisions(store, "pods", 5) == []
    assert revisions(store, "nodes", 1) == [3]
    assert revisions(store, "services", 0) == []


def test_watch_from_before_the_oldest_kept_change_is_expired() -> None:
    store = Store(history=3)
    fill(store, "pods", 5)
    assert revisions(store, "pods", 2) == [3, 4, 5]
    with pytest.raises(Expired) as rejection:
        store.changes_since("pods", 1)
    assert rejection.value.oldest == 2


def test_quiet_resource_can_be_resumed_from_far_back() -> None:
    """Its changes are all known although the ring has been filled by another resource since."""
    store = Store(history=3)
    fill(store, "nodes", 1)
    fill(store, "pods", 3)
    assert revisions(store, "nodes", 1) == []
    with pytest.raises(Expired):
        store.changes_since("nodes", 0)
    fill(store, "nodes", 1)
    assert revisions(store, "nodes", 1) == [5]
    store.check()


def test_line_of_an_old_change_can_still_be_read() -> None:
    store = Store(history=1000)
    fill(store, "pods", 1)
    [first] = store.changes_since("pods", 0)
    line = first.line
    fill(store, "pods", 500)
    assert first.line == line
    assert store.changes_since("pods", 0)[0] is first


def test_history_of_nothing_is_rejected() -> None:
    with pytest.raises(ValueError, match="at least one change"):
        Store(history=0)
