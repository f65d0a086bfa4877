from __future__ import annotations

import pytest

from pilotage.sandbox.storage.records import NO_LABELS, Key, Record
from pilotage.sandbox.storage.resource_records import ResourceRecords


def record(name: str, revision: int = 1, namespace: str = "ns") -> Record:
    return Record(Key("pods", namespace, name), revision, b"{}", "", NO_LABELS)


def names(kept: ResourceRecords) -> list[str]:
    return [record.key.name for record in kept.sorted()]


@pytest.mark.parametrize("count", [5, 500], ids=["few", "many"])
def test_list_is_sorted_whatever_came_and_went_since_the_last(count: int) -> None:
    kept = ResourceRecords()
    for number in reversed(range(0, 2 * count, 2)):
        kept.put(record(f"{number:04d}"))
    assert names(kept) == [f"{number:04d}" for number in range(0, 2 * count, 2)]
    for number in range(1, 2 * count, 2):
        kept.put(record(f"{number:04d}"))
    for number in range(0, 2 * count, 4):
        kept.remove(Key("pods", "ns", f"{number:04d}"))
    assert names(kept) == [f"{number:04d}" for number in range(2 * count) if number % 4]
    kept.check()


def test_replaced_record_keeps_its_place() -> None:
    kept = ResourceRecords()
    for name in ("b", "a", "c"):
        kept.put(record(name))
    assert names(kept) == ["a", "b", "c"]
    kept.put(record("b", revision=9))
    assert [r.revision for r in kept.sorted()] == [1, 9, 1]


def test_key_that_came_and_went_between_two_lists_is_not_listed() -> None:
    kept = ResourceRecords()
    kept.put(record("a"))
    assert names(kept) == ["a"]
    kept.put(record("b"))
    kept.remove(record("b").key)
    kept.remove(record("a").key)
    kept.put(record("a", revision=7))
    assert [(r.key.name, r.revision) for r in kept.sorted()] == [("a", 7)]


def test_namespace_list_takes_no_neighbours() -> None:
    kept = ResourceRecords()
    for namespace in ("a", "ab", "a-b", "b"):
        kept.put(record("x", namespace=namespace))
    assert [r.key.namespace for r in kept.sorted_in("pods", "a")] == ["a"]
    assert [r.key.namespace for r in kept.sorted_in("pods", "ab")] == ["ab"]
