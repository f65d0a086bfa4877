"""Defaults of all kinds but pods."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pilotage.sandbox.rules.defaults import apply_defaults

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


def defaulted(kind: str, api_version: str, **fields: Any) -> dict[str, Any]:
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "uid": "u-1"}, **copy.deepcopy(fields)}
    apply_defaults(kind, obj)
    return obj


SMALL_KINDS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    (
        "PersistentVolumeClaim",
        "v1",
        {"spec": {}},
        {"spec": {"volumeMode": "Filesystem"}, "status": {"phase": "Pending"}},
    ),
    (
        "PersistentVolume",
        "v1",
        {"spec": {"hostPath": {"path": "/x"}}},
        {
            "spec": {
                "hostPath": {"path": "/x", "type": ""},
                "persistentVolumeReclaimPolicy": "Retain",
                "volumeMode": "Filesystem",
            },
            "status": {"phase": "Pending"},
        },
    ),
    ("StorageClass", "storage.k8s.io/v1", {}, {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}),
    ("PriorityClass", "scheduling.k8s.io/v1", {"value": 1}, {"value": 1, "preemptionPolicy": "PreemptLowerPriority"}),
    (
        "Node",
        "v1",
        {"status": {"capacity": {"cpu": "4"}}},
        {"status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}}},
    ),
    (
        "Secret",
        "v1",
        {"stringData": {"a": "text"}, "data": {"b": "eA=="}},
        {"type": "Opaque", "data": {"a": "dGV4dA==", "b": "eA=="}},
    ),
    (
        "ResourceClaim",
        "resource.k8s.io/v1",
        {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}},
        {
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "r",
                            "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
                        }
                    ]
                }
            }
        },
    ),
    (
        "Event",
        "v1",
        {"eventTime": "2026-01-01T00:00:00.000000Z"},
        {"eventTime": "2026-01-01T00:00:00.000000Z", "firstTimestamp": None, "lastTimestamp": None, "source": {}}
        | {"reportingComponent": "", "reportingInstance": ""},
    ),
    (
        "ResourceClaimTemplate",
        "resource.k8s.io/v1",
        {"spec": {"spec": {"devices": {"requests": [{"name": "r", "firstAvailable": [{"allocationMode": "All"}]}]}}}},
        {"spec": {"spec": {"devices": {"requests": [{"name": "r", "firstAvailable": [{"allocationMode": "All"}]}]}}}},
    ),
]


@pytest.mark.parametrize(("kind", "api_version", "given", "expected"), SMALL_KINDS, ids=[row[0] for row in SMALL_KINDS])
def test_kind_gets(kind: str, api_version: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    obj = defaulted(kind, api_version, **given)
    assert {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")} == expected


def test_deployment_rolls_by_default() -> None:
    spec = defaulted("Deployment", "apps/v1", spec={"template": TEMPLATE})["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)
    assert spec["template"]["spec"]["schedulerName"] == "default-scheduler"


def test_deployment_that_recreates_gets_no_rolling_parameters() -> None:
    spec = defaulted("Deployment", "apps/v1", spec={"replicas": 0, "strategy": {"type": "Recreate"}})["spec"]
    assert spec["strategy"] == {"type": "Recreate"}
    assert spec["replicas"] == 0


def test_stateful_set_and_daemon_set() -> None:
    claims = [{"metadata": {"name": "data"}, "spec": {}}]
    stateful = defaulted("StatefulSet", "apps/v1", spec={"template": TEMPLATE, "volumeClaimTemplates": claims})["spec"]
    assert stateful["podManagementPolicy"] == "OrderedReady"
    assert stateful["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert stateful["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    assert stateful["volumeClaimTemplates"][0]["spec"] == {"volumeMode": "Filesystem"}
    daemons = defaulted("DaemonSet", "apps/v1", spec={"template": TEMPLATE})["spec"]
    assert daemons["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}


def test_job_gets_counts_selector_and_labels_from_its_uid() -> None:
    job = defaulted("Job", "batch/v1", spec={"template": TEMPLATE})
    spec = job["spec"]
    assert job["metadata"]["labels"] == spec["template"]["metadata"]["labels"]
    assert (spec["parallelism"], spec["completions"], spec["backoffLimit"]) == (1, 1, 6)
    assert (spec["completionMode"], spec["suspend"], spec["podReplacementPolicy"]) == (
        "NonIndexed",
        False,
        "TerminatingOrFailed",
    )
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u-1"}}
    assert spec["template"]["metadata"]["labels"] == {
        "app": "x",
        "batch.kubernetes.io/controller-uid": "u-1",
        "controller-uid": "u-1",
        "batch.kubernetes.io/job-name": "x",
        "job-name": "x",
    }


def test_job_with_parallelism_only_is_a_work_queue() -> None:
    spec = defaulted("Job", "batch/v1", spec={"template": TEMPLATE, "parallelism": 3})["spec"]
    assert "completions" not in spec


def test_job_with_manual_selector_keeps_it() -> None:
    selector = {"matchLabels": {"app": "x"}}
    given = {"template": TEMPLATE, "manualSelector": True, "selector": selector}
    spec = defaulted("Job", "batch/v1", spec=given)["spec"]
    assert spec["selector"] == selector
    assert spec["template"]["metadata"]["labels"] == {"app": "x"}


def test_cron_job() -> None:
    spec = defaulted("CronJob", "batch/v1", spec={"jobTemplate": {"spec": {"template": TEMPLATE}}})["spec"]
    assert (spec["concurrencyPolicy"], spec["suspend"]) == ("Allow", False)
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 1)
    assert spec["jobTemplate"]["spec"]["template"]["spec"]["dnsPolicy"] == "ClusterFirst"


def test_service_ports_and_policies() -> None:
    service = defaulted("Service", "v1", spec={"type": "LoadBalancer", "ports": [{"port": 80}]})
    assert service["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert service["spec"]["externalTrafficPolicy"] == "Cluster"
    assert service["spec"]["internalTrafficPolicy"] == "Cluster"
    assert service["status"] == {"loadBalancer": {}}


def test_replication_controller_selects_its_template() -> None:
    controller = defaulted("ReplicationController", "v1", spec={"template": TEMPLATE})
    assert controller["spec"]["selector"] == {"app": "x"}
    assert controller["metadata"]["labels"] == {"app": "x"}


def test_namespace_carries_its_name_as_a_label() -> None:
    namespace = defaulted("Namespace", "v1")
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
    assert namespace["status"] == {"phase": "Active"}


def test_definition_derives_names() -> None:
    names = {"kind": "CronTab", "plural": "crontabs"}
    spec = defaulted("CustomResourceDefinition", "apiextensions.k8s.io/v1", spec={"names": names})["spec"]
    assert spec["names"] == {"kind": "CronTab", "plural": "crontabs", "singular": "crontab", "listKind": "CronTabList"}


def test_definition_keeps_null_defaults_of_its_schema() -> None:
    schema = {"properties": {"x": {"default": None}}}
    spec = {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}
    definition = defaulted("CustomResourceDefinition", "apiextensions.k8s.io/v1", spec=spec)
    assert definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == schema


def test_custom_resource_of_the_same_name_is_left_alone() -> None:
    given = {"spec": {"minAvailable": 3, "nothing": None}}
    job = defaulted("Job", "batch.volcano.sh/v1alpha1", **given)
    assert job["spec"] == given["spec"]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Service", "Pod"])
def test_defaults_are_idempotent(kind: str) -> None:
    once = defaulted(kind, "v1", spec={"template": TEMPLATE, "containers": [{"name": "c"}], "ports": [{"port": 1}]})
    twice = copy.deepcopy(once)
    apply_defaults(kind, twice)
    assert twice == once
