"""Commands in simulated containers, and logs, over WebSockets: what `kubectl exec` speaks."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from pilotage.clock import SystemClock
from pilotage.rng import seeded
from pilotage.sandbox.api import Api
from pilotage.sandbox.http.asgi import serve
from pilotage.sandbox.http.server import ApiServer
from pilotage.sandbox.storage.store import Store

PODS = "/api/v1/namespaces/default/pods"
PREFIX = "sandbox.pilotage.dev/"
V5 = "v5.channel.k8s.io"
RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}


def running_pod(name: str, **annotations: str) -> dict[str, Any]:
    env = [{"name": "A", "value": "1"}, {"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    containers = [{"name": "c", "image": "i", "env": env}]
    written = {PREFIX + key.replace("_", "-"): value for key, value in annotations.items()}
    return {"metadata": {"name": name, "annotations": written}, "spec": {"containers": containers}}


def set_running(api: Api, name: str, state: dict[str, Any] = RUNNING) -> None:
    statuses = [{"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0, "state": state}]
    status = json.dumps({"status": {"phase": "Running", "containerStatuses": statuses}}).encode()
    api.patch("pods", "default", name, status, "application/merge-patch+json", "status")


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    clock = SystemClock()
    api = Api(Store(history=1000), clock=clock, rng=seeded(1))
    for pod in (running_pod("p"), running_pod("said", exec="hello", exec_exit_code="3"), running_pod("ended")):
        api.create("pods", "default", pod)
        set_running(api, pod["metadata"]["name"])
    api.create("pods", "default", running_pod("wrong", exec_exit_code="many"))
    set_running(api, "wrong")
    set_running(api, "ended", {"terminated": {"exitCode": 0, "startedAt": "2026-01-01T00:00:00Z"}})
    server = ApiServer(api, token=None, clock=clock)
    async with serve(server) as serving, aiohttp.ClientSession(serving.url) as session:
        yield session


async def carried_out(
    client: aiohttp.ClientSession, command: list[str], pod: str = "p", protocol: str = V5
) -> dict[int, str]:
    """What came on each channel."""
    query = [("container", "c"), ("stdout", "true"), *(("command", word) for word in command)]
    channels: dict[int, str] = {}
    async with client.ws_connect(f"{PODS}/{pod}/exec", params=query, protocols=(protocol,)) as connection:
        assert connection.protocol == protocol
        async for message in connection:
            if message.type is aiohttp.WSMsgType.TEXT:
                channel, text = int(message.data[0]), base64.b64decode(message.data[1:]).decode()
            else:
                channel, text = message.data[0], message.data[1:].decode()
            channels[channel] = channels.get(channel, "") + text
        assert connection.close_code == 1000
    return channels


@pytest.mark.parametrize(
    ("command", "printed", "exit_code"),
    [
        (["echo", "a", "b c"], "a b c\n", 0),
        (["sh", "-c", "echo $A\necho $ME; exit 5"], "1\np\n", 5),
        (["false"], "", 1),
        (["sleep", "0.01"], "", 0),
    ],
)
async def test_a_command_that_is_known_is_carried_out(
    client: aiohttp.ClientSession, command: list[str], printed: str, exit_code: int
) -> None:
    channels = await carried_out(client, command)
    status = json.loads(channels[3])
    assert (channels.get(1, ""), status["status"]) == (printed, "Failure" if exit_code else "Success")
    if exit_code:
        assert status["reason"] == "NonZeroExitCode"
        assert status["details"]["causes"] == [{"reason": "ExitCode", "message": str(exit_code)}]


async def test_a_command_that_is_not_known_is_not_found(client: aiohttp.ClientSession) -> None:
    channels = await carried_out(client, ["nginx", "-v"])
    assert channels[2] == "container c is simulated: nginx cannot be run in it (see sandbox.pilotage.dev/exec)\n"
    assert json.loads(channels[3])["details"]["causes"][0]["message"] == "127"


async def test_an_annotation_says_what_any_command_prints(client: aiohttp.ClientSession) -> None:
    channels = await carried_out(client, ["nginx", "-v"], "said")
    assert channels[1] == "hello\n"
    assert json.loads(channels[3])["details"]["causes"][0]["message"] == "3"


@pytest.mark.parametrize(
    ("protocol", "ending"),
    [
        ("v4.channel.k8s.io", "NonZeroExitCode"),
        ("v4.base64.channel.k8s.io", "NonZeroExitCode"),
        ("channel.k8s.io", "command terminated with non-zero exit code: exit status 2"),
        ("base64.channel.k8s.io", "command terminated with non-zero exit code: exit status 2"),
    ],
)
async def test_older_protocols_are_spoken(client: aiohttp.ClientSession, protocol: str, ending: str) -> None:
    channels = await carried_out(client, ["sh", "-c", "echo a; exit 2"], protocol=protocol)
    assert channels[1] == "a\n" and ending in channels[3]


async def test_a_command_without_end_ends_with_its_client(client: aiohttp.ClientSession) -> None:
    query = [("command", "sleep"), ("command", "infinity")]
    async with client.ws_connect(f"{PODS}/p/exec", params=query, protocols=(V5,)) as connection:
        await connection.send_bytes(b"\x00typed")
    assert connection.close_code == 1000


@pytest.mark.parametrize(
    ("path", "status", "problem"),
    [
        ("p/exec?command=true&container=x", 400, "container x is not valid for pod p"),
        ("none/exec?command=true", 404, 'pods "none" not found'),
        ("p/exec", 400, "you must specify at least 1 command for the container"),
        ("ended/exec?command=true", 400, 'container not found ("c"): it is not running'),
        ("wrong/exec?command=true", 400, 'annotation sandbox.pilotage.dev/exec-exit-code: "many" is no exit code'),
    ],
)
async def test_what_cannot_be_carried_out_is_answered_without_an_upgrade(
    client: aiohttp.ClientSession, path: str, status: int, problem: str
) -> None:
    async with client.post(f"{PODS}/{path}") as answer:
        assert answer.status == status and problem in (await answer.json())["message"]
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await client.ws_connect(f"{PODS}/{path}", protocols=(V5,))
    assert refused.value.status == status


async def test_spdy_is_rejected_with_the_way_out(client: aiohttp.ClientSession) -> None:
    upgrade = {"connection": "Upgrade", "upgrade": "SPDY/3.1"}
    async with client.post(f"{PODS}/p/exec?command=true", headers=upgrade) as answer:
        message = (await answer.json())["message"]
        assert answer.status == 400 and "WebSockets" in message and "SPDY is not spoken here" in message


@pytest.mark.parametrize("protocol", ["binary.k8s.io", "base64.binary.k8s.io"])
async def test_a_log_comes_over_a_web_socket(client: aiohttp.ClientSession, protocol: str) -> None:
    async with client.ws_connect(f"{PODS}/p/log", protocols=(protocol,)) as connection:
        message = await connection.receive()
        text = message.data if isinstance(message.data, bytes) else base64.b64decode(message.data)
        assert text.startswith(b"container c is simulated")
        assert (await connection.receive()).type is aiohttp.WSMsgType.CLOSE
