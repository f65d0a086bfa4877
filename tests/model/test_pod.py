"""Pods: what is kept, what is shared, what is said about wrong ones."""

from __future__ import annotations

import gc
import json
import weakref
from typing import Any

import msgspec
import pytest

from pilotage.model.errors import DecodeError
from pilotage.model.meta import Condition, OwnerReference
from pilotage.model.pod import Pod, PodSpec, decode_pod, shared_spec
from pilotage.model.pod_spec import Container, PodSpecFields, ResourceRequirements
from pilotage.model.volumes import EphemeralVolume, Volume


def _pod(name: str = "web-1", *, spec: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", **more.pop("metadata", {})}
    container = {"name": "app", "image": "web:1", "resources": {"requests": {"cpu": "100m"}}}
    return {"metadata": metadata, "spec": {"containers": [container], **(spec or {})}, **more}


def _decode(body: dict[str, Any]) -> Pod:
    return decode_pod(json.dumps(body).encode())


def test_pod_has_flat_metadata() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    pod = _decode(
        _pod(
            metadata={
                "resourceVersion": "7",
                "generation": 2,
                "labels": {"app": "web"},
                "annotations": {"note": "x"},
                "ownerReferences": [owner],
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "deletionTimestamp": "2026-01-02T00:00:00Z",
                "finalizers": ["example.com/hold"],
            },
            spec={"nodeName": "n1", "priority": 5},
        )
    )
    assert (pod.key, pod.uid, pod.resource_version, pod.generation) == ("shop/web-1", "uid-web-1", "7", 2)
    assert (pod.labels, pod.annotations) == ({"app": "web"}, {"note": "x"})
    assert pod.controller == OwnerReference("apps/v1", "ReplicaSet", "web", "u", True)
    assert pod.creation_timestamp == "2026-01-01T00:00:00Z"
    assert pod.is_terminating
    assert pod.finalizers == ("example.com/hold",)
    assert (pod.node_name, pod.priority) == ("n1", 5)


def test_pod_with_nothing_optional_has_defaults() -> None:
    pod = _decode(_pod())
    assert (pod.node_name, pod.priority, pod.labels, pod.owner_references) == ("", 0, {}, ())
    assert (pod.spec.scheduler_name, pod.spec.tolerations, pod.status.phase) == ("default-scheduler", (), "")
    assert not pod.is_terminating
    assert not pod.is_finished
    assert pod.controller is None


@pytest.mark.parametrize(("phase", "finished"), [("Succeeded", True), ("Failed", True), ("Running", False)])
def test_pod_is_finished_by_its_phase(phase: str, finished: bool) -> None:
    assert _decode(_pod(status={"phase": phase})).is_finished is finished


def test_last_applied_configuration_is_not_kept() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "x"}
    assert _decode(_pod(metadata={"annotations": annotations})).annotations == {"note": "x"}


def test_status_keeps_conditions_without_times_and_what_the_kubelet_granted() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no", "x": None}
    granted = {"name": "app", "allocatedResources": {"cpu": "200m"}, "resources": {"requests": {"cpu": 1}}}
    status = {
        "phase": "Pending",
        "nominatedNodeName": "n2",
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 3}],
        "containerStatuses": [granted],
        "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "gpu-x"}, {"name": "none"}],
    }
    kept = _decode(_pod(status=status)).status
    assert (kept.phase, kept.nominated_node_name, kept.start_time) == ("Pending", "n2", "2026-01-01T00:00:00Z")
    assert kept.condition("PodScheduled") == Condition("PodScheduled", "False", "Unschedulable", "no", 3)
    assert kept.condition("Ready") is None
    assert kept.container_statuses[0].allocated_resources == {"cpu": "200m"}
    assert kept.container_statuses[0].resources == ResourceRequirements({"cpu": 1})
    assert [claim.resource_claim_name for claim in kept.resource_claim_statuses] == ["gpu-x", None]


