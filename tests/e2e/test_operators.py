"""What an operator sees of `pilotage run`: its log, its dump, its configuration, and who holds a pod."""

from __future__ import annotations

import json
import signal
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kube.little_proxy import LittleProxy

from .processes import Background, SandboxProcess, eventually, free_port, pilotage, status

pytestmark = pytest.mark.e2e

HOLD = """
from pilotage.api import Permit, Plugin, Wait

class Hold(Plugin, Permit):
    def permit(self, state, pod, node_name):
        return Wait(600) if pod.name.startswith("held") else None
"""


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxProcess]:
    running = SandboxProcess(tmp_path / "kubeconfig", "--nodes", "3", "--no-scheduler")
    yield running
    running.end()


def objects(scheduler: Background) -> list[dict[str, Any]]:
    return [json.loads(line) for line in scheduler.stderr.splitlines()]


def is_told(sandbox: SandboxProcess, name: str) -> bool:
    """Has the scheduler said something about the pod?"""
    conditions = sandbox.get("pods", f"--field-selector=metadata.name={name}")[0]["status"].get("conditions", [])
    return any(one["type"] == "PodScheduled" for one in conditions)


def giant(sandbox: SandboxProcess, *names: str) -> None:
    for name in names:
        limits = '{"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "500"}}}]}'
        sandbox.kubectl("run", name, "--image=x", "--overrides", f'{{"spec": {limits}}}')


def test_attempts_moves_and_hints_are_objects_with_keys(sandbox: SandboxProcess) -> None:
    run = ("run", "--kubeconfig", sandbox.kubeconfig, "--secure-port=0", "--logging-format=json", "-v=5")
    scheduler = Background(*run)
    giant(sandbox, "giant")
    sandbox.kubectl("run", "small", "--image=x")
    eventually("both were tried", lambda: is_told(sandbox, "giant") and is_told(sandbox, "small"))
    sandbox.kubectl("delete", "pod", "small", "--force")
    sandbox.kubectl("label", "node", "--all", "changed=yes")
    eventually("the node has gone", lambda: sandbox.kubectl("delete", "node", "-l", "changed=yes").returncode == 0)
    assert scheduler.end() == 0
    lines = objects(scheduler)
    placed, bound = (next(one for one in lines if one["msg"] == msg) for msg in ("attempt found a node", "pod bound"))
    assert (bound["pod"], bound["node"], bound["v"]) == ("default/small", placed["node"], 2)
    failed = next(one for one in lines if one["msg"] == "attempt failed")
    assert (failed["pod"], failed["plugins"], failed["reason"]) == (
        "default/giant",
        "NodeResourcesFit",
        "Unschedulable",
    )
    moves = [(one["pod"], one["queue"]) for one in lines if one["msg"] == "pod moved" and one["v"] == 4]
    assert ("default/giant", "unschedulable") in moves
    assert {one["v"] for one in lines if one["msg"] == "hint answered"} == {5}


@pytest.mark.parametrize("alone", [False, True], ids=["supervised", "alone"])
def test_sigusr2_dumps_queue_and_cache_and_nothing_ends(sandbox: SandboxProcess, alone: bool) -> None:
    flags = ["--leader-elect=false"] if alone else []
    scheduler = Background("run", "--kubeconfig", sandbox.kubeconfig, "--secure-port=0", *flags)
    giant(sandbox, "giant")
    eventually("it was tried", lambda: is_told(sandbox, "giant"))
    assert len(scheduler.workers()) == (0 if alone else 1)
    scheduler.process.send_signal(signal.SIGUSR2)
    sandbox.kubectl("run", "small", "--image=x")
    eventually("it goes on", lambda: is_told(sandbox, "small"))
    assert scheduler.end() == 0
    assert "dump of the scheduling queue: active=0 backoff=0 unschedulable=1" in scheduler.stderr
    assert "queued pod: pod=default/giant queue=unschedulable" in scheduler.stderr
    assert scheduler.stderr.count("cached node: node=") == 3


def test_a_signal_that_comes_too_early_does_no_harm(sandbox: SandboxProcess) -> None:
    """As soon as the command line was read there may be somebody who asks."""
    scheduler = Background("run", "--kubeconfig", sandbox.kubeconfig, "--secure-port=0")
    eventually("it has a child", lambda: bool(scheduler.process.poll() is not None or scheduler.workers()))
    scheduler.signal_all(signal.SIGUSR2)
    sandbox.kubectl("run", "small", "--image=x")
    eventually("it runs", lambda: sandbox.pods_are("Running", 1))
    assert scheduler.end() == 0


def test_the_whole_configuration_is_shown_written_and_read_back(sandbox: SandboxProcess, tmp_path: Path) -> None:
    file, again = tmp_path / "written.yaml", tmp_path / "again.yaml"
    (tmp_path / "hold.py").write_text(textwrap.dedent(HOLD))
    chosen = ("--plugin", tmp_path / "hold.py", "--feature-gates", "SchedulerPopFromBackoffQ=false")
    assert pilotage("run", *chosen, "--write-config-to", file).returncode == 0
    assert pilotage("run", "--config", file, "--write-config-to", again).returncode == 0
    assert file.read_text() == again.read_text()
    port = free_port()
    run = ("run", "--kubeconfig", sandbox.kubeconfig, "--config", file, "--secure-port=0", f"--insecure-port={port}")
    scheduler = Background(*run)
    eventually("it is ready", lambda: status(port, "/readyz") == 200)
    shown = json.loads(sandbox.kubectl("--server", f"http://127.0.0.1:{port}", "get", "--raw", "/configz").stdout)
    component, additions = yaml.safe_load_all(file.read_text())
    assert shown["pilotage"] == additions and additions["featureGates"]["SchedulerPopFromBackoffQ"] is False
    assert shown["componentconfig"]["profiles"] == component["profiles"]
    assert {"name": "Hold"} in component["profiles"][0]["plugins"]["multiPoint"]["enabled"]
    assert scheduler.end() == 0


