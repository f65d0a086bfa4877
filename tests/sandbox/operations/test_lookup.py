from __future__ import annotations

from pilotage.sandbox.operations.lookup import CachedLookup
from pilotage.sandbox.storage.records import Key
from pilotage.sandbox.storage.store import Store

CLASSES = "priorityclasses.scheduling.k8s.io"


def test_what_is_looked_up_is_decoded_once_and_forgotten_on_a_write() -> None:
    store = Store(history=10)
    lookup = CachedLookup(store)
    assert lookup.get(CLASSES, "", "high") is None
    assert lookup.list(CLASSES) == []
    store.create(Key(CLASSES, "", "high"), {"metadata": {"name": "high"}, "value": 1})
    first = lookup.get(CLASSES, "", "high")
    assert first is not None and first["value"] == 1
    assert lookup.get(CLASSES, "", "high") is first
    assert lookup.list(CLASSES) is lookup.list(CLASSES)
    store.update(Key(CLASSES, "", "high"), {"metadata": {"name": "high"}, "value": 2})
    assert [found["value"] for found in lookup.list(CLASSES)] == [2]


def test_a_list_of_one_namespace_is_its_own() -> None:
    store = Store(history=10)
    lookup = CachedLookup(store)
    for namespace in ("a", "b"):
        store.create(Key("limitranges", namespace, "x"), {"metadata": {"name": "x", "namespace": namespace}})
    assert [found["metadata"]["namespace"] for found in lookup.list("limitranges", "b")] == ["b"]
    assert len(lookup.list("limitranges")) == 2
