"""`pilotage queue`: what it shows of a report, and what it says when nobody answers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from pilotage.api import CycleState, Permit, Plugin, Wait
from pilotage.calls.report import CallReport, CallsReport, LaneReport
from pilotage.cli.errors import CommandError, ExitCode
from pilotage.cli.main import call
from pilotage.cli.queue import render
from pilotage.cli.sandbox import embedded_scheduler
from pilotage.cli.sandbox_pages import queue_document
from pilotage.cli.scheduler_address import SANDBOX_QUEUE
from pilotage.cli.scheduler_flags import SchedulerFlags
from pilotage.clock import SystemClock
from pilotage.cycle.report import SchedulerReport
from pilotage.model import Pod
from pilotage.queue.report import QueueReport
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.sandbox.http.exchange import Request, ServerResponse
from pilotage.testing import node, pod
from tests.cycle.live_scheduler import live
from tests.queue.test_report import full_room, report


def test_a_row_for_each_pod_below_the_counts() -> None:
    lines = render(report(full_room())).splitlines()
    assert lines[0] == "2 active, 2 backoff, 1 unschedulable, 1 gated, 2 in flight"
    rows = [line.split() for line in lines[2:]]
    assert rows[0] == ["QUEUE", "POD", "PODS", "PRIORITY", "ATTEMPTS", "WAITING", "BACKOFF", "WAITS", "FOR", "MESSAGE"]
    assert rows[1] == ["in", "flight", "default/bound", "1", "9", "1", "0s", "-", "binding", "-"]
    assert rows[2] == ["in", "flight", "default/tried", "1", "9", "1", "0s", "-", "scheduling", "-"]
    assert rows[5] == ["backoff", "default/backing-off", "1", "0", "1", "0s", "2s", "Fit", "-"]
    assert rows[6] == ["error", "backoff", "default/failed", "1", "0", "1", "0s", "2s", "-", "-"]
    assert rows[7] == ["unschedulable", "default/stuck", "1", "8", "1", "0s", "-", "Claims,Fit", "-"]
    assert rows[8] == ["gated", "default/gated", "1", "0", "0", "0s", "-", "Gate", "held", "by", "Gate"]


def test_calls_on_their_way_are_shown_below_the_pods() -> None:
    calls = CallsReport(
        {"bind": LaneReport(0, 1, 64), "status": LaneReport(2, 0, 16), "event": LaneReport(0, 0, 8)},
        (
            CallReport("pod_binding", "uid-1", "bind", "in flight", 0.2, 1),
            CallReport("pod_status_patch", "uid-2", "status", "resting", 61.0, 3),
        ),
    )
    lines = render(SchedulerReport(0.0, {"active": 0}, calls=calls)).splitlines()
    assert lines[:3] == ["0 active", "", "API calls: 2 pending, 1 in flight (bind 0+1/64, status 2+0/16)"]
    assert [line.split() for line in lines[4:]] == [
        ["CALL", "OBJECT", "LANE", "STATE", "WAITING", "TRIES"],
        ["pod_binding", "uid-1", "bind", "in", "flight", "0s", "1"],
        ["pod_status_patch", "uid-2", "status", "resting", "61s", "3"],
    ]
    assert render(SchedulerReport(0.0, {"active": 0})) == "0 active"


def test_an_empty_queue_is_one_line() -> None:
    assert render(QueueReport(0.0, {"active": 0, "gated": 0})) == "0 active, 0 gated"


class Hold(Plugin, Permit):
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Wait:
        return Wait(60)


async def test_the_document_holds_the_report_and_names_the_plugin_that_holds_a_pod() -> None:
    async with live(Hold) as world:
        await world.put(node("n").cpu(4), *(pod(f"p{number}").requests(cpu=1) for number in range(3)))
        answer = queue_document(world.scheduler)

        def asked(**query: str) -> SchedulerReport:
            return msgspec.json.decode(answer(Request("GET", SANDBOX_QUEUE, query)).body, type=SchedulerReport)

        assert asked().counts["in_flight"] == 3 and len(asked(limit="1").in_flight) == 1
        assert [(one.held_by, one.node) for one in asked().in_flight] == [(("Hold",), "n")] * 3
        (row,) = asked(group="true").in_flight
        assert (row.count, row.held_by) == (3, ("Hold",))
        assert asked(namespace="elsewhere").in_flight == ()
        rows = [line.split() for line in render(asked(group="true")).splitlines()[2:]]
        assert rows[1][:3] == ["in", "flight", "default/p0"] and rows[1][3] == "3"
        assert rows[1][-3:] == ["permit:", "Hold", "-"]


async def test_a_sandbox_serves_the_queue_of_its_scheduler() -> None:
    clock, rng = SystemClock(), seeded(1)
    async with EmbeddedCluster.running(EmbeddedOptions(nodes=1, port=None, is_alive=False), clock, rng) as cluster:
        asked = Request("GET", SANDBOX_QUEUE)
        refused = cluster.server.dispatch(asked)
        assert isinstance(refused, ServerResponse) and refused.status == 404
        cluster.api.create("pods", "default", pod("giant").requests(cpu="900").json())
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(embedded_scheduler(cluster, clock, rng, SchedulerFlags().options()).run())
            for _ in range(500):
                await clock.sleep(0.01)
                answer = cluster.server.dispatch(asked)
                assert isinstance(answer, ServerResponse)
                if answer.status == 200 and msgspec.json.decode(answer.body, type=SchedulerReport).unschedulable:
                    break
            running.cancel()
        (giant,) = msgspec.json.decode(answer.body, type=SchedulerReport).unschedulable
        assert (giant.name, giant.rejectors) == ("giant", ("NodeResourcesFit",))
        assert giant.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_without_a_kubeconfig_there_is_nothing_to_ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["queue", "--kubeconfig", str(tmp_path / "none")]) == ExitCode.BAD_INPUT
    assert capsys.readouterr().err.startswith("error: ")


def test_the_longest_wait_is_a_duration() -> None:
    assert SchedulerFlags(max_wait="90s").options().max_wait_seconds == 90
    assert SchedulerFlags().options().max_wait_seconds == 300
    for wrong in ("soon", "0s", "-5m"):
        with pytest.raises(CommandError, match="--pod-max-in-unschedulable-pods-duration"):
            SchedulerFlags(max_wait=wrong).options()
    assert SchedulerFlags(max_wait="90s").arguments() == ["--pod-max-in-unschedulable-pods-duration", "90s"]