def test_pods_that_differ_only_in_their_own_things_share_the_rest() -> None:
    def pod(number: int) -> Pod:
        token = {"name": f"kube-api-access-{number}", "projected": {"sources": []}}
        mount = {"name": token["name"], "mountPath": "/token"}
        body = _pod(
            f"web-{number}",
            metadata={"labels": {"app": "web"}, "annotations": {"a": "b"}, "ownerReferences": [{"name": "web"}]},
            spec={"nodeName": f"n{number}", "volumes": [token]},
            status={
                "phase": "Running",
                "startTime": f"2026-01-01T00:00:0{number}Z",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": f"{number}"}],
                "containerStatuses": [{"name": "app", "containerID": f"{number}"}],
            },
        )
        body["spec"]["containers"][0] |= {"volumeMounts": [mount], "env": [{"name": "N", "value": str(number)}]}
        return _decode(body)

    first, second = pod(1), pod(2)
    assert first.spec is second.spec
    assert first.labels is second.labels
    assert first.annotations is second.annotations
    assert first.owner_references is second.owner_references
    assert first.status.conditions is second.status.conditions
    assert first.status.container_statuses is second.status.container_statuses
    assert (first.node_name, second.node_name) == ("n1", "n2")
    assert first.status.start_time != second.status.start_time


def test_equal_specs_written_in_another_order_are_one() -> None:
    one = _decode(_pod(spec={"nodeSelector": {"a": "1", "b": "2"}, "priority": 3}))
    other = decode_pod(
        b'{"spec": {"priority":  3, "nodeSelector": {"b": "2", "a": "1"}, "containers": [{"resources":'
        b' {"requests": {"cpu": "100m"}}, "image": "web:1", "name": "app"}]}, "metadata": {"name": "x"}}'
    )
    assert one.spec is other.spec


