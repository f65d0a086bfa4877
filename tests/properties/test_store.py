"""Random histories of the store against a model that remembers everything.

The model keeps the whole state after every revision. Watchers begin at any revision from the past, as a client does
that was cut off: they take the model's state of that revision, apply the changes since, and then only listen. After
every step each of them must hold exactly what the store holds.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pilotage.sandbox.storage.store import AlreadyExists, Change, Conflict, Expired, Key, NotFound, Store

RESOURCES = ("nodes", "pods", "deployments.apps")

keys = st.builds(Key, st.sampled_from(RESOURCES), st.sampled_from(["", "a", "ab", "b"]), st.sampled_from("xyz"))
labels = st.dictionaries(st.sampled_from(["app", "tier"]), st.text(max_size=3), max_size=2)
contents = st.builds(lambda spec, labels: {"metadata": {"labels": labels}, "spec": spec}, st.text(max_size=5), labels)

State = dict[Key, dict[str, Any]]


class Watcher:
    """A client's copy of one resource, made of a past state and everything heard since."""

    def __init__(self, store: Store, resource: str, since: int, state: State) -> None:
        self.resource = resource
        self.state = {key: obj for key, obj in state.items() if key.resource == resource}
        self.revision = since
        for change in store.changes_since(resource, since):
            self.hear(change)
        self.leave = store.subscribe(resource, self.hear)

    def hear(self, change: Change) -> None:
        key = change.record.key
        assert change.revision > self.revision, "changes come in order and once"
        self.revision = change.revision
        assert (key in self.state) == (change.type != "ADDED") == (change.previous is not None)
        if change.previous is not None:
            assert self.state.pop(key) == change.previous.object()
        if change.type != "DELETED":
            self.state[key] = change.record.object()
        assert change.record.object()["metadata"]["resourceVersion"] == str(change.revision)


class StoreHistories(RuleBasedStateMachine):
    @initialize(history=st.integers(1, 12))
    def begin(self, history: int) -> None:
        self.history = history
        self.store = Store(history=history)
        self.states: list[State] = [{}]
        self.resource_of: list[str] = [""]
        self.watchers: list[Watcher] = []

    @property
    def state(self) -> State:
        return self.states[-1]

    def remember(self, key: Key, obj: dict[str, Any] | None) -> None:
        state = dict(self.state)
        if obj is None:
            del state[key]
        else:
            obj["metadata"]["resourceVersion"] = str(len(self.states))
            state[key] = obj
        self.states.append(state)
        self.resource_of.append(key.resource)

    @rule(key=keys, obj=contents)
    def create(self, key: Key, obj: dict[str, Any]) -> None:
        if key in self.state:
            with pytest.raises(AlreadyExists):
                self.store.create(key, obj)
        else:
            self.store.create(key, obj)
            self.remember(key, obj)

    @rule(key=keys, obj=contents, is_careful=st.booleans())
    def update(self, key: Key, obj: dict[str, Any], is_careful: bool) -> None:
        if key not in self.state:
            with pytest.raises(NotFound):
                self.store.update(key, obj)
        else:
            self.store.update(key, obj, expect=self.revision_of(key) if is_careful else None)
            self.remember(key, obj)

    @rule(key=keys, last=st.none() | contents, is_careful=st.booleans())
    def delete(self, key: Key, last: dict[str, Any] | None, is_careful: bool) -> None:
        if key not in self.state:
            with pytest.raises(NotFound):
                self.store.delete(key)
        else:
            self.store.delete(key, last, expect=self.revision_of(key) if is_careful else None)
            self.remember(key, None)

    @precondition(lambda self: self.state)
    @rule(data=st.data(), verb=st.sampled_from(["update", "delete"]), off=st.integers(-3, 3).filter(bool))
    def write_with_a_wrong_expectation(self, data: st.DataObject, verb: str, off: int) -> None:
        key = data.draw(st.sampled_from(sorted(self.state)))
        with pytest.raises(Conflict):
            getattr(self.store, verb)(key, {"metadata": {}}, expect=self.revision_of(key) + off)

    @rule(data=st.data(), resource=st.sampled_from(RESOURCES))
    def watch_from_the_past(self, data: st.DataObject, resource: str) -> None:
        since = data.draw(st.integers(self.oldest(resource), len(self.states) - 1))
        self.watchers.append(Watcher(self.store, resource, since, self.states[since]))

    @rule(resource=st.sampled_from(RESOURCES))
    def watch_from_before_the_history(self, resource: str) -> None:
        oldest = self.oldest(resource)
        for since in range(oldest):
            with pytest.raises(Expired) as rejection:
                self.store.changes_since(resource, since)
            assert rejection.value.oldest == oldest

    @precondition(lambda self: self.watchers)
    @rule(data=st.data())
    def stop_watching(self, data: st.DataObject) -> None:
        self.watchers.pop(data.draw(st.integers(0, len(self.watchers) - 1))).leave()

    def revision_of(self, key: Key) -> int:
        return int(self.state[key]["metadata"]["resourceVersion"])

    def oldest(self, resource: str) -> int:
        """The last revision of the resource that fell out of the ring: nothing before it can be replayed."""
        kept_from = len(self.states) - self.history
        return max((r for r in range(1, kept_from) if self.resource_of[r] == resource), default=0)

    @invariant()
    def store_holds_what_the_model_holds(self) -> None:
        self.store.check()
        assert self.store.revision == len(self.states) - 1
        assert self.store.resources() == sorted({key.resource for key in self.state})
        for resource in RESOURCES:
            expected = sorted(key for key in self.state if key.resource == resource)
            records = self.store.list(resource)
            assert [record.key for record in records] == expected
            assert [record.object() for record in records] == [self.state[key] for key in expected]
            assert [dict(record.labels) for record in records] == [
                self.state[key]["metadata"].get("labels", {}) for key in expected
            ]
            in_a = [key for key in expected if key.namespace == "a"]
            assert [record.key for record in self.store.list(resource, "a")] == in_a
            assert self.store.count(resource) == len(expected)

    @invariant()
    def every_watcher_has_reconstructed_the_state(self) -> None:
        for watcher in self.watchers:
            expected = {key: obj for key, obj in self.state.items() if key.resource == watcher.resource}
            assert watcher.state == expected


StoreHistories.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestStoreHistories = StoreHistories.TestCase
