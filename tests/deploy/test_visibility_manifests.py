"""The component for workload queueing on top of an overlay: the API service leads to the pods of the deployment."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.jobs.visibility_discovery import GROUP, VERSIONS, resource_list

from .test_manifests import KUBECTL, OVERLAYS, ROOT, pod_spec

Objects = dict[str, dict[str, Any]]


@pytest.fixture(params=OVERLAYS)
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    (tmp_path / "cluster").mkdir()
    content = {
        "resources": [f"../deploy/overlays/{request.param}"],
        "components": ["../deploy/workload-queueing"],
    }
    (tmp_path / "cluster" / "kustomization.yaml").write_text(yaml.safe_dump(content))
    command = [KUBECTL, "kustomize", str(tmp_path / "cluster")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return {f"{obj['kind']}/{obj['metadata']['name']}": obj for obj in yaml.safe_load_all(done.stdout)}


def test_every_version_has_an_api_service_that_leads_to_the_pods(objects: Objects) -> None:
    for version in VERSIONS:
        spec = objects[f"APIService/{version}.{GROUP}"]["spec"]
        assert (spec["group"], spec["version"]) == (GROUP, version)
        service = objects[f"Service/{spec['service']['name']}"]
        assert service["metadata"]["namespace"] == spec["service"]["namespace"]
        labels = objects["Deployment/pilotage"]["spec"]["template"]["metadata"]["labels"]
        assert service["spec"]["selector"].items() <= labels.items()
        (port,) = service["spec"]["ports"]
        (container,) = pod_spec(objects)["containers"]
        assert port["port"] == 443 and port["targetPort"] in [one["name"] for one in container["ports"]]
        assert service["spec"].get("clusterIP") != "None", "the API server does not route to headless services"


def test_the_stored_kinds_and_the_newer_version_are_preferred(objects: Objects) -> None:
    newer, older = (objects[f"APIService/{version}.{GROUP}"]["spec"] for version in VERSIONS)
    assert newer["versionPriority"] > older["versionPriority"]
    assert max(newer["groupPriorityMinimum"], older["groupPriorityMinimum"]) < 1000, "that of custom resources"


def test_roles_grant_what_is_served(objects: Objects) -> None:
    served = {one["name"] for one in resource_list("v1beta2")["resources"] if one["verbs"]}
    # Ours alone, for explain: served beside Kueue's API, and not listed with it.
    served.add("configurations")
    names = ("pilotage-cluster-queue-visibility", "pilotage-local-queue-visibility")
    rules = [rule for name in names for rule in objects[f"ClusterRole/{name}"]["rules"]]
    assert {resource for rule in rules for resource in rule["resources"]} == served
    assert all(rule["apiGroups"] == [GROUP] and rule["verbs"] == ["get"] for rule in rules)
    assert "--workload-queueing" in pod_spec(objects)["containers"][0]["args"]


def test_the_api_server_is_let_in_from_wherever_it_comes(objects: Objects) -> None:
    assert objects["NetworkPolicy/pilotage"]["spec"]["ingress"] == [{"ports": [{"protocol": "TCP", "port": "https"}]}]
