from __future__ import annotations

from pilotage.sandbox.http.event_expiry import KEPT_SECONDS, EventExpiry
from pilotage.sandbox.storage.records import Key
from pilotage.sandbox.storage.store import Store
from pilotage.testing.virtual_clock import VirtualClock


def names(store: Store) -> list[str]:
    return [record.key.name for record in store.list("events")]


def write(store: Store, name: str) -> None:
    key, obj = Key("events", "default", name), {"metadata": {"name": name, "namespace": "default"}}
    if store.get(key) is None:
        store.create(key, obj)
    else:
        store.update(key, obj)


async def test_an_event_goes_when_its_hour_is_over() -> None:
    store, clock = Store(history=10), VirtualClock()
    expiry = EventExpiry(store, clock)
    write(store, "early")
    await clock.advance(KEPT_SECONDS / 2)
    write(store, "late")
    await clock.advance(KEPT_SECONDS / 2)
    expiry.tick()
    assert names(store) == ["late"]


async def test_an_event_that_repeats_stays() -> None:
    store, clock = Store(history=10), VirtualClock()
    expiry = EventExpiry(store, clock)
    write(store, "often")
    await clock.advance(KEPT_SECONDS / 2)
    write(store, "often")
    await clock.advance(KEPT_SECONDS / 2 + 1)
    expiry.tick()
    assert names(store) == ["often"]
    await clock.advance(KEPT_SECONDS)
    expiry.tick()
    assert names(store) == []


async def test_an_event_that_somebody_deleted_is_not_missed() -> None:
    store, clock = Store(history=10), VirtualClock()
    expiry = EventExpiry(store, clock)
    write(store, "gone")
    store.delete(Key("events", "default", "gone"))
    await clock.advance(KEPT_SECONDS + 1)
    expiry.tick()
    assert names(store) == []


async def test_events_of_an_earlier_run_go_too() -> None:
    store, clock = Store(history=10), VirtualClock()
    write(store, "old")
    expiry = EventExpiry(store, clock)
    await clock.advance(KEPT_SECONDS + 1)
    expiry.tick()
    assert names(store) == []
