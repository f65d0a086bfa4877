from __future__ import annotations

import json

import msgspec

from pilotage.sandbox.kinds.builtin_kinds import builtin_registry
from pilotage.sandbox.rules.conversion import from_storage, served_body, to_storage
from pilotage.sandbox.storage.records import NO_LABELS, Key, Record

REGISTRY = builtin_registry()
CORE = REGISTRY.find("", "v1", "events")
MODERN = REGISTRY.find("events.k8s.io", "v1", "events")

STORED = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e"},
    "involvedObject": {"name": "p"},
    "message": "hello",
    "reportingComponent": "scheduler",
    "count": 2,
    "source": {"component": "x"},
}
SERVED = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "e"},
    "regarding": {"name": "p"},
    "note": "hello",
    "reportingController": "scheduler",
    "deprecatedCount": 2,
    "deprecatedSource": {"component": "x"},
}


def test_an_event_is_one_object_under_two_sets_of_names() -> None:
    assert from_storage(MODERN, dict(STORED)) == SERVED
    assert to_storage(MODERN, dict(SERVED)) == STORED


def test_what_is_stored_as_served_passes_untouched() -> None:
    record = Record(Key("events", "default", "e"), 1, msgspec.json.encode(STORED), "u", NO_LABELS)
    assert served_body(CORE, record) is record.body
    assert json.loads(served_body(MODERN, record)) == SERVED
