"""Helm 4 with its defaults: it applies on the server and waits for what it has installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.processes import KUBECTL

from .conftest import BUILD, Sandbox, build, needs

VERSION = "v4.3.1"


@pytest.fixture
def helm() -> Path:
    needs("go")
    program = BUILD / "bin" / f"helm-{VERSION}"
    if not program.exists():
        (BUILD / "bin").mkdir(parents=True, exist_ok=True)
        build(["go", "install", f"helm.sh/helm/v4/cmd/helm@{VERSION}"], BUILD, GOBIN=str(BUILD / "bin"))
        (BUILD / "bin" / "helm").rename(program)
    return program


def test_a_chart_is_installed_upgraded_rolled_back_and_removed(helm: Path, sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.run([helm, "create", "web"], tmp_path)
    chart = tmp_path / "web"
    sandbox.run([helm, "install", "web", chart, "--wait", "--timeout", "60s"])
    sandbox.run([helm, "upgrade", "web", chart, "--set", "replicaCount=3", "--wait", "--timeout", "60s"])
    count = [KUBECTL, "get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}"]
    assert sandbox.run(count) == "3"
    owners = [KUBECTL, "get", "deployment", "web", "-o", "jsonpath={.metadata.managedFields[*].operation}"]
    assert "Apply" in sandbox.run(owners).split()
    sandbox.run([helm, "rollback", "web", "1", "--wait", "--timeout", "60s"])
    assert sandbox.run(count) == "1"
    sandbox.run([helm, "uninstall", "web", "--wait", "--timeout", "60s"])
    assert sandbox.run([KUBECTL, "get", "deployments", "-o", "name"]) == ""


def test_a_field_that_somebody_else_has_set_is_a_conflict(helm: Path, sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.run([helm, "create", "web"], tmp_path)
    sandbox.run([helm, "install", "web", tmp_path / "web"])
    sandbox.run([KUBECTL, "scale", "deployment", "web", "--replicas=2"])
    upgraded = [helm, "upgrade", "web", tmp_path / "web", "--set", "replicaCount=4"]
    failed = sandbox.attempt(upgraded)
    assert failed.returncode != 0 and 'conflict with "kubectl" with subresource "scale"' in failed.stderr, failed
    sandbox.run([*upgraded, "--force-conflicts"])
