from __future__ import annotations

import pytest

from pilotage.sandbox.storage.records import NO_LABELS, Key, Record
from pilotage.sandbox.storage.shelf import Shelf


def record(name: str, revision: int = 1, namespace: str = "ns") -> Record:
    return Record(Key("pods", namespace, name), revision, b"{}", "", NO_LABELS)


def names(shelf: Shelf) -> list[str]:
    return [record.key.name for record in shelf.sorted()]


@pytest.mark.parametrize("count", [5, 500], ids=["few", "many"])
def test_list_is_sorted_whatever_came_and_went_since_the_last(count: int) -> None:
    shelf = Shelf()
    for number in reversed(range(0, 2 * count, 2)):
        shelf.put(record(f"{number:04d}"))
    assert names(shelf) == [f"{number:04d}" for number in range(0, 2 * count, 2)]
    for number in range(1, 2 * count, 2):
        shelf.put(record(f"{number:04d}"))
    for number in range(0, 2 * count, 4):
        shelf.remove(Key("pods", "ns", f"{number:04d}"))
    assert names(shelf) == [f"{number:04d}" for number in range(2 * count) if number % 4]
    shelf.check()


def test_replaced_record_keeps_its_place() -> None:
    shelf = Shelf()
    for name in ("b", "a", "c"):
        shelf.put(record(name))
    assert names(shelf) == ["a", "b", "c"]
    shelf.put(record("b", revision=9))
    assert [r.revision for r in shelf.sorted()] == [1, 9, 1]


def test_key_that_came_and_went_between_two_lists_is_not_listed() -> None:
    shelf = Shelf()
    shelf.put(record("a"))
    assert names(shelf) == ["a"]
    shelf.put(record("b"))
    shelf.remove(record("b").key)
    shelf.remove(record("a").key)
    shelf.put(record("a", revision=7))
    assert [(r.key.name, r.revision) for r in shelf.sorted()] == [("a", 7)]


def test_namespace_list_takes_no_neighbours() -> None:
    shelf = Shelf()
    for namespace in ("a", "ab", "a-b", "b"):
        shelf.put(record("x", namespace=namespace))
    assert [r.key.namespace for r in shelf.sorted_in("pods", "a")] == ["a"]
    assert [r.key.namespace for r in shelf.sorted_in("pods", "ab")] == ["ab"]
