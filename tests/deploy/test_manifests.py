"""What is shipped for clusters: it is well-formed, hardened, fits together, and the configuration in it is accepted."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.cli.main import cli
from pilotage.config.load import load_configuration

ROOT = Path(__file__).parents[2]
OVERLAYS = sorted(path.name for path in (ROOT / "deploy" / "overlays").iterdir())
KUBECTL = str(Path(sys.executable).parent / "kubectl")


def rendered(overlay: str) -> dict[str, dict[str, Any]]:
    """The objects of an overlay by kind and name, without the hash of generated names."""
    command = [KUBECTL, "kustomize", str(ROOT / "deploy" / "overlays" / overlay)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    objects = list(yaml.safe_load_all(done.stdout))
    return {f"{obj['kind']}/{re.sub('-[a-z0-9]{10}$', '', obj['metadata']['name'])}": obj for obj in objects}


@pytest.fixture(scope="module", params=OVERLAYS)
def overlay(request: pytest.FixtureRequest) -> tuple[str, dict[str, dict[str, Any]]]:
    return request.param, rendered(request.param)


def pod_spec(objects: dict[str, dict[str, Any]]) -> dict[str, Any]:
    spec: dict[str, Any] = objects["Deployment/pilotage"]["spec"]["template"]["spec"]
    return spec


def test_two_replicas_of_which_one_stays(overlay: tuple[str, dict[str, Any]]) -> None:
    _, objects = overlay
    assert objects["Deployment/pilotage"]["spec"]["replicas"] == 2
    budget = objects["PodDisruptionBudget/pilotage"]["spec"]
    labels = objects["Deployment/pilotage"]["spec"]["template"]["metadata"]["labels"]
    assert budget["minAvailable"] == 1 and budget["selector"]["matchLabels"].items() <= labels.items()


def test_containers_are_hardened(overlay: tuple[str, dict[str, Any]]) -> None:
    _, objects = overlay
    spec = pod_spec(objects)
    assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_memory_is_bounded_and_the_pages_are_not_for_every_pod_of_the_cluster(
    overlay: tuple[str, dict[str, Any]],
) -> None:
    _, objects = overlay
    (container,) = pod_spec(objects)["containers"]
    assert set(container["resources"]["limits"]) == {"memory"}
    policy = objects["NetworkPolicy/pilotage"]["spec"]
    labels = objects["Deployment/pilotage"]["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items() and policy["policyTypes"] == ["Ingress"]
    (rule,) = policy["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": "https"}]
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]


def test_flags_exist_and_what_they_name_is_mounted(overlay: tuple[str, dict[str, Any]]) -> None:
    _, objects = overlay
    (container,) = pod_spec(objects)["containers"]
    command, *flags = container["args"]
    known = {option for parameter in cli.get_command(None, command).params for option in parameter.opts}  # type: ignore[union-attr, arg-type]
    assert {flag.partition("=")[0] for flag in flags} <= known
    mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
    for path in (flag.partition("=")[2] for flag in flags if "=/" in flag):
        assert any(path == mount or path.startswith(f"{mount}/") for mount in mounts), path


def test_probes_ask_the_port_that_is_served(overlay: tuple[str, dict[str, Any]]) -> None:
    _, objects = overlay
    (container,) = pod_spec(objects)["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert f"--secure-port={ports['https']}" in container["args"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] == "https" and container[probe]["httpGet"]["scheme"] == "HTTPS"


def test_configuration_is_accepted_and_its_lease_is_the_one_that_the_role_allows(
    overlay: tuple[str, dict[str, Any]],
) -> None:
    name, objects = overlay
    configuration = load_configuration(ROOT / "deploy" / "overlays" / name / "scheduler.yaml").scheduler
    (names,) = [rule["resourceNames"] for rule in objects["Role/pilotage"]["rules"] if "resourceNames" in rule]
    assert names == [configuration.leader_election.resource_name]
    assert objects["Role/pilotage"]["metadata"]["namespace"] == configuration.leader_election.resource_namespace


def test_every_binding_names_a_role_and_an_account_that_are_there(overlay: tuple[str, dict[str, Any]]) -> None:
    _, objects = overlay
    for key, obj in objects.items():
        if not key.startswith(("RoleBinding/", "ClusterRoleBinding/")):
            continue
        role = f"{obj['roleRef']['kind']}/{obj['roleRef']['name']}"
        assert role in objects or role == "Role/extension-apiserver-authentication-reader"
        for subject in obj["subjects"]:
            account = objects[f"{subject['kind']}/{subject['name']}"]
            assert account["metadata"]["namespace"] == subject["namespace"]


def test_the_two_overlays_differ_in_whose_pods_they_take() -> None:
    takes = {
        name: load_configuration(ROOT / "deploy" / "overlays" / name / "scheduler.yaml").scheduler.profiles[0]
        for name in OVERLAYS
    }
    assert {name: profile.scheduler_name for name, profile in takes.items()} == {
        "replacement": "default-scheduler",
        "second-scheduler": "pilotage",
    }
