"""A trace keeps what scheduling reads, and nothing that may be a secret."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.lab.trace.content import (
    OBSERVED_NODE,
    RECORDED,
    ContentCodec,
    Redaction,
    fingerprint,
    hashed_image,
    recorded_kinds,
    sighting,
)
from pilotage.model.errors import DecodeError
from pilotage.model.kinds import KINDS

SECRETS = {
    "metadata": {
        "name": "p",
        "namespace": "n",
        "uid": "u",
        "resourceVersion": "7",
        "generateName": "secret-",
        "managedFields": [{"manager": "secret"}],
        "labels": {"app": "web"},
        "annotations": {"note": "secret", "kubectl.kubernetes.io/last-applied-configuration": "secret"},
    },
    "spec": {
        "nodeName": "a",
        "serviceAccountName": "secret",
        "imagePullSecrets": [{"name": "secret"}],
        "containers": [
            {
                "name": "c",
                "image": "registry/web:1",
                "command": ["secret"],
                "args": ["secret"],
                "env": [{"name": "PASSWORD", "value": "secret"}],
                "envFrom": [{"secretRef": {"name": "secret"}}],
                "livenessProbe": {"httpGet": {"path": "/secret"}},
                "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
                "ports": [{"containerPort": 80, "hostPort": 8080}],
            }
        ],
        "volumes": [
            {"name": "token", "secret": {"secretName": "secret"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        ],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    },
    "status": {"phase": "Running", "podIP": "10.0.0.1", "message": "secret", "hostIP": "10.0.0.2"},
}


def seen(plural: str, obj: dict[str, Any], **redaction: Any) -> dict[str, Any]:
    return sighting(KINDS[plural], msgspec.json.encode(obj), Redaction(**redaction)).content


def test_a_pod_keeps_what_scheduling_reads_and_no_secret() -> None:
    kept = seen("pods", SECRETS)
    assert b"secret" not in msgspec.json.encode(kept)
    assert kept["metadata"] == {"name": "p", "namespace": "n", "uid": "u", "labels": {"app": "web"}}
    (container,) = kept["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}
    assert container["ports"] == [{"containerPort": 80, "hostPort": 8080}]
    assert [volume["name"] for volume in kept["spec"]["volumes"]] == ["data"]
    assert kept["spec"]["tolerations"] and kept["spec"]["nodeName"] == "a"
    assert kept["status"] == {"phase": "Running"}


def test_annotations_are_kept_that_scheduling_reads_or_that_are_asked_for() -> None:
    annotations = {"scheduling.k8s.io/x": "1", "acme.com/tier": "2", "acme.com.evil/x": "3", "other": "4"}
    obj = {"metadata": {"name": "n", "annotations": annotations}}
    assert seen("nodes", obj)["metadata"]["annotations"] == {"scheduling.k8s.io/x": "1"}
    kept = seen("nodes", obj, annotations=("acme.com/",))["metadata"]["annotations"]
    assert set(kept) == {"scheduling.k8s.io/x", "acme.com/tier"}
    assert seen("nodes", obj, annotations=("",))["metadata"]["annotations"] == annotations


@pytest.mark.parametrize(
    ("plural", "obj"),
    [
        ("storageclasses", {"provisioner": "p", "parameters": {"password": "secret"}, "mountOptions": ["secret"]}),
        ("persistentvolumes", {"spec": {"csi": {"driver": "d", "volumeAttributes": {"key": "secret"}}}}),
        ("deviceclasses", {"spec": {"config": [{"opaque": {"driver": "d", "parameters": "secret"}}]}}),
        ("priorityclasses", {"value": 1, "description": "secret"}),
        (
            "nodes",
            {"spec": {"providerID": "secret"}, "status": {"conditions": [{"type": "Ready", "message": "secret"}]}},
        ),
        ("jobs", {"spec": {"template": {"metadata": {"annotations": {"x": "secret"}}, "spec": {"containers": []}}}}),
        ("replicasets", {"spec": {"template": {"spec": {"containers": [{"name": "secret"}]}}}}),
    ],
)
def test_what_drivers_and_people_write_is_left_out(plural: str, obj: dict[str, Any]) -> None:
    kept = seen(plural, {"metadata": {"name": "x"}, **obj})
    assert b"secret" not in msgspec.json.encode(kept)
    assert kept["kind"] == KINDS[plural].kind and kept["apiVersion"] == KINDS[plural].api_version


def test_hashed_images_still_match() -> None:
    pod = seen("pods", SECRETS, hash_images=True)
    image = pod["spec"]["containers"][0]["image"]
    on_node = {"metadata": {"name": "a"}, "status": {"images": [{"names": ["registry/web:1"], "sizeBytes": 5}]}}
    assert seen("nodes", on_node, hash_images=True)["status"]["images"] == [{"names": [image], "sizeBytes": 5}]
    assert "web" not in image
    assert hashed_image("web") == hashed_image("web:latest") != hashed_image("host:5000/web")


def test_nulls_as_go_writes_them_are_absent_fields() -> None:
    obj = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [{"name": "c"}], "volumes": None}}
    assert "volumes" not in seen("pods", obj)["spec"]


def test_what_is_no_object_of_the_kind_is_an_error() -> None:
    with pytest.raises(DecodeError):
        seen("pods", {"metadata": {"name": "p"}, "spec": {"containers": 7}})


def test_equal_for_scheduling_is_equal() -> None:
    pod = seen("pods", SECRETS)
    moved = {**pod, "spec": {**pod["spec"], "nodeName": "b"}, "status": {"phase": "Pending"}}
    assert fingerprint(moved) == fingerprint(pod)
    watched = {**pod, "metadata": {**pod["metadata"], "annotations": {OBSERVED_NODE: "b"}}}
    assert fingerprint(watched) == fingerprint(pod)
    relabelled = {**pod, "metadata": {**pod["metadata"], "labels": {"app": "other"}}}
    assert fingerprint(relabelled) != fingerprint(pod)
    claimed = {**pod, "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu"}]}}
    assert fingerprint(claimed) != fingerprint(pod)


def test_the_status_counts_of_nodes_only() -> None:
    small, large = ({"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": cpu}}} for cpu in ("1", "2"))
    assert fingerprint(seen("nodes", small)) != fingerprint(seen("nodes", large))
    bound = {"metadata": {"name": "c", "namespace": "n"}, "status": {"phase": "Bound"}}
    pending = {**bound, "status": {"phase": "Pending"}}
    assert fingerprint(seen("persistentvolumeclaims", bound)) == fingerprint(seen("persistentvolumeclaims", pending))


def test_lists_and_watches_give_sightings() -> None:
    codec = ContentCodec(KINDS["nodes"], Redaction())
    broken = b'{"metadata": {"name": "b", "namespace": ""}, "spec": 7}'
    page = codec.decode_list(b'{"items": [{"metadata": {"name": "a", "resourceVersion": "5"}}, ' + broken + b"]}")
    assert [(one.key, one.resource_version) for one in page.items] == [("a", "5")]
    assert len(page.errors) == 1
    events = codec.decode_events(b'{"type": "DELETED", "object": {"metadata": {"name": "a"}}}\n')
    assert [(event.type, event.object.name) for event in events] == [("DELETED", "a")]


def test_every_kind_that_is_recorded_is_known() -> None:
    assert [kind.plural for kind in recorded_kinds(Redaction())] == list(RECORDED)
    assert len(set(RECORDED)) == len(RECORDED)
