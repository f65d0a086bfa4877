"""A scheduler that is busy, stuck, killed or orphaned: what becomes of its lease, its health pages and its pods.

`ctypes.PyDLL` calls C without letting go of the interpreter's lock, as a regular expression that backtracks does.
Whoever locks the same mutex twice never comes back, whatever signals there are.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .processes import Background, SandboxProcess, eventually, free_port, status

pytestmark = pytest.mark.e2e

QUICK = ("--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms")
HOLDS_THE_LOCK = """
import ctypes
from pathlib import Path
from pilotage.api import Filter, Plugin

MUTEX = ctypes.create_string_buffer(64)
ctypes.PyDLL(None).pthread_mutex_lock(MUTEX)

class Holds(Plugin, Filter):
    def filter(self, state, pod, node):
        if pod.name.startswith("long"):
            Path(__file__).with_suffix(".begun").touch()
            ctypes.PyDLL(None).{call}
"""
LOCK_SECONDS = 7
"""More than twice the lease of `QUICK`."""


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxProcess]:
    running = SandboxProcess(tmp_path / "kubeconfig", "--nodes", "1", "--no-scheduler")
    yield running
    running.end()


class Scheduler(Background):
    def __init__(self, sandbox: SandboxProcess, *arguments: str | Path) -> None:
        self.pages = free_port()
        ports = ("--secure-port=0", f"--insecure-port={self.pages}")
        super().__init__("run", "--kubeconfig", sandbox.kubeconfig, *QUICK, *ports, *arguments)
        eventually("it is ready", lambda: status(self.pages, "/readyz") == 200)

    def has_ended(self) -> bool:
        return self.process.poll() is not None


def holding(path: Path, seconds: int | None = None) -> tuple[str, Path]:
    """A plugin that holds the lock for so long, or for ever."""
    file = path / "holds.py"
    file.write_text(HOLDS_THE_LOCK.format(call="pthread_mutex_lock(MUTEX)" if seconds is None else f"sleep({seconds})"))
    return "--plugin", file


def lease(sandbox: SandboxProcess) -> dict[str, Any]:
    found = sandbox.get("leases", "-n", "kube-system")
    spec: dict[str, Any] = found[0]["spec"] if found else {}
    return spec


def holder(sandbox: SandboxProcess) -> str:
    return lease(sandbox).get("holderIdentity") or ""


def create(sandbox: SandboxProcess, name: str) -> None:
    done = sandbox.kubectl("run", name, "--image=x", "--restart=Never")
    assert done.returncode == 0, done.stderr


def node_of(sandbox: SandboxProcess, name: str) -> str:
    return next((pod["spec"].get("nodeName", "") for pod in sandbox.get("pods") if pod["metadata"]["name"] == name), "")


def is_running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_a_cycle_that_holds_the_interpreter_costs_neither_the_lease_nor_the_health_pages(
    sandbox: SandboxProcess, tmp_path: Path
) -> None:
    scheduler = Scheduler(sandbox, *holding(tmp_path, LOCK_SECONDS))
    eventually("it leads", lambda: holder(sandbox) != "")
    before, workers = holder(sandbox), scheduler.workers()
    create(sandbox, "long")
    create(sandbox, "after")
    healths, begin = [], time.monotonic()
    while time.monotonic() < begin + LOCK_SECONDS - 1:
        healths.append(status(scheduler.pages, "/healthz"))
        time.sleep(0.1)
    assert node_of(sandbox, "long") == "", "it is still being scheduled"
    assert set(healths) == {200} and len(healths) > LOCK_SECONDS, "the pages answered all the time"
    eventually("both are bound", lambda: bool(node_of(sandbox, "long") and node_of(sandbox, "after")))
    assert holder(sandbox) == before and not lease(sandbox).get("leaseTransitions")
    assert scheduler.workers() == workers, "by the same process"
    assert scheduler.end() == 0
    assert holder(sandbox) == "", "the lease was given back"


def test_a_scheduler_that_never_comes_back_is_killed_its_stack_logged_and_its_pod_marked(
    sandbox: SandboxProcess, tmp_path: Path
) -> None:
    scheduler = Scheduler(sandbox, *holding(tmp_path), "--max-silence=2s")
    eventually("it leads", lambda: holder(sandbox) != "")
    create(sandbox, "long")
    eventually("it has ended", scheduler.has_ended)
    assert scheduler.end() == 1
    assert "no sign of life for 2 s and is killed: pod=default/long" in scheduler.stderr
    assert "holds.py" in scheduler.stderr and "in filter" in scheduler.stderr, "the stack"
    assert holder(sandbox) == "", "whoever is next need not wait for the lease"
    (pod,) = sandbox.get("pods")
    (condition,) = [c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled"]
    assert (condition["status"], condition["reason"]) == ("False", "SchedulingBudgetExceeded")
    assert condition["message"].startswith("scheduling this pod was ended: ")


def test_the_standby_takes_over_from_a_stuck_leader_that_writes_nothing_more(
    sandbox: SandboxProcess, tmp_path: Path
) -> None:
    first = Scheduler(sandbox, *holding(tmp_path), "--max-silence=2s")
    eventually("the first leads", lambda: holder(sandbox) != "")
    second = Scheduler(sandbox)
    create(sandbox, "long")
    create(sandbox, "other")
    eventually("both are bound", lambda: bool(node_of(sandbox, "long") and node_of(sandbox, "other")))
    eventually("the first has ended", first.has_ended)
    assert first.end() == 1 and second.process.poll() is None
    scheduled = [event for event in sandbox.get("events") if event["reason"] == "Scheduled"]
    assert len(scheduled) == 2
    assert second.end() == 0


def test_no_one_renews_the_lease_of_a_scheduler_that_was_killed(sandbox: SandboxProcess) -> None:
    scheduler = Scheduler(sandbox)
    eventually("it leads", lambda: holder(sandbox) != "")
    (worker,) = scheduler.workers()
    os.kill(worker, signal.SIGKILL)
    eventually("the supervisor has ended, too", scheduler.has_ended)
    assert scheduler.end() == 1 and "the scheduler was ended by signal 9" in scheduler.stderr
    assert holder(sandbox) == ""


def test_no_one_schedules_without_a_supervisor(sandbox: SandboxProcess) -> None:
    scheduler = Scheduler(sandbox)
    eventually("it leads", lambda: holder(sandbox) != "")
    (worker,) = scheduler.workers()
    scheduler.end(signal.SIGKILL)
    eventually("the scheduler has ended, too", lambda: not is_running(worker))


def test_ctrl_c_reaches_both_and_the_end_is_an_orderly_one(sandbox: SandboxProcess) -> None:
    scheduler = Scheduler(sandbox)
    eventually("it leads", lambda: holder(sandbox) != "")
    scheduler.signal_all(signal.SIGINT)
    eventually("it has ended", scheduler.has_ended)
    assert scheduler.end() == 0 and holder(sandbox) == ""
    assert "Traceback" not in scheduler.stderr


def test_a_stuck_scheduler_does_not_keep_the_command_from_ending(sandbox: SandboxProcess, tmp_path: Path) -> None:
    scheduler = Scheduler(sandbox, *holding(tmp_path))
    eventually("it leads", lambda: holder(sandbox) != "")
    create(sandbox, "long")
    eventually("it is stuck", (tmp_path / "holds.begun").exists)
    assert scheduler.end() == 1
    assert "no sign of life" in scheduler.stderr and holder(sandbox) == ""
