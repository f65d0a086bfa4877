"""Kinds that plugins watch: their names, which of them a scheduler has, and what is said about the others."""

from __future__ import annotations

from typing import ClassVar

import pytest

from pilotage.api import (
    Action,
    ApiObject,
    ClusterEvent,
    ClusterIndex,
    Filter,
    Hint,
    Kind,
    Plugin,
    Shape,
    UnknownKind,
    on_event,
)
from pilotage.api.kinds import WatchedKinds
from pilotage.cluster.state import Cluster
from pilotage.framework.plugin_checks import plugin_problems
from pilotage.model import DecodeError, Node, Pod
from pilotage.testing import FakeHandle, node, pod


class GroupSpec(Shape, frozen=True):
    min_member: int = 1


class PodGroup(ApiObject, frozen=True):
    spec: GroupSpec = GroupSpec()


class OtherGroup(ApiObject, frozen=True):
    pass


GROUPS = Kind("podgroups.scheduling.x-k8s.io", "v1alpha1", PodGroup)
CONFIG_MAPS = Kind("configmaps", "v1")


@pytest.mark.parametrize(
    ("kind", "name", "path"),
    [
        (GROUPS, "podgroups.v1alpha1.scheduling.x-k8s.io", "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"),
        (CONFIG_MAPS, "configmaps.v1", "/api/v1/configmaps"),
        (Kind("configmaps.v1"), "configmaps.v1", "/api/v1/configmaps"),
        (Kind("configmaps.v1."), "configmaps.v1", "/api/v1/configmaps"),
        (Kind("foos.v1beta2.example.com"), "foos.v1beta2.example.com", "/apis/example.com/v1beta2/foos"),
        (Kind("deployments.apps", "v1"), "deployments.v1.apps", "/apis/apps/v1/deployments"),
    ],
)
def test_a_kind_by_its_names(kind: Kind, name: str, path: str) -> None:
    assert (kind.name, kind.info.path()) == (name, path)


def test_both_spellings_are_one_kind() -> None:
    assert Kind("podgroups.v1alpha1.scheduling.x-k8s.io", struct=PodGroup) == GROUPS


@pytest.mark.parametrize(
    ("resource", "version", "struct", "problem"),
    [
        ("configmaps", "", None, 'say which version, such as Kind("configmaps", "v1")'),
        ("configmaps", "1", None, "say which version"),
        ("PodGroup", "v1", None, 'write it as the plural and the group, such as "podgroups.scheduling.x-k8s.io"'),
        ("podgroups/scheduling.x-k8s.io", "v1", None, "write it as the plural and the group"),
        ("configmaps", "v1", dict, "does not derive from pilotage.api.ApiObject"),
    ],
)
def test_what_is_no_kind(resource: str, version: str, struct: type | None, problem: str) -> None:
    with pytest.raises(ValueError, match="Kind") as raised:
        Kind(resource, version, struct)
    assert problem in str(raised.value)


def test_objects_are_of_the_type_or_dicts() -> None:
    typed = GROUPS.info.decode(b'{"metadata":{"name":"g","namespace":"n"},"spec":{"minMember":3}}')
    assert isinstance(typed, PodGroup) and (typed.key, typed.spec.min_member) == ("n/g", 3)
    plain = CONFIG_MAPS.info.decode(b'{"metadata":{"name":"c","namespace":"n","uid":"u"},"data":{"a":"b"}}')
    assert plain["data"] == {"a": "b"} and (plain.key, plain.uid, plain.labels) == ("n/c", "u", {})


@pytest.mark.parametrize("data", [b"{}", b'{"metadata":{}}', b'{"metadata":{"name":1}}', b'{"metadata":[]}', b"[]"])
def test_an_object_needs_a_name(data: bytes) -> None:
    for kind in (GROUPS, CONFIG_MAPS):
        with pytest.raises(DecodeError):
            kind.info.decode(data)


def test_bookmarks_and_objects_that_do_not_decode_are_distinguished() -> None:
    lines = (
        b'{"type":"ADDED","object":{"metadata":{"name":"c"}}}\n'
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}\n'
        b'{"type":"MODIFIED","object":{"metadata":{"name":""}}}\n'
    )
    added, bookmark, broken = CONFIG_MAPS.info.decode_events(lines)
    assert added.object.name == "c" and bookmark.object.resource_version == "7"
    assert isinstance(broken.object, DecodeError)


# --- which of them are watched ---------------------------------------------------------------------------------


def test_a_kind_is_found_by_each_of_its_names() -> None:
    kinds = WatchedKinds({"Gangs": [GROUPS]})
    names = (GROUPS, "podgroups.scheduling.x-k8s.io", "podgroups.v1alpha1.scheduling.x-k8s.io")
    assert {kinds.key(name) for name in names} == {GROUPS.name}
    assert kinds.key("Pod") == "Pod" and list(kinds.foreign) == [GROUPS.name]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("podgrups.scheduling.x-k8s.io", '(did you mean "podgroups.scheduling.x-k8s.io"?)'),
        ("persistentvolumeclaims", 'are known as "PersistentVolumeClaim"'),
        ("PersistentVolumeClame", '(did you mean "PersistentVolumeClaim"?)'),
        ("Job", 'add Kind("jobs.batch", "v1") to the plugin\'s `watches`'),
        ("flurbs.example.com", "name it in the plugin's `watches`"),
        (CONFIG_MAPS, "configmaps.v1 is watched by no enabled plugin"),
    ],
)
def test_a_kind_that_is_not_watched_is_an_error_with_a_way_out(asked: str | Kind, answer: str) -> None:
    with pytest.raises(UnknownKind) as raised:
        WatchedKinds({"Gangs": [GROUPS]}).key(asked)
    assert answer in str(raised.value)


