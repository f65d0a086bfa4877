"""The index answers who belongs to whom, and is never stale."""

from __future__ import annotations

from pilotage.sandbox.life.facts import NO_ANNOTATIONS, ClaimFacts, NodeObjectFacts, PodFacts, read_facts
from pilotage.sandbox.life.object_index import ObjectIndex, ObservedChange
from pilotage.sandbox.storage.store import Key, Store

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u-rs", "controller": True}


def pod(name: str, *, node: str = "", owner: dict[str, object] | None = OWNER, **metadata: object) -> dict[str, object]:
    meta = {"name": name, "namespace": "default", "uid": f"u-{name}", "ownerReferences": [owner] if owner else None}
    return {"metadata": {**meta, **metadata}, "spec": {"nodeName": node}, "status": {"phase": "Pending"}}


def key(name: str) -> Key:
    return Key("pods", "default", name)


def followed(store: Store) -> tuple[ObjectIndex, list[ObservedChange]]:
    index, seen = ObjectIndex(), []
    index.follow(store, seen.append)
    return index, seen


def test_index_takes_in_what_is_stored_and_what_changes() -> None:
    store = Store(history=100)
    store.create(key("a"), pod("a", node="n"))
    index, seen = followed(store)
    store.create(key("b"), pod("b"))
    store.update(key("b"), pod("b", node="n"))
    assert [facts.key.name for facts in index.owned_pods("u-rs").active_pods()] == ["a", "b"]
    assert index.pods_on("n") == [key("a"), key("b")]
    assert [(s.old is not None, s.new is not None) for s in seen] == [(False, True), (False, True), (True, True)]
    index.check()
    store.delete(key("a"))
    assert index.pods_on("n") == [key("b")] and index.by_uid("u-a") is None
    assert seen[-1].new is None and seen[-1].facts.uid == "u-a"
    index.check()


def test_namesake_with_another_uid_replaces_the_old_object() -> None:
    store = Store(history=100)
    index, _ = followed(store)
    store.create(key("a"), pod("a"))
    store.delete(key("a"))
    store.create(key("a"), pod("a", uid="u-new"))
    assert index.by_uid("u-a") is None and index.by_uid("u-new") is not None
    index.check()


def test_object_that_changes_owners_moves() -> None:
    store = Store(history=100)
    index, _ = followed(store)
    store.create(key("a"), pod("a"))
    store.update(key("a"), pod("a", owner={**OWNER, "uid": "u-other"}))
    assert index.dependents("u-rs") == [] and len(index.dependents("u-other")) == 1
    store.update(key("a"), pod("a", owner=None))
    assert index.dependents("u-other") == []
    index.check()


def test_owner_that_does_not_control_has_a_dependent_but_no_pod() -> None:
    store = Store(history=100)
    index, _ = followed(store)
    store.create(key("a"), pod("a", owner={**OWNER, "controller": False}))
    assert len(index.dependents("u-rs")) == 1 and len(index.owned_pods("u-rs")) == 0


def test_events_are_not_kept() -> None:
    store = Store(history=100)
    index, seen = followed(store)
    store.create(Key("events", "default", "e"), {"metadata": {"name": "e", "uid": "u"}})
    assert seen == [] and index.by_uid("u") is None


def test_facts_of_a_pod() -> None:
    store = Store(history=10)
    body = pod("a", node="n", deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=7, finalizers=["f"])
    body["metadata"]["annotations"] = {"sandbox.pilotage.dev/run-for": "5s", "x": "y"}  # type: ignore[index]
    body["spec"]["restartPolicy"] = "Never"  # type: ignore[index]
    body["spec"]["resourceClaims"] = [{"name": "c"}]  # type: ignore[index]
    body["spec"]["volumes"] = [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]  # type: ignore[index]
    body["status"] = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:09Z"}],
        "containerStatuses": [{"restartCount": 2}, {"restartCount": 1}],
    }
    facts = read_facts(store.create(key("a"), body))
    assert isinstance(facts, PodFacts)
    assert (facts.node_name, facts.phase, facts.is_ready, facts.restarts) == ("n", "Running", True, 3)
    assert (facts.is_deleting, facts.grace_seconds, facts.finalizers) == (True, 7, ("f",))
    assert facts.annotations.run_for == "5s" and facts.restart_policy == "Never"
    assert facts.has_claims and facts.has_ephemeral_volumes and not facts.is_active
    assert facts.controller is not None and facts.controller.name == "rs"


