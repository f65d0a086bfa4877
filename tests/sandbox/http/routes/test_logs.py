"""Logs of simulated containers."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.clock import parse_rfc3339, rfc3339
from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.http.routes.logs import pod_log
from tests.sandbox.api_world import World

Object = dict[str, Any]
RUNNING = {"running": {"startedAt": "2026-01-01T00:00:01Z"}}


def a_pod(*containers: Object, annotations: dict[str, str] | None = None, state: Object | None = None) -> Object:
    prefixed = {f"sandbox.pilotage.dev/{name}": text for name, text in (annotations or {}).items()}
    names = [container["name"] for container in containers]
    statuses = [{"name": name, "state": RUNNING if state is None else state} for name in names]
    return {
        "metadata": {"name": "p", "annotations": prefixed},
        "spec": {"containers": list(containers)},
        "status": {"containerStatuses": statuses},
    }


A, B = {"name": "a", "image": "i"}, {"name": "b", "image": "i", "command": ["echo", "hello"]}


@pytest.mark.parametrize(
    ("pod", "query", "text"),
    [
        (a_pod(A), {}, "container a is simulated: nothing runs, nothing is logged (see sandbox.pilotage.dev/logs)\n"),
        (a_pod(B), {}, "hello\n"),
        (a_pod(A, annotations={"logs": "one\ntwo"}), {}, "one\ntwo\n"),
        (a_pod(A, annotations={"logs": "one\ntwo"}), {"tailLines": "1"}, "two\n"),
        (a_pod(A, annotations={"logs": "one\ntwo"}), {"tailLines": "0"}, ""),
        (a_pod(A, annotations={"logs": "one"}), {"timestamps": "true"}, "2026-01-01T00:00:01Z one\n"),
        (a_pod(A, annotations={"logs": "one"}), {"limitBytes": "2"}, "on"),
        (a_pod(A, B, annotations={"logs.a": "mine", "logs": "all"}), {"container": "a"}, "mine\n"),
        (a_pod(A, B, annotations={"logs.a": "mine", "logs": "all"}), {"container": "b"}, "all\n"),
    ],
)
def test_log_of_a_container(pod: Object, query: dict[str, str], text: str) -> None:
    assert pod_log(pod, query, World().api) == text


@pytest.mark.parametrize(
    ("pod", "query", "problem"),
    [
        (a_pod(A, B), {}, "a container name must be specified for pod p, choose one of: [a b]"),
        (a_pod(A), {"container": "x"}, "container x is not valid for pod p"),
        (a_pod(A, state={}), {}, 'container "a" in pod "p" is waiting to start: ContainerCreating'),
        (a_pod(A), {"previous": "true"}, 'previous terminated container "a" in pod "p" not found'),
    ],
)
def test_log_that_there_is_not(pod: Object, query: dict[str, str], problem: str) -> None:
    with pytest.raises(ApiError) as caught:
        pod_log(pod, query, World().api)
    assert (caught.value.code, caught.value.message) == (400, problem)


async def test_a_log_has_what_was_printed_by_now() -> None:
    world = World()
    begin = rfc3339(int(world.clock.time()))
    loop = {"name": "a", "image": "i", "command": ["sh", "-c", "while true; do echo tick; sleep 5; done"]}
    pod = a_pod(loop, state={"running": {"startedAt": begin}})
    await world.clock.advance(11)
    assert pod_log(pod, {}, world.api) == "tick\n" * 3
    later = rfc3339(int(parse_rfc3339(begin)) + 10)
    assert pod_log(pod, {"timestamps": "true", "tailLines": "1"}, world.api) == f"{later} tick\n"
    ended = {"terminated": {"startedAt": begin, "finishedAt": begin, "exitCode": 0}}
    assert pod_log(a_pod(loop, state=ended), {}, world.api) == "tick\n"
