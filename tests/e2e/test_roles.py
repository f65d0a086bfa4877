"""Roles as kubectl's users meet them, and the record of who asked for what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotage.cli import main
from tests.e2e.processes import SandboxProcess

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("roles")


@pytest.fixture(scope="module")
def sandbox(folder: Path) -> Iterator[SandboxProcess]:
    audit = str(folder / "audit.jsonl")
    flags = ("--nodes", "1", "--rbac", "--user", "bob:developers", "--audit-log", audit)
    running = SandboxProcess(folder / "kubeconfig", *flags)
    yield running
    running.end()


def test_a_user_may_do_what_is_bound_to_a_group_of_theirs(sandbox: SandboxProcess) -> None:
    refused = sandbox.kubectl("--context", "bob", "get", "pods")
    assert refused.returncode == 1
    assert 'User "bob" cannot list resource "pods" in API group "" in the namespace "default"' in refused.stderr
    assert sandbox.kubectl("--context", "bob", "auth", "can-i", "create", "deployments").stdout == "no\n"
    sandbox.kubectl("create", "rolebinding", "dev", "--clusterrole=edit", "--group=developers")
    assert sandbox.kubectl("--context", "bob", "auth", "can-i", "create", "deployments").stdout == "yes\n"
    assert sandbox.kubectl("--context", "bob", "run", "web", "--image=nginx").stdout == "pod/web created\n"
    assert sandbox.kubectl("--context", "bob", "get", "nodes").returncode == 1
    whoami = json.loads(sandbox.kubectl("--context", "bob", "auth", "whoami", "-o", "json").stdout)
    assert whoami["status"]["userInfo"] == {"username": "bob", "groups": ["developers", "system:authenticated"]}


def test_the_administrator_acts_as_others_and_a_service_account_by_its_token(sandbox: SandboxProcess) -> None:
    assert sandbox.kubectl("get", "pods", "--as", "ann").returncode == 1
    sandbox.kubectl("create", "rolebinding", "robots", "--clusterrole=view", "--serviceaccount=default:default")
    assert sandbox.kubectl("get", "pods", "--as", "system:serviceaccount:default:default").returncode == 0
    token = sandbox.kubectl("create", "token", "default").stdout.strip()
    sandbox.kubectl("config", "set-credentials", "robot", f"--token={token}")
    sandbox.kubectl("config", "set-context", "robot", "--cluster=pilotage-sandbox", "--user=robot")
    assert sandbox.kubectl("--context", "robot", "get", "pods").returncode == 0
    assert "system:serviceaccount:default:default" in sandbox.kubectl("--context", "robot", "get", "secrets").stderr


def test_every_request_is_recorded_and_no_token_is(sandbox: SandboxProcess, folder: Path) -> None:
    sandbox.kubectl("get", "pods", "--as", "eve")
    lines = [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]
    last = next(line for line in reversed(lines) if line.get("objectRef", {}).get("resource") == "pods")
    assert last["user"]["username"] == "eve" and last["responseStatus"]["code"] == 403
    kubeconfig = (folder / "kubeconfig").read_text()
    tokens = [line.split("token: ")[1].strip() for line in kubeconfig.splitlines() if "token: " in line]
    assert tokens and not any(token in (folder / "audit.jsonl").read_text() for token in tokens)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--user", "bob"], "--user needs --rbac"),
        (["--rbac", "--insecure-http", "--user", "bob"], "does not go with --insecure-http"),
        (["--rbac", "--user", ":developers"], "a name of its own is needed"),
        (["--rbac", "--user", "bob", "--user", "bob:x"], "a name of its own is needed"),
    ],
)
def test_users_that_cannot_be_are_rejected_before_anything_starts(
    flags: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.call(["sandbox", *flags]) == 2
    assert says in capsys.readouterr().err
