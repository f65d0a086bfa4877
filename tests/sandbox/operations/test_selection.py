from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.kinds.builtin_kinds import builtin_registry
from pilotage.sandbox.operations.selection import EVERYTHING, parse_selection
from pilotage.sandbox.storage.records import Key, Record
from tests.sandbox.api_world import World

PODS = builtin_registry().of("pods")
EVENTS = builtin_registry().of("events")
NODES = builtin_registry().of("nodes")


def record(resource: str = "pods", **obj: Any) -> Record:
    metadata = {"name": "web-1", "namespace": "shop", **obj.pop("metadata", {})}
    body = msgspec.json.encode({"metadata": metadata, **obj})
    return Record(Key(resource, "shop", "web-1"), 1, body, "u", metadata.get("labels", {}))


@pytest.mark.parametrize(
    ("labels", "fields", "matches"),
    [
        ("app=web", "", True),
        ("app!=web", "", False),
        ("app in (web, db),!gone", "", True),
        ("", "metadata.name=web-1", True),
        ("", "metadata.name=web-2", False),
        ("", "metadata.namespace!=shop", False),
        ("", "spec.nodeName=a", True),
        ("", "spec.nodeName!=a", False),
        ("", "spec.nodeName=a,status.phase!=Running", False),
        ("", "status.phase!=Running", False),
        ("", "status.phase!=Failed,status.phase!=Running", False),
        ("", "status.phase!=Failed,status.phase!=Succeeded", True),
        ("", "spec.schedulerName!=Running", True),
        ("", "spec.hostNetwork!=false", False),
        ("", "spec.hostNetwork!=true", True),
        ("", "status.podIP!=", False),
        ("", "spec.hostNetwork=false", True),
        ("", "status.podIP=", True),
        ("app=web", "status.phase=Running,metadata.name=web-1", True),
        ("app=db", "status.phase=Running", False),
    ],
)
def test_labels_and_fields_select_pods(labels: str, fields: str, matches: bool) -> None:
    web = record(metadata={"labels": {"app": "web"}}, spec={"nodeName": "a"}, status={"phase": "Running"})
    assert parse_selection(PODS, labels, fields).matches(web) is matches


def test_no_selector_is_everything() -> None:
    assert parse_selection(PODS, "", "") is EVERYTHING
    assert EVERYTHING.is_everything and EVERYTHING.matches(record())


def test_an_exact_name_is_told_so_that_a_list_becomes_a_look_up() -> None:
    assert parse_selection(PODS, "", "metadata.name=a").exact_name == "a"
    assert parse_selection(PODS, "", "metadata.name!=a").exact_name == ""


@pytest.mark.parametrize(
    ("resource_type", "fields", "obj"),
    [
        (EVENTS, "involvedObject.name=x,involvedObject.kind=Pod", {"involvedObject": {"kind": "Pod", "name": "x"}}),
        (EVENTS, "regarding.name=x", {"involvedObject": {"name": "x"}}),
        (EVENTS, "reportingController=s", {"reportingComponent": "s"}),
        (EVENTS, "source=kubelet,type=Warning", {"source": {"component": "kubelet"}, "type": "Warning"}),
        (NODES, "spec.unschedulable=true", {"spec": {"unschedulable": True}}),
        (NODES, "spec.unschedulable=false", {"spec": {}}),
    ],
)
def test_fields_of_other_kinds(resource_type: Any, fields: str, obj: dict[str, Any]) -> None:
    assert parse_selection(resource_type, "", fields).matches(record(**obj))
    assert not parse_selection(resource_type, "", fields.replace("=", "!=", 1)).matches(record(**obj))


def test_a_field_whose_parent_is_something_else_counts_as_empty() -> None:
    assert parse_selection(PODS, "", "spec.nodeName=").matches(record(spec="what?"))


@pytest.mark.parametrize(
    ("labels", "fields", "problem"),
    [
        ("a=b=c", "", "position"),
        ("", "spec.nodeName", "position 0"),
        ("", "spec.containers=x", "field label not supported: spec.containers"),
    ],
)
def test_a_selector_that_cannot_be_used_is_400(labels: str, fields: str, problem: str) -> None:
    with pytest.raises(ApiError, match=problem) as refused:
        parse_selection(PODS, labels, fields)
    assert refused.value.code == 400


def test_the_source_of_an_event_is_who_reported_it_if_none_is_named() -> None:
    world = World()
    about = {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}}
    world.api.create("events", "default", {"metadata": {"name": "a"}, "source": {"component": "kubelet"}, **about})
    world.api.create("events", "default", {"metadata": {"name": "b"}, "reportingComponent": "scheduler", **about})
    for source, name in (("kubelet", "a"), ("scheduler", "b")):
        found = world.api.list("events", "default", field_selector=f"source={source}")
        assert [event["metadata"]["name"] for event in found] == [name]
    assert "lastTimestamp" in found[0] and found[0]["lastTimestamp"] is None
