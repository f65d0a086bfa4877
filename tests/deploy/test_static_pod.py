"""The manifest for the kubelet of a control-plane node, beside the Deployment that it stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.cli.main import cli

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture(scope="module")
def pod() -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load((DEPLOY / "static-pod" / "pilotage.yaml").read_text())
    return manifest


@pytest.fixture(scope="module")
def container(pod: dict[str, Any]) -> dict[str, Any]:
    (only,) = pod["spec"]["containers"]
    assert isinstance(only, dict)
    return only


def test_nothing_is_needed_from_the_api_server(pod: dict[str, Any]) -> None:
    """The kubelet refuses static pods that name other objects, and there may be no API server yet."""
    assert pod["kind"] == "Pod" and "serviceAccountName" not in pod["spec"]
    assert {kind for volume in pod["spec"]["volumes"] for kind in volume if kind != "name"} == {"hostPath", "emptyDir"}


def test_flags_exist_and_what_they_name_is_mounted(container: dict[str, Any]) -> None:
    command, *flags = container["args"]
    known = {option for parameter in cli.get_command(None, command).params for option in parameter.opts}  # type: ignore[union-attr, arg-type]
    assert {flag.partition("=")[0] for flag in flags} <= known
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {flag.partition("=")[2] for flag in flags if "=/" in flag} <= mounts


def test_probes_ask_where_it_listens(container: dict[str, Any]) -> None:
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert f"--bind-address={asked['host']}" in container["args"]
        assert f"--secure-port={asked['port']}" in container["args"]


def test_it_is_as_patient_and_as_hardened_as_the_deployment(pod: dict[str, Any], container: dict[str, Any]) -> None:
    template = yaml.safe_load((DEPLOY / "base" / "deployment.yaml").read_text())["spec"]["template"]["spec"]
    (theirs,) = template["containers"]
    assert container["image"] == theirs["image"] and container["resources"] == theirs["resources"]
    assert pod["spec"]["terminationGracePeriodSeconds"] == template["terminationGracePeriodSeconds"]
    assert container["securityContext"] == theirs["securityContext"] | {"runAsUser": 0}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe] | {"httpGet": 0} == theirs[probe] | {"httpGet": 0}
        assert container[probe]["httpGet"]["path"] == theirs[probe]["httpGet"]["path"]
