"""Pod groups at an API server that has them in the version of Kubernetes 1.36 only."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
import pytest

from pilotage.kube.transport import Response
from pilotage.model import KINDS
from pilotage.model.pod_group import POD_GROUP_SCHEDULED, PodGroup
from tests.passing_transport import PassingTransport
from tests.plugins.dynamic_resources.live_cluster import live

GROUPS = "podgroups.scheduling.k8s.io"
OURS, OLDER = "/scheduling.k8s.io/v1beta1/", "/scheduling.k8s.io/v1alpha2/"


class OlderServer(PassingTransport):
    """Says of v1beta1 that there is none, and serves the same objects as v1alpha2."""

    async def request(self, method: str, path: str, **options: Any) -> Response:
        return await super().request(method, _translated(path), **options)

    def stream(self, path: str, *args: Any, **options: Any) -> AbstractAsyncContextManager[Any]:
        return super().stream(_translated(path), *args, **options)


class WithoutGroups(PassingTransport):
    """Has them in no version."""

    async def request(self, method: str, path: str, **options: Any) -> Response:
        answer = await super().request(method, f"{path}/".replace(OURS, "/no/").replace(OLDER, "/no/")[:-1], **options)
        if "podgroups" in path:
            return answer
        return Response(answer.status, answer.headers, answer.body.replace(b"v1beta1", b"v9"))


def _translated(path: str) -> str:
    return path.replace(OURS, "/scheduling.k8s.io/v0/").replace(OLDER, OURS)


async def test_a_gang_is_scheduled_and_its_status_written() -> None:
    async with live(transport=OlderServer) as cluster:
        policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        cluster.api.create(GROUPS, "default", {"metadata": {"name": "g"}, "spec": policy})
        for name in "ab":
            spec = {"containers": [{"name": "c", "image": "i"}], "schedulingGroup": {"podGroupName": "g"}}
            cluster.api.create("pods", "default", {"metadata": {"name": name}, "spec": spec})
            await cluster.after(10)
        assert all(cluster.node_of(name) for name in "ab")
        (condition,) = cluster.api.get(GROUPS, "default", "g")["status"]["conditions"]
        assert (condition["type"], condition["status"]) == (POD_GROUP_SCHEDULED, "True")
        assert not condition["message"], "what it waited for before is over"


async def test_that_a_server_has_no_pod_groups_is_said_once_of_each_version(caplog: pytest.LogCaptureFixture) -> None:
    async with live(transport=WithoutGroups) as cluster:
        await cluster.after(300)
    said = [record.message for record in caplog.records if record.message.startswith("PodGroup: ")]
    assert len(said) == len(set(said)) == 2


def test_the_disruption_mode_is_a_word_there() -> None:
    kind = KINDS["podgroups"].in_other_version()
    assert kind.path("default", "g") == "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups/g"
    assert kind.in_other_version() == KINDS["podgroups"]
    for word, whole in (("PodGroup", True), ("Pod", False)):
        group: PodGroup = kind.decode(
            msgspec.json.encode({"metadata": {"name": "g"}, "spec": {"disruptionMode": word}})
        )
        assert group.is_disrupted_as_one is whole


def test_a_kind_with_one_version_has_no_other() -> None:
    assert KINDS["pods"].in_other_version() is KINDS["pods"]