def test_queue_and_explain_name_who_holds_a_pod_and_count_equal_ones(sandbox: SandboxProcess, tmp_path: Path) -> None:
    (tmp_path / "hold.py").write_text(textwrap.dedent(HOLD))
    port = free_port()
    address = ("--scheduler", f"http://127.0.0.1:{port}")
    run = ("run", "--kubeconfig", sandbox.kubeconfig, "--secure-port=0", f"--insecure-port={port}")
    scheduler = Background(*run, "--plugin", tmp_path / "hold.py")
    sandbox.kubectl("create", "deployment", "web", "--image=x", "--replicas=0")
    requests = (
        '[{"op": "add", "path": "/spec/template/spec/containers/0/resources", "value": {"requests": {"cpu": 500}}}]'
    )
    sandbox.kubectl("patch", "deployment", "web", "--type=json", "-p", requests)
    sandbox.kubectl("scale", "deployment", "web", "--replicas=4")
    giant(sandbox, "other")
    sandbox.kubectl("run", "held", "--image=x")
    eventually("all were tried", lambda: "5 unschedulable" in pilotage("queue", *address).stdout)
    eventually("one is held", lambda: "permit: Hold" in pilotage("queue", *address).stdout)
    rows = pilotage("queue", *address).stdout.splitlines()
    assert [line.split()[2] for line in rows if line.startswith("unschedulable")] in (["4", "1"], ["1", "4"])
    each = pilotage("queue", "--all", *address).stdout
    assert sum(line.startswith("unschedulable") for line in each.splitlines()) == 5
    told = pilotage("explain", "deploy/web", *address)
    assert told.stdout.splitlines()[1] == (
        "4 other pods wait for the same reason (NodeResourcesFit), 3 of them of deploy/web."
    )
    held = pilotage("explain", "held", *address)
    assert held.returncode == 0 and "is held there by plugin Hold (Permit)." in held.stdout.splitlines()[0]
    alone = pilotage("explain", "deploy/web", "--kubeconfig", sandbox.kubeconfig)
    assert alone.stdout.splitlines()[1] == "3 other pods of deploy/web wait for the same reason."
    assert scheduler.end() == 0


def test_what_has_no_effect_is_said_to_operator_and_owner(sandbox: SandboxProcess) -> None:
    gates = "--feature-gates=DRAListTypeAttributes=true,SchedulerPopFromBackoffQ=false,GenericWorkload=false"
    scheduler = Background("run", "--kubeconfig", sandbox.kubeconfig, "--secure-port=0", gates)
    group = '{"spec": {"schedulingGroup": {"podGroupName": "g"}}}'
    sandbox.kubectl("run", "member", "--image=x", "--overrides", group)
    eventually("it runs", lambda: sandbox.pods_are("Running", 1))
    events = sandbox.kubectl("get", "events", "--field-selector=reason=FieldNotServed").stdout
    assert 'spec.schedulingGroup has no effect: no plugin of profile "default-scheduler" serves it' in events
    told = pilotage("explain", "member", "--kubeconfig", sandbox.kubeconfig, "--feature-gates=GenericWorkload=false")
    assert "Not served:\n  spec.schedulingGroup" in told.stdout
    assert scheduler.end() == 0
    assert (
        "feature gate DRAListTypeAttributes=true has no effect: Pilotage works as if it were false" in scheduler.stderr
    )
    assert "SchedulerPopFromBackoffQ" not in scheduler.stderr
    assert "field=spec.schedulingGroup profile=default-scheduler pods=1 pod=default/member" in scheduler.stderr


def test_it_works_through_a_proxy_and_shows_no_password(tmp_path: Path) -> None:
    sandbox = SandboxProcess(tmp_path / "kubeconfig", "--nodes", "1", "--no-scheduler", "--tls")
    with LittleProxy(user="me:Tr0ub4dor").in_a_thread() as proxy:
        content = yaml.safe_load(sandbox.kubeconfig.read_text())
        cluster = content["clusters"][0]["cluster"]
        cluster["proxy-url"] = proxy.url
        file = tmp_path / "proxied"
        file.write_text(yaml.safe_dump(content))
        file.chmod(0o600)
        scheduler = Background("run", "--kubeconfig", file, "--secure-port=0", "-v=5")
        sandbox.kubectl("run", "small", "--image=x")
        eventually("it runs", lambda: sandbox.pods_are("Running", 1))
        server = cluster["server"].removeprefix("https://").partition("/")[0]
        assert set(proxy.asked) == {f"CONNECT {server}"}
    gone = pilotage("explain", "small", "--kubeconfig", file)
    assert gone.returncode == 3 and f"through the proxy http://127.0.0.1:{proxy.port}: no connection" in gone.stderr
    assert scheduler.end() == 0
    assert "Tr0ub4dor" not in scheduler.stderr + gone.stderr
    sandbox.end()
