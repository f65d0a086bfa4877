"""Whole objects: a plugin that names a kind has the JSON of its objects, fields that our classes leave out included."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from pilotage.api import CycleState, Filter, Handle, NodeView, Plugin, Pod, Reason, Reject, Rejection, Reserve
from pilotage.assembly import SchedulerProcess, options_from_configuration, watched_kinds
from pilotage.cli.errors import ExitCode
from pilotage.cli.main import call
from pilotage.cluster.state import Cluster
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.cycle.handle import FrameworkHandle
from pilotage.framework.errors import ProfileError
from pilotage.kube.client import KubeClient
from pilotage.model import KINDS
from pilotage.model.codec import json_of
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.testing import FakeHandle, VirtualClock, node, pod


class SameCommand(Plugin, Filter, Reserve):
    """Reads the command of a pod and the kubelet's version of a node, which our classes do not have."""

    raw_kinds: ClassVar[frozenset[str]] = frozenset(["Pod", "Node"])
    seen: ClassVar[list[Any]] = []

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        command = self._handle.raw(pod)["spec"]["containers"][0]["command"]
        wanted = self._handle.raw(node.node)["metadata"]["name"]
        return None if command == [wanted] else Reject(Reason("Other", "another command"))

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        self.seen.append((pod.node_name, self._handle.raw(pod)["spec"]["containers"][0]["command"]))
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None: ...


class Curious(SameCommand):
    raw_kinds: ClassVar[frozenset[str]] = frozenset()


class Misspelt(SameCommand):
    raw_kinds: ClassVar[frozenset[str]] = frozenset(["Pods"])


async def scheduled(plugin: type[Plugin]) -> tuple[str, Any]:
    clock, rng = VirtualClock(), seeded(1)
    async with EmbeddedCluster.running(EmbeddedOptions(nodes=3, port=None), clock, rng) as cluster:
        options = options_from_configuration(SchedulerConfiguration(), [plugin])
        process = SchedulerProcess(KubeClient(cluster.transport()), clock, rng, options)
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(process.run())
            name = cluster.api.list("nodes", "")[1]["metadata"]["name"]
            container = {"name": "c", "image": "i", "command": [name]}
            cluster.api.create("pods", "default", pod("p").spec(containers=[container]).json())
            await clock.advance(3)
            found = cluster.api.get("pods", "default", "p")
            serving.cancel()
    return name, found


async def test_the_whole_object_is_at_hand_at_every_point() -> None:
    SameCommand.seen.clear()
    name, found = await scheduled(SameCommand)
    assert found["spec"]["nodeName"] == name
    assert SameCommand.seen == [(name, [name])], "also of a pod that is assumed on a node"


async def test_who_does_not_name_the_kind_is_told_how() -> None:
    _, found = await scheduled(Curious)
    assert "nodeName" not in found["spec"]
    message = found["status"]["conditions"][0]["message"]
    assert 'the JSON of Pod default/p is not kept; write raw_kinds = frozenset(["Pod"]) into Curious' in message


def test_an_object_that_someone_made_anew_has_the_json_of_the_one_that_was_received() -> None:
    cluster = Cluster()
    handle = FrameworkHandle(cluster, VirtualClock(), seeded(1)).for_plugin("p", "Mine")
    document = pod("p").spec(hostname="h").json()
    cluster.put_object("Pod", KINDS["pods"].keeping_json().decode(msgspec.json.encode(document)))
    plain = KINDS["pods"].decode(msgspec.json.encode(document))
    assert handle.raw(plain)["spec"]["hostname"] == "h"
    with pytest.raises(LookupError, match="into Mine"):
        handle.raw(pod("p").uid("another").build())


EXPLAINED = """
from pilotage.api import Filter, Plugin, Reason, Reject

class Talk(Plugin, Filter):
    raw_kinds = frozenset(["Pod", "Node"])

    def __init__(self, handle):
        self._handle = handle

    def filter(self, state, pod, node):
        if pod.name == "other":
            return None
        other = self._handle.objects("Pod")["default/other"]
        fits = self._handle.what_if(other).on(node.name).rejection() is None
        name = self._handle.raw(pod)["spec"]["hostname"] + self._handle.raw(node.node)["spec"]["externalID"]
        return Reject(Reason("No", f"{name} {fits}"))
"""


