"""kubectl, as it is installed with us: what once failed against the sandbox."""

from __future__ import annotations

import json
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.e2e.processes import KUBECTL, environment

from .conftest import Sandbox

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, labels: {app: x}}\ndata: {key: '%s'}\n"


def test_roles_and_their_bindings_are_created(sandbox: Sandbox) -> None:
    for command in (
        ("create", "role", "r", "--verb=get", "--resource=pods"),
        ("create", "clusterrole", "r", "--verb=get", "--resource=pods"),
        ("create", "rolebinding", "b", "--role=r", "--user=u"),
        ("create", "clusterrolebinding", "b", "--clusterrole=r", "--user=u"),
    ):
        assert "created" in sandbox.run([KUBECTL, *command])


def test_events_are_sorted(sandbox: Sandbox) -> None:
    sandbox.run([KUBECTL, "run", "p", "--image=i"])
    sandbox.run([KUBECTL, "wait", "--for=condition=Ready", "pod/p", "--timeout=60s"])
    for field in (".lastTimestamp", ".metadata.creationTimestamp"):
        assert "Scheduled" in sandbox.run([KUBECTL, "get", "events", f"--sort-by={field}"])


def test_a_command_is_carried_out_in_a_container(sandbox: Sandbox) -> None:
    sandbox.run([KUBECTL, "run", "p", "--image=i", "--env=A=1", "--annotations=sandbox.pilotage.dev/logs=ready"])
    sandbox.run([KUBECTL, "wait", "--for=condition=Ready", "pod/p", "--timeout=60s"])
    assert sandbox.run([KUBECTL, "exec", "p", "--", "sh", "-c", "echo got $A"]) == "got 1\n"
    failed = sandbox.attempt([KUBECTL, "exec", "p", "--", "sh", "-c", "echo out; exit 7"])
    assert (failed.returncode, failed.stdout) == (7, "out\n")
    unknown = sandbox.attempt([KUBECTL, "exec", "p", "--", "nginx", "-v"])
    assert unknown.returncode == 127 and "nginx cannot be run in it" in unknown.stderr
    assert sandbox.run([KUBECTL, "logs", "-f", "p"]) == "ready\n"


def test_a_pod_is_debugged_by_an_ephemeral_container(sandbox: Sandbox) -> None:
    sandbox.run([KUBECTL, "run", "p", "--image=i"])
    sandbox.run([KUBECTL, "wait", "--for=condition=Ready", "pod/p", "--timeout=60s"])
    sandbox.run([KUBECTL, "debug", "p", "--image=busybox", "-c", "look", "--", "sleep", "infinity"])
    running = "--for=jsonpath={.status.ephemeralContainerStatuses[0].state.running}"
    sandbox.run([KUBECTL, "wait", running, "pod/p", "--timeout=60s"])
    assert sandbox.run([KUBECTL, "exec", "p", "-c", "look", "--", "echo", "here"]) == "here\n"


def test_what_is_no_longer_in_a_manifest_is_pruned(sandbox: Sandbox) -> None:
    prune = [KUBECTL, "apply", "-f", "-", "-l", "app=x", "--prune", "--prune-allowlist=core/v1/ConfigMap"]
    sandbox.run(prune, stdin=f"{MAP % ('a', 1)}---\n{MAP % ('b', 1)}")
    assert "configmap/a pruned" in sandbox.run(prune, stdin=MAP % ("b", 1))


def test_apply_goes_from_the_client_to_the_server(sandbox: Sandbox) -> None:
    sandbox.run([KUBECTL, "apply", "-f", "-"], stdin=MAP % ("a", 1))
    differs = sandbox.attempt([KUBECTL, "diff", "--server-side", "-f", "-"], stdin=MAP % ("a", 2))
    assert differs.returncode == 1 and "+  key: " in differs.stdout, differs
    told = sandbox.run([KUBECTL, "apply", "--server-side", "-f", "-"], stdin=MAP % ("a", 2))
    assert told == "configmap/a serverside-applied\n"
    sandbox.run([KUBECTL, "patch", "configmap", "a", "--type=merge", "-p", '{"data":{"key":"3"}}'])
    failed = sandbox.attempt([KUBECTL, "apply", "--server-side", "-f", "-"], stdin=MAP % ("a", 4))
    assert 'Apply failed with 1 conflict: conflict with "kubectl-patch" using v1: .data.key' in failed.stderr
    sandbox.run([KUBECTL, "apply", "--server-side", "--force-conflicts", "-f", "-"], stdin=MAP % ("a", 4))
    found = json.loads(sandbox.run([KUBECTL, "get", "configmap", "a", "-o", "json", "--show-managed-fields"]))
    assert found["data"] == {"key": "4"}
    assert {entry["manager"] for entry in found["metadata"]["managedFields"]} >= {"kubectl"}


@pytest.mark.parametrize("path", ["/api/v1/namespaces", "/version"])
def test_the_proxy_leads_to_the_server(sandbox: Sandbox, path: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    settings = environment(KUBECONFIG=str(sandbox.kubeconfig))
    with subprocess.Popen([KUBECTL, "proxy", f"--port={port}"], stdout=subprocess.PIPE, env=settings, text=True) as one:
        assert one.stdout is not None
        try:
            assert "Starting to serve" in one.stdout.readline()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
                assert answer.status == 200
        finally:
            one.terminate()


def test_a_watch_of_what_is_applied_on_the_server(sandbox: Sandbox, tmp_path: Path) -> None:
    manifest = tmp_path / "map.yaml"
    manifest.write_text(MAP % ("a", 1))
    sandbox.run([KUBECTL, "apply", "--server-side", "-f", manifest])
    settings = environment(KUBECONFIG=str(sandbox.kubeconfig))
    command = [KUBECTL, "get", "configmap", "a", "--watch", "-o", "jsonpath={.data.key}{'\\n'}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=settings, text=True) as one:
        assert one.stdout is not None
        try:
            assert one.stdout.readline() == "1\n"
            manifest.write_text(MAP % ("a", 2))
            sandbox.run([KUBECTL, "apply", "--server-side", "-f", manifest])
            assert one.stdout.readline() == "2\n"
        finally:
            one.terminate()
