"""The dump of queue and cache: a line for everything, within bounds."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pilotage.api import CycleState, Permit, Plugin, Wait
from pilotage.cli.json_logs import taken_apart
from pilotage.model import Pod
from pilotage.serve import state_dump
from pilotage.serve.state_dump import dump_state
from pilotage.testing import node, pod
from tests.cycle.live_scheduler import live


class Hold(Plugin, Permit):
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Wait | None:
        return Wait(60) if pod.name == "held" else None


def lines(caplog: pytest.LogCaptureFixture, sentence: str) -> list[dict[str, Any]]:
    return [keys for text, keys in map(taken_apart, caplog.records) if text == sentence]


async def test_every_pod_and_node_has_a_line(caplog: pytest.LogCaptureFixture) -> None:
    async with live(Hold) as world:
        await world.put(node("n").cpu(4), pod("runs").requests(cpu=1), pod("held").requests(cpu=1))
        await world.put(pod("giant").requests(cpu=50), pod("gated").gate("wait"))
        with caplog.at_level(logging.INFO):
            dump_state(world.scheduler)
    (queue,) = lines(caplog, "dump of the scheduling queue")
    assert (queue["unschedulable"], queue["gated"], queue["in_flight"]) == ("1", "1", "1")
    pods = {one["pod"]: one for one in lines(caplog, "queued pod")}
    assert set(pods) == {"default/held", "default/giant", "default/gated"}
    assert (pods["default/held"]["held_by"], pods["default/held"]["node"]) == ("Hold", "n")
    assert pods["default/giant"]["plugins"] == "NodeResourcesFit" and "0/1 nodes" in pods["default/giant"]["message"]
    assert pods["default/gated"]["gated_by"] == "SchedulingGates"
    (cache,) = lines(caplog, "dump of the cache")
    assert cache == {"nodes": "1", "pods": "4", "assumed": "1"}
    (shown,) = lines(caplog, "cached node")
    assert shown["node"] == "n" and shown["requested"].startswith("cpu:2000,memory:")
    assert lines(caplog, "assumed pod") == [{"pod": "default/held"}]


async def test_what_is_too_much_is_counted(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_dump, "_MOST_LINES", 2)
    async with live() as world:
        await world.put(*(node(f"n{number}").cpu(1) for number in range(3)))
        await world.put(*(pod(f"p{number}").requests(cpu=9) for number in range(5)))
        with caplog.at_level(logging.INFO):
            dump_state(world.scheduler)
    assert len(lines(caplog, "queued pod")) == 2 and len(lines(caplog, "cached node")) == 2
    assert lines(caplog, "3 more are not shown") == [{"part": "unschedulable"}]
    assert lines(caplog, "1 more are not shown") == [{"part": "nodes"}]
