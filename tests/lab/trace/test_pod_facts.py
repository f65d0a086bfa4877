"""What tells pods apart."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.lab.trace.pod_facts import amount_text, group_of, owner_of, shape_of
from pilotage.model.pod import Pod, decode_pod

from .making import pod


def decoded(obj: dict[str, Any]) -> Pod:
    return decode_pod(msgspec.json.encode(obj))


@pytest.mark.parametrize(
    ("metadata", "owner"),
    [
        ({}, "Pod default/"),
        ({"ownerReferences": [{"kind": "Job", "name": "j", "controller": True}]}, "Job default/j"),
        (
            {
                "labels": {"pod-template-hash": "abc"},
                "ownerReferences": [{"kind": "ReplicaSet", "name": "web-abc", "controller": True}],
            },
            "Deployment default/web",
        ),
        ({"ownerReferences": [{"kind": "ReplicaSet", "name": "bare", "controller": True}]}, "ReplicaSet default/bare"),
    ],
)
def test_the_owner(metadata: dict[str, Any], owner: str) -> None:
    assert owner_of(decoded(pod("p", **metadata))) == owner


def test_the_group() -> None:
    member = pod("p")
    member["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    assert group_of(decoded(member)) == "default/g"
    assert group_of(decoded(pod("p", labels={"scheduling.x-k8s.io/pod-group": "h"}))) == "default/h"
    assert group_of(decoded(pod("p"))) == ""


def test_the_shape() -> None:
    obj = pod("p", cpu="1500m")
    obj["spec"]["containers"][0]["resources"]["requests"] |= {"nvidia.com/gpu": "2", "memory": "3Gi"}
    assert str(shape_of(decoded(obj))) == "cpu=1500m memory=3Gi nvidia.com/gpu=2"
    gpus = {"openb.pilotage.dev/gpu-count": "2", "openb.pilotage.dev/gpu-milli": "1000"}
    assert str(shape_of(decoded(pod("p", annotations=gpus)))) == "cpu=1 openb.pilotage.dev/gpu-milli=2000"
    assert str(shape_of(decoded(pod("p", annotations=gpus | {"openb.pilotage.dev/gpu-milli": "x"})))).endswith("=0")


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 500, "500m"),
        ("cpu", 2000, "2"),
        ("memory", 2**30, "1Gi"),
        ("memory", 1000, "1000"),
        ("x/gpu", 1024, "1024"),
    ],
)
def test_amounts_as_people_write_them(resource: str, amount: int, text: str) -> None:
    assert amount_text(resource, amount) == text
