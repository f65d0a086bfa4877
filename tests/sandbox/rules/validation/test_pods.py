"""What is wrong with a new pod, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.rules.validation import validate_create


def container(**fields: Any) -> dict[str, Any]:
    return {"name": "c", "image": "i", **fields}


def messages(kind: str = "Pod", **spec: Any) -> list[str]:
    spec.setdefault("containers", [container()])
    obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "p"}, "spec": spec}
    return [str(error) for error in validate_create(kind, obj)]


def resources(requests: Any = None, limits: Any = None) -> list[dict[str, Any]]:
    return [container(resources={"requests": requests, "limits": limits})]


def test_ordinary_pod_is_fine() -> None:
    assert messages() == []


def test_pod_without_spec_or_containers() -> None:
    assert [str(e) for e in validate_create("Pod", {"metadata": {"name": "p"}})] == ["spec.containers: Required value"]
    assert messages(containers=[]) == ["spec.containers: Required value"]


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([{}], ["spec.containers[0].name: Required value", "spec.containers[0].image: Required value"]),
        ([container(), container()], ['spec.containers[1].name: Duplicate value: "c"']),
        (
            [container(image=" i")],
            ['spec.containers[0].image: Invalid value: " i": must not have leading or trailing whitespace'],
        ),
        (
            [container(imagePullPolicy="Sometimes")],
            [
                'spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": '
                'supported values: "Always", "IfNotPresent", "Never"'
            ],
        ),
        ([container(env=[{"value": "x"}])], ["spec.containers[0].env[0].name: Required value"]),
        (
            [container(volumeMounts=[{"name": "v", "mountPath": "/x"}])],
            ['spec.containers[0].volumeMounts[0].name: Not found: "v"'],
        ),
        (
            [container(ports=[{"containerPort": 70000, "protocol": "TCP"}])],
            ["spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"],
        ),
        (
            [container(ports=[{"containerPort": 1, "protocol": "ICMP"}])],
            ['spec.containers[0].ports[0].protocol: Unsupported value: "ICMP": supported values: "TCP", "UDP", "SCTP"'],
        ),
        (
            [container(ports=[{"containerPort": 1, "protocol": "TCP", "name": "UPPER"}])],
            [
                'spec.containers[0].ports[0].name: Invalid value: "UPPER": '
                "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
            ],
        ),
    ],
)
def test_containers(containers: list[Any], expected: list[str]) -> None:
    assert messages(containers=containers) == expected


def test_init_container_shares_the_name_space() -> None:
    assert messages(initContainers=[container()]) == ['spec.initContainers[0].name: Duplicate value: "c"']


@pytest.mark.parametrize(
    ("requests", "limits", "expected"),
    [
        ({"cpu": "100m", "memory": "1.5Gi", "example.com/gpu": 1}, {"example.com/gpu": "1"}, []),
        ({"cpu": 1}, {"cpu": "1000m"}, []),
        (
            {"cpu": "-1"},
            None,
            ['spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
        ),
        (
            {"cpu": "2"},
            {"cpu": "1"},
            ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
        ),
        (
            {"cpu": "1 core"},
            None,
            [
                'spec.containers[0].resources.requests[cpu]: Invalid value: "1 core": quantities must match the '
                "regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ],
        ),
        (
            {"gpu": "1"},
            None,
            [
                'spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": '
                "must be a standard resource for containers"
            ],
        ),
        (
            {"example.com/gpu": "0.5"},
            {"example.com/gpu": "0.5"},
            [
                'spec.containers[0].resources.limits[example.com/gpu]: Invalid value: "0.5": must be an integer',
                'spec.containers[0].resources.requests[example.com/gpu]: Invalid value: "0.5": must be an integer',
            ],
        ),
        (
            {"example.com/gpu": "1"},
            None,
            ["spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"],
        ),
        (
            {"example.com/gpu": "1"},
            {"example.com/gpu": "2"},
            ['spec.containers[0].resources.requests: Invalid value: "1": must be equal to example.com/gpu limit of 2'],
        ),
        (
            {"hugepages-2Mi": "2Mi"},
            {"hugepages-2Mi": "2Mi"},
            ["spec.containers[0].resources: Forbidden: HugePages require cpu or memory"],
        ),
    ],
)
def test_amounts(requests: Any, limits: Any, expected: list[str]) -> None:
    assert messages(containers=resources(requests, limits)) == expected


@pytest.mark.parametrize("amount", ["9" * 5000, "1e99999999", "--1", "", "Ki", 1e308, -0.5])
def test_strange_amounts_never_raise(amount: Any) -> None:
    assert isinstance(messages(containers=resources({"cpu": amount})), list)


def test_pod_level_resources_and_overhead() -> None:
    assert messages(resources={"limits": {"cpu": "1"}}, overhead={"cpu": "1"}) == []
    assert messages(resources={"limits": {"example.com/gpu": "1"}}) == [
        'spec.resources.limits[example.com/gpu]: Invalid value: "example.com/gpu": '
        "must be a standard resource for pod-level resources"
    ]
    assert messages(overhead={"cpu": "-1"}) == [
        'spec.overhead[cpu]: Invalid value: "-1": must be greater than or equal to 0'
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"restartPolicy": "Sometimes"},
            'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
        ),
        (
            {"terminationGracePeriodSeconds": -1},
            "spec.terminationGracePeriodSeconds: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            {"activeDeadlineSeconds": 0},
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
        ),
        (
            {"schedulingGates": [{"name": "g"}], "nodeName": "n"},
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        ),
        ({"schedulingGates": [{"name": "g"}, {"name": "g"}]}, 'spec.schedulingGates[1]: Duplicate value: "g"'),
        (
            {"ephemeralContainers": [{"name": "e", "image": "i"}]},
            "spec.ephemeralContainers: Forbidden: cannot be set on create",
        ),
        ({"volumes": [{"name": "v"}, {"name": "v"}]}, 'spec.volumes[1].name: Duplicate value: "v"'),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {}}]},
            "spec.volumes[0].persistentVolumeClaim.claimName: Required value",
        ),
        (
            {"resourceClaims": [{"name": "c"}]},
            'spec.resourceClaims[0]: Invalid value: "c": '
            "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
        ),
        (
            {"containers": [container(resources={"claims": [{"name": "zz"}]})]},
            'spec.containers[0].resources.claims[0]: Not found: "zz"',
        ),
        (
            {
                "hostNetwork": True,
                "containers": [container(ports=[{"containerPort": 1, "hostPort": 2, "protocol": "TCP"}])],
            },
            "spec.containers[0].ports[0].hostPort: Invalid value: 2: "
            "must match `containerPort` when `hostNetwork` is true",
        ),
    ],
)
def test_spec(spec: dict[str, Any], expected: str) -> None:
    assert messages(**spec) == [expected]


@pytest.mark.parametrize("field", ["nodeName", "serviceAccountName", "schedulerName", "hostname"])
def test_names_inside_the_spec(field: str) -> None:
    (message,) = messages(**{field: "Not_A_Name"})
    assert message.startswith(f'spec.{field}: Invalid value: "Not_A_Name": a lowercase RFC 1123')