def test_plugins_share_a_kind_and_get_it_apart_if_their_types_differ() -> None:
    other = Kind("podgroups.scheduling.x-k8s.io", "v1alpha1", OtherGroup)
    kinds = WatchedKinds({"A": [GROUPS], "B": [other], "C": [GROUPS]})
    assert kinds.key(GROUPS) != kinds.key(other)
    assert kinds.wanted_by == {kinds.key(GROUPS): ["A", "C"], kinds.key(other): ["B"]}
    with pytest.raises(UnknownKind, match="ask with the Kind itself"):
        kinds.key("podgroups.scheduling.x-k8s.io")


@pytest.mark.parametrize(
    ("resource", "kind"),
    [("podgroups", "PodGroup"), ("noderesourcetopologies", "NodeResourceTopology"), ("endpoints", "Endpoints")],
)
def test_a_manifest_is_of_a_kind_by_the_rule_of_plurals(resource: str, kind: str) -> None:
    kinds = WatchedKinds({"P": [Kind(f"{resource}.example.com", "v1")]})
    assert [info.plural for info in kinds.of_manifest({"apiVersion": "example.com/v1", "kind": kind})] == [resource]
    assert kinds.of_manifest({"apiVersion": "example.com/v2", "kind": kind}) == []


def test_a_manifest_of_a_name_that_both_have_is_read_by_its_group() -> None:
    kinds = WatchedKinds({"P": [Kind("services.example.com", "v1")]})
    assert [info.kind for info in kinds.of_manifest({"apiVersion": "example.com/v1", "kind": "Service"})] == [
        "services.v1.example.com"
    ]
    assert [info.kind for info in kinds.of_manifest({"apiVersion": "v1", "kind": "Service"})] == ["Service"]


def test_a_kind_of_ours_can_be_watched_once_more() -> None:
    """For events that ours do not raise, or for fields that ours leave out."""
    handle = FakeHandle(watches=[Kind("nodes", "v1", Node, namespaced=False), Kind("pods", "v1")])
    handle.put(node("a").json(), pod("p").node("a").json())
    assert handle.objects("nodes")["a"] is not None and handle.objects("Node")["a"].name == "a"
    assert handle.node("a") is not None and handle.cluster.placed_count == 1
    assert handle.objects("pods")["default/p"]["spec"]["nodeName"] == "a"
    handle.put(node("b").build())
    assert list(handle.objects("nodes")) == list(handle.objects("Node")) == ["a", "b"]


def test_an_index_of_a_kind_that_is_not_watched_is_rejected() -> None:
    class Jobs(ClusterIndex):
        kinds: ClassVar[frozenset[str]] = frozenset({"Job"})

    with pytest.raises(UnknownKind, match=r"add Kind\("):
        Cluster().index(Jobs)


# --- what plugins register for ---------------------------------------------------------------------------------


class Gangs(Plugin, Filter):
    watches = (GROUPS,)
    always_queue_on = (ClusterEvent("podgroups.scheduling.x-k8s.io", Action.DELETE),)

    def filter(self, state: object, pod: Pod, node: object) -> None:
        return None

    @on_event("podgroups.v1alpha1.scheduling.x-k8s.io", Action.ADD)
    @on_event(GROUPS, Action.UPDATE)
    @on_event("Node", Action.ADD)
    def after_group(self, pod: Pod, old: object, new: object) -> Hint:
        return Hint.QUEUE


def test_registrations_have_the_full_name_of_the_kind() -> None:
    assert plugin_problems(Gangs) == []
    labels = sorted(registration.event.label for registration in Gangs().registrations())
    assert labels == ["NodeAdd", *(f"{GROUPS.name}{action}" for action in ("Add", "Delete", "Update"))]


def test_an_event_of_a_kind_that_the_plugin_does_not_watch_is_rejected_with_its_line() -> None:
    class Misspelt(Gangs):
        @on_event("podgroup.scheduling.x-k8s.io", Action.ADD)
        def after_misspelt(self, pod: Pod, old: object, new: object) -> Hint:
            return Hint.QUEUE

    (problem,) = plugin_problems(Misspelt)
    assert problem.line > 0
    assert 'Misspelt.after_misspelt: "podgroup.scheduling.x-k8s.io" is not among the kinds' in problem.message
    assert '(did you mean "podgroups.scheduling.x-k8s.io"?)' in problem.message


def test_an_action_that_no_such_event_has_is_rejected() -> None:
    class TooFine(Gangs):
        @on_event(GROUPS, Action.ADD | Action.UPDATE_POD_LABEL)
        def after_labels(self, pod: Pod, old: object, new: object) -> Hint:
            return Hint.QUEUE

    (problem,) = plugin_problems(TooFine)
    assert "there are ADD, UPDATE and DELETE only" in problem.message


def test_watches_that_are_no_kinds_are_rejected() -> None:
    class Texts(Gangs):
        watches = ("podgroups.scheduling.x-k8s.io",)  # type: ignore[assignment]

    (problem,) = plugin_problems(Texts)
    assert "Texts.watches must be a tuple of Kind" in problem.message