def test_explain_has_the_json_and_answers_what_if(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "talk.py").write_text(EXPLAINED)
    node_document = {**node("a").cpu(2).json(), "apiVersion": "v1", "kind": "Node"}
    node_document["spec"] = {"externalID": "-x"}
    documents = [node_document, *({**p.json(), "apiVersion": "v1", "kind": "Pod"} for p in (
        pod("p").spec(hostname="mars"), pod("other").requests(cpu=3),
    ))]  # fmt: skip
    (tmp_path / "all.yaml").write_text("\n---\n".join(msgspec.json.encode(one).decode() for one in documents))
    call(["explain", "pod/p", "-f", str(tmp_path / "all.yaml"), "--plugin", str(tmp_path / "talk.py")])
    assert "mars-x False" in capsys.readouterr().out


def test_plugin_check_names_a_kind_that_is_not_watched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "talk.py").write_text(EXPLAINED.replace('"Node"', '"Lease"'))
    assert call(["plugin", "check", str(tmp_path / "talk.py"), "--worlds", "0"]) == ExitCode.BAD_INPUT
    assert 'the scheduler does not watch "Lease"' in capsys.readouterr().err


def test_a_kind_that_is_not_watched_is_reported_at_the_start() -> None:
    options = options_from_configuration(SchedulerConfiguration(), [Misspelt])
    with pytest.raises(ProfileError, match=r'"Misspelt": raw_kinds: the scheduler does not watch "Pods".*Pod'):
        watched_kinds(options)


def test_nothing_is_kept_unless_someone_asks() -> None:
    options = options_from_configuration(SchedulerConfiguration(), [Curious])
    assert all(kind is KINDS[resource] for resource, kind in watched_kinds(options).own.items())
    kinds = watched_kinds(options_from_configuration(SchedulerConfiguration(), [SameCommand])).own
    assert [name for name, kind in kinds.items() if kind is not KINDS[name]] == ["nodes", "pods"]


def test_objects_are_read_as_before_and_keep_their_own_json() -> None:
    plain, keeping = KINDS["pods"], KINDS["pods"].keeping_json()
    good = pod("good").requests(cpu=1).label("a", "b").json()
    lines = [
        {"type": "ADDED", "object": good},
        {"type": "ADDED", "object": {**good, "spec": 5}},
        {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "7"}}},
        {"type": "ERROR", "object": {"code": 410, "message": "gone"}},
    ]
    data = b"\n".join(msgspec.json.encode(line) for line in lines)
    expected, found = plain.decode_events(data), keeping.decode_events(data)
    assert [event.type for event in found] == [event.type for event in expected]
    assert [repr(event.object)[:40] for event in found] == [repr(event.object)[:40] for event in expected]
    one = found[0].object
    assert isinstance(one, Pod) and msgspec.json.decode(json_of(one) or b"") == good
    assert one.spec is expected[0].object.spec, "specs are shared as before"
    page = keeping.decode_list(msgspec.json.encode({"metadata": {"resourceVersion": "5"}, "items": [good, {}]}))
    assert [json_of(item) is not None for item in page.items] == [True] and len(page.errors) == 1
    assert page.resource_version == "5"


def test_a_fake_handle_gives_back_the_json_that_was_put_in() -> None:
    handle = FakeHandle()
    document = {"kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [], "hostname": "h"}}
    handle.put(document)
    assert handle.raw(handle.objects("Pod")["n/p"])["spec"]["hostname"] == "h"
    built = pod("q").label("a", "b").requests(cpu=1).node("n").build()
    built.spec.memo["somebody"] = lambda: None
    known = handle.raw(built)
    del built.spec.memo["somebody"]
    assert (known["kind"], known["metadata"]["name"], known["metadata"]["labels"]) == ("Pod", "q", {"a": "b"})
    assert known["spec"]["nodeName"] == "n" and known["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert handle.raw(node("n").cpu(2).build())["status"]["allocatable"]["cpu"] == "2"