@pytest.mark.parametrize(
    "change",
    [
        {"priority": 1},
        {"schedulerName": "other"},
        {"hostNetwork": True},
        {"nodeSelector": {"a": "b"}},
        {"overhead": {"cpu": "1m"}},
        {"schedulingGates": [{"name": "wait"}]},
        {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
        {"initContainers": [{"name": "init", "image": "init:1"}]},
        {"tolerations": [{"operator": "Exists"}]},
        {"schedulingGroup": {"podGroupName": "g"}},
        {"hostUsers": False},
    ],
)
def test_specs_of_different_content_are_different(change: dict[str, Any]) -> None:
    plain, changed = _decode(_pod()), _decode(_pod(spec=change))
    assert plain.spec is not changed.spec
    assert changed.spec is _decode(_pod("other", spec=change)).spec


def test_specs_that_differ_in_one_field_share_their_containers() -> None:
    claims = [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{number}"}} for number in range(2)]
    first, second = (_decode(_pod(spec={"volumes": [claim]})) for claim in claims)
    assert first.spec is not second.spec
    assert first.spec.containers is second.spec.containers


def test_spec_and_its_memo_go_when_the_last_pod_goes() -> None:
    pod = _decode(_pod(spec={"priority": 4711}))
    pod.spec.memo["fact"] = 1
    watcher = weakref.ref(pod.spec)
    del pod
    gc.collect()
    assert watcher() is None
    assert _decode(_pod(spec={"priority": 4711})).spec.memo == {}


def test_what_is_kept_with_a_spec_is_no_part_of_its_json() -> None:
    pod = _decode(_pod(spec={"priority": 4713}))
    before = msgspec.json.encode(pod)
    pod.spec.memo[len] = 1
    assert msgspec.json.encode(pod) == before


def test_a_field_called_memo_in_the_json_is_ignored() -> None:
    pod = _decode(_pod(spec={"memo": {"fact": 1}, "priority": 4712}))
    assert pod.spec.memo == {}


def test_only_volumes_that_scheduling_reads_are_kept() -> None:
    template = {"spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}}
    volumes = [
        {"name": "config", "configMap": {"name": "c"}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "c", "readOnly": True}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}},
        {"name": "token", "projected": {}},
        {"name": "model", "image": {"reference": "models:1"}},
    ]
    kept = _decode(_pod(spec={"volumes": volumes})).spec.volumes
    assert [volume.name for volume in kept] == ["claim", "scratch", "model"]
    assert kept[0].persistent_volume_claim is not None
    assert kept[0].persistent_volume_claim.claim_name == "c"
    assert isinstance(kept[1].ephemeral, EphemeralVolume)
    assert kept[1].ephemeral.volume_claim_template is not None
    assert kept[1].ephemeral.volume_claim_template.spec.resources.requests == {"storage": "1Gi"}


def test_with_node_shares_everything_else() -> None:
    pod = _decode(_pod(metadata={"labels": {"a": "b"}}))
    bound = pod.with_node("n1")
    assert (pod.node_name, bound.node_name) == ("", "n1")
    assert (bound.uid, bound.labels) == (pod.uid, pod.labels)
    assert bound.spec is pod.spec
    assert bound.status is pod.status


def test_pod_can_not_be_changed() -> None:
    pod = _decode(_pod(metadata={"labels": {"a": "b"}}))
    with pytest.raises(AttributeError):
        pod.node_name = "n1"  # type: ignore[misc]
    with pytest.raises(TypeError, match="shared"):
        pod.labels["a"] = "c"


def test_built_spec_is_the_decoded_one() -> None:
    container = Container("app", "web:1", ResourceRequirements({"cpu": "100m"}))
    built = shared_spec(PodSpecFields(containers=(container,), volumes=(Volume("token"),)))
    assert _decode(_pod()).spec is built
    assert shared_spec(PodSpec(containers=(container,))) is built


def test_null_means_absent() -> None:
    body = _pod(metadata={"labels": None, "creationTimestamp": None}, spec={"tolerations": None, "affinity": None})
    pod = _decode(body | {"status": None})
    assert (pod.labels, pod.spec.tolerations, pod.spec.affinity, pod.status.conditions) == ({}, (), None, ())


_REQUESTS = {"name": "app", "resources": {"requests": {"cpu": "1"}}}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            _pod(spec={"containers": [_REQUESTS, {"name": "b", "resources": {"requests": "much"}}]}),
            "Pod shop/web-1: spec.containers[1].resources.requests: expected object, got string",
        ),
        (
            _pod(spec={"containers": [{"resources": {"requests": {"cpu": "lots"}}}]}),
            "Pod shop/web-1: spec.containers[0].resources.requests[*]: not a quantity: "
            "write a number with an optional suffix, e.g. 100m, 1.5Gi, 2",
        ),
        (_pod(spec={"priority": "high"}), "Pod shop/web-1: spec.priority: expected integer, got string"),
        (_pod(spec={"nodeName": 5}), "Pod shop/web-1: spec.nodeName: expected string, got integer"),
        (
            _pod(spec={"tolerations": [{"key": "a"}, {"key": True}]}),
            "Pod shop/web-1: spec.tolerations[1].key: expected string, got boolean",
        ),
        (
            _pod(metadata={"labels": {"a": 1}}),
            "Pod shop/web-1: metadata.labels[*]: expected string, got integer",
        ),
        (_pod(metadata={"labels": "x"}), "Pod shop/web-1: metadata.labels: expected object, got string"),
        (
            _pod(metadata={"ownerReferences": {}}),
            "Pod shop/web-1: metadata.ownerReferences: expected array, got object",
        ),
        (_pod(status={"phase": 1}), "Pod shop/web-1: status.phase: expected string, got integer"),
        (_pod(status={"conditions": [5]}), "Pod shop/web-1: status.conditions[0]: expected object, got integer"),
        (_pod(""), "Pod shop: metadata.name: required, but missing"),
        ({"metadata": {"name": "a", "namespace": "b"}}, "Pod b/a: spec: required, but missing"),
        ({"spec": {}}, "Pod: metadata: required, but missing"),
    ],
)
def test_wrong_pod_is_rejected_with_its_name_and_the_field(body: dict[str, Any], message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(body)
    assert str(caught.value) == message


def test_rejected_content_is_rejected_again() -> None:
    body = _pod(spec={"priority": "high"})
    for _ in range(2):
        with pytest.raises(DecodeError, match=r"spec\.priority"):
            _decode(body)


def test_equal_large_specs_are_one_while_in_use_and_gone_with_their_pods() -> None:
    selector = {f"key-{number}.example.com/k": "v" for number in range(5_000)}
    first, second = (
        _decode(_pod("a", spec={"nodeSelector": selector})),
        _decode(_pod("b", spec={"nodeSelector": selector})),
    )
    assert first.spec is second.spec
    spec = weakref.ref(first.spec)
    first.spec.memo["derived"] = [selector]
    del first, second
    assert spec() is None
