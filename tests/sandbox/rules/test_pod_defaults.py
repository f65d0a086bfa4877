"""Defaults of pods and templates: what a client leaves out and every reader relies on."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pilotage.sandbox.rules.defaults import apply_defaults
from pilotage.sandbox.rules.pod_defaults import merge_label_keys

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def defaulted(spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec, **more}
    apply_defaults("Pod", pod)
    return pod


def container(**fields: Any) -> dict[str, Any]:
    return {"name": "c", "image": "i:1", **fields}


def test_pod_gets_the_fields_that_kubectl_shows() -> None:
    spec = defaulted({"containers": [container()]})["spec"]
    assert spec == {
        "containers": [
            {
                "name": "c",
                "image": "i:1",
                "imagePullPolicy": "IfNotPresent",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "resources": {},
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
        "securityContext": {},
    }


def test_what_the_client_says_stays() -> None:
    given = {
        "containers": [container(imagePullPolicy="Never", terminationMessagePolicy="FallbackToLogsOnError")],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "dnsPolicy": "None",
        "schedulerName": "mine",
        "enableServiceLinks": False,
        "securityContext": {"runAsUser": 1},
    }
    spec = defaulted(copy.deepcopy(given))["spec"]
    assert {key: spec[key] for key in given if key != "containers"} == {
        key: value for key, value in given.items() if key != "containers"
    }
    assert spec["containers"][0]["imagePullPolicy"] == "Never"
    assert spec["containers"][0]["terminationMessagePolicy"] == "FallbackToLogsOnError"


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.25", "IfNotPresent"),
        ("registry:5000/nginx", "Always"),
        ("registry:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:abc", "IfNotPresent"),
    ],
)
def test_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    spec = defaulted({"containers": [container(image=image)]})["spec"]
    assert spec["containers"][0]["imagePullPolicy"] == policy


@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_missing_requests_come_from_limits(field: str) -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    spec = defaulted({"containers": [container()], field: [container(resources=resources)]})["spec"]
    assert spec[field][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_template_keeps_its_requests_as_written() -> None:
    template = {"spec": {"containers": [container(resources={"limits": {"cpu": "1"}})]}}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": template}}
    apply_defaults("Deployment", deployment)
    assert template["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}}
    assert template["spec"]["restartPolicy"] == "Always"


def test_pod_level_requests_are_the_effective_requests_of_the_containers_else_the_limit() -> None:
    spec = defaulted(
        {
            "containers": [container(resources={"requests": {"cpu": "100m"}})],
            "initContainers": [
                container(name="side", restartPolicy="Always", resources={"requests": {"cpu": "50m"}}),
                container(name="step", resources={"requests": {"cpu": "300m"}}),
            ],
            "resources": {"limits": {"cpu": "2", "memory": "1Gi", "example.com/gpu": "1"}},
        }
    )["spec"]
    assert spec["resources"]["requests"] == {"cpu": "350m", "memory": "1Gi"}


def test_host_network_opens_the_same_port_on_the_host() -> None:
    ports: list[dict[str, Any]] = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81, "protocol": "UDP"}]
    defaulted({"hostNetwork": True, "containers": [container(ports=ports)]})
    assert ports == [
        {"containerPort": 80, "hostPort": 80, "protocol": "TCP"},
        {"containerPort": 81, "hostPort": 81, "protocol": "UDP"},
    ]


def test_probes_volumes_and_field_references_are_completed() -> None:
    spec = defaulted(
        {
            "containers": [
                container(
                    readinessProbe={"httpGet": {"port": 80}},
                    lifecycle={"preStop": {"httpGet": {"port": 80}}},
                    env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                )
            ],
            "volumes": [
                {"name": "a"},
                {"name": "b", "configMap": {"name": "x"}},
                {"name": "c", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
                {"name": "d", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            ],
        }
    )["spec"]
    first = spec["containers"][0]
    assert first["readinessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert first["lifecycle"]["preStop"]["httpGet"] == {"port": 80, "path": "/", "scheme": "HTTP"}
    assert first["env"][0]["valueFrom"]["fieldRef"] == {"fieldPath": "metadata.name", "apiVersion": "v1"}
    assert spec["volumes"] == [
        {"name": "a", "emptyDir": {}},
        {"name": "b", "configMap": {"name": "x", "defaultMode": 420}},
        {
            "name": "c",
            "projected": {
                "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                "defaultMode": 420,
            },
        },
        {"name": "d", "ephemeral": {"volumeClaimTemplate": {"spec": {"volumeMode": "Filesystem"}}}},
    ]


CPU_AND_MEMORY = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([{}], "BestEffort"),
        ([{"requests": {"cpu": "0"}}], "BestEffort"),
        ([{"requests": {"example.com/gpu": "1"}}], "BestEffort"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
        ([{"limits": CPU_AND_MEMORY}], "Guaranteed"),
        ([{"limits": CPU_AND_MEMORY, "requests": {"cpu": "1000m", "memory": "1024Mi"}}], "Guaranteed"),
        ([{"limits": CPU_AND_MEMORY, "requests": {"cpu": "500m"}}], "Burstable"),
        ([{"limits": CPU_AND_MEMORY}, {}], "Burstable"),
        ([{"limits": {"cpu": "1"}}], "Burstable"),
    ],
)
def test_qos_class(resources: list[dict[str, Any]], expected: str) -> None:
    containers = [container(name=f"c{index}", resources=one) for index, one in enumerate(resources)]
    status = defaulted({"containers": copy.deepcopy(containers)})["status"]
    assert status == {"phase": "Pending", "qosClass": expected}


def test_pod_level_resources_decide_the_qos_class() -> None:
    spec = {"containers": [container()], "resources": {"limits": dict(CPU_AND_MEMORY)}}
    assert defaulted(spec)["status"]["qosClass"] == "Guaranteed"


def test_gated_pod_says_so_in_its_first_condition() -> None:
    pod = {
        "apiVersion": "v1",
        "metadata": {"creationTimestamp": "2024-01-01T00:00:00Z"},
        "spec": {"containers": [container()], "schedulingGates": [{"name": "g"}]},
    }
    apply_defaults("Pod", pod)
    assert pod["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastTransitionTime": "2024-01-01T00:00:00Z",
        }
    ]


def test_status_of_a_running_pod_is_left_alone() -> None:
    status = {"phase": "Running", "qosClass": "Guaranteed"}
    assert defaulted({"containers": [container()]}, status=dict(status))["status"] == status


def test_null_counts_as_absent() -> None:
    pod = defaulted({"containers": [container(resources=None)], "nodeSelector": None, "restartPolicy": None})
    assert pod["spec"]["restartPolicy"] == "Always"
    assert "nodeSelector" not in pod["spec"]
    assert pod["spec"]["containers"][0]["resources"] == {}


def pod_with(labels: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "labels": labels}, "spec": spec}


def term(**fields: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone", **fields}


def test_affinity_terms_take_the_values_that_the_pod_has() -> None:
    required, preferred = term(matchLabelKeys=["hash"]), term(mismatchLabelKeys=["tenant"])
    affinity = {
        "podAffinity": {REQUIRED: [required]},
        "podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": preferred}]},
    }
    merge_label_keys(pod_with({"hash": "a1", "tenant": "t"}, affinity=affinity))
    assert required["labelSelector"] == {
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "hash", "operator": "In", "values": ["a1"]}],
    }
    assert preferred["labelSelector"]["matchExpressions"] == [{"key": "tenant", "operator": "NotIn", "values": ["t"]}]


def test_spread_constraints_keep_their_own_requirements() -> None:
    own = {"key": "tier", "operator": "Exists"}
    constraint = {"labelSelector": {"matchExpressions": [own]}, "matchLabelKeys": ["hash", "absent"]}
    merge_label_keys(pod_with({"hash": "a1"}, topologySpreadConstraints=[constraint]))
    assert constraint["labelSelector"]["matchExpressions"] == [
        own,
        {"key": "hash", "operator": "In", "values": ["a1"]},
    ]


def test_keys_without_a_label_change_nothing() -> None:
    constraint = {"labelSelector": {}, "matchLabelKeys": ["absent"]}
    merge_label_keys(pod_with({}, topologySpreadConstraints=[constraint]))
    assert constraint["labelSelector"] == {}