def test_null_fields_are_as_good_as_missing_ones() -> None:
    store = Store(history=10)
    meta = {"name": "a", "uid": "u", "annotations": None, "finalizers": None, "ownerReferences": None}
    body = {"metadata": meta, "spec": {"volumes": None, "nodeName": None}, "status": {"conditions": None}}
    facts = read_facts(store.create(key("a"), body))
    assert isinstance(facts, PodFacts) and facts.is_active and facts.annotations is NO_ANNOTATIONS


def test_object_that_breaks_the_rules_is_known_by_name_only() -> None:
    store = Store(history=10)
    body = {"metadata": {"name": "a", "uid": "u", "ownerReferences": "nobody"}}
    facts = read_facts(store.create(Key("widgets.example.com", "default", "a"), body))
    assert (facts.uid, facts.owners) == ("u", ())


def test_facts_of_a_node() -> None:
    store = Store(history=10)
    metadata = {"name": "n", "uid": "u", "annotations": {"sandbox.pilotage.dev/simulated": "true"}}
    addresses = [{"type": "Hostname", "address": "n"}, {"type": "InternalIP", "address": "1.2.3.4"}]
    body = {"metadata": metadata, "status": {"addresses": addresses}}
    facts = read_facts(store.create(Key("nodes", "", "n"), body))
    assert isinstance(facts, NodeObjectFacts)
    assert (facts.is_simulated, facts.address, facts.has_ready_condition) == (True, "1.2.3.4", False)


def test_facts_of_a_resource_claim() -> None:
    store = Store(history=10)
    claim = Key("resourceclaims.resource.k8s.io", "default", "c")
    metadata = {"name": "c", "uid": "u", "finalizers": ["f"], "ownerReferences": [OWNER]}
    facts = read_facts(store.create(claim, {"metadata": metadata}))
    assert isinstance(facts, ClaimFacts)
    assert (facts.consumers, facts.finalizers) == ((), ("f",))
    assert facts.controller is not None and facts.controller.name == "rs"
    reserved = [{"resource": "pods", "name": name, "uid": f"u-{name}"} for name in ("a", "b")]
    facts = read_facts(store.update(claim, {"metadata": metadata, "status": {"reservedFor": reserved}}))
    assert isinstance(facts, ClaimFacts) and facts.consumers == ("u-a", "u-b")


def test_owned_pods_are_counted_as_they_change() -> None:
    store = Store(history=100)
    index, _ = followed(store)
    for name in ("a", "b", "c"):
        store.create(key(name), pod(name, finalizers=["f"]))
    owned = index.owned_pods("u-rs")
    assert (owned.active, owned.ready, owned.leaving, owned.held_pods()) == (3, 0, 0, [])
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    store.update(key("a"), {**pod("a", finalizers=["f"]), "status": ready})
    store.update(key("b"), {**pod("b", finalizers=["f"]), "status": {"phase": "Succeeded"}})
    store.update(key("c"), pod("c", deletionTimestamp="2026-01-01T00:00:00Z"))
    assert (owned.active, owned.ready, owned.leaving) == (1, 1, 1)
    assert [facts.key.name for facts in owned.held_pods()] == ["b"]
    index.check()
    for name in ("a", "b", "c"):
        store.delete(key(name))
    assert len(index.owned_pods("u-rs")) == 0
    index.check()


def test_members_are_found_by_the_name_of_their_group() -> None:
    store = Store(history=100)

    def member(name: str, group: str) -> dict[str, object]:
        return {**pod(name), "spec": {"schedulingGroup": {"podGroupName": group}}}

    store.create(key("a"), member("a", "g"))
    index, _ = followed(store)
    store.create(key("b"), member("b", "g"))
    store.create(key("c"), member("c", "h"))
    assert [found.key for found in index.members("default", "g")] == [key("a"), key("b")]
    assert index.members("other", "g") == []
    store.delete(key("a"))
    store.create(key("a"), {**member("a", "h"), "metadata": {**member("a", "h")["metadata"], "uid": "u-new"}})  # type: ignore[dict-item]
    assert [found.key for found in index.members("default", "g")] == [key("b")]
    assert [found.key for found in index.members("default", "h")] == [key("c"), key("a")]
    index.check()
