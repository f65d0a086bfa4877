"""Jobs as workloads: what is read from them, and that starting and stopping leaves them as they were."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.jobs.adapters import batch_job, marks
from pilotage.jobs.adapters.facts import JobEnding
from pilotage.jobs.adapters.pod_set_info import PodSetInfo
from pilotage.model import KINDS
from pilotage.model.pod_spec import Toleration
from pilotage.model.workloads import Job

SPOT = PodSetInfo(
    "main",
    2,
    labels={marks.POD_SET: "main", marks.LOCAL_QUEUE_NAME: "team"},
    annotations={"check.example.com/zone": "a"},
    node_selector={"pool": "spot"},
    tolerations=(Toleration(key="spot", operator="Exists"),),
)


def manifest(**spec: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": "train", "job-name": "train"}},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "train:1",
                    "resources": {"requests": {"cpu": "2"}},
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                }
            ],
            "volumes": [{"name": "data", "emptyDir": {}}],
            "nodeSelector": {"arch": "amd64"},
            "tolerations": [{"key": "own", "operator": "Exists"}],
            "restartPolicy": "Never",
        },
    }
    return {
        "metadata": {
            "name": "train",
            "namespace": "team-a",
            "uid": "u1",
            "resourceVersion": "7",
            "labels": {marks.QUEUE_NAME: "team"},
        },
        "spec": {"parallelism": 3, "completions": 5, "suspend": True, "template": template, **spec},
    }


def decoded(obj: dict[str, Any]) -> Job:
    job = KINDS["jobs"].decode(msgspec.json.encode(obj))
    assert isinstance(job, Job)
    return job


def merged(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """RFC 7386."""
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merged(result[key] if isinstance(result.get(key), dict) else {}, value)
        else:
            result[key] = value
    return result


def test_the_workload_keeps_what_queueing_is_about() -> None:
    [pod_set] = batch_job.pod_sets(decoded(manifest()))
    assert (pod_set.name, pod_set.count, pod_set.min_count) == ("main", 3, None)
    assert pod_set.template.metadata.labels == {"app": "train"}
    assert pod_set.template.spec.node_selector == {"arch": "amd64"}
    assert pod_set.template.spec.containers[0].resources.requests == {"cpu": "2"}
    assert not pod_set.template.spec.volumes and not pod_set.template.spec.containers[0].volume_mounts


@pytest.mark.parametrize(
    ("spec", "count"),
    [({}, 3), ({"completions": 2}, 2), ({"completions": None}, 3), ({"parallelism": None, "completions": None}, 1)],
)
def test_a_job_is_as_large_as_it_can_become_at_once(spec: dict[str, Any], count: int) -> None:
    assert batch_job.pod_sets(decoded(manifest(**spec)))[0].count == count


def test_start_steers_the_pods_and_lets_the_job_go() -> None:
    job = decoded(manifest())
    started = decoded(merged(manifest(), batch_job.start_patch(job, SPOT)))
    template = started.spec.template
    assert not started.spec.suspend and batch_job.is_steered(started)
    assert template.spec.node_selector == {"arch": "amd64", "pool": "spot"}
    assert [one.key for one in template.spec.tolerations] == ["own", "spot"]
    assert template.metadata.labels == {"app": "train", "job-name": "train", **SPOT.labels}
    assert template.metadata.annotations == {"check.example.com/zone": "a"}
    assert started.spec.parallelism == 3, "only a Job that allows it is started at another size"


@pytest.mark.parametrize("annotated", [False, True])
def test_stopping_leaves_the_job_as_it_was(annotated: bool) -> None:
    original = manifest()
    if annotated:
        original["metadata"]["annotations"] = {
            marks.MIN_PARALLELISM: "1",
            marks.COMPLETIONS_EQUAL_PARALLELISM: "true",
        }
        original["spec"]["completions"] = 3
    job = decoded(original)
    wanted = batch_job.pod_sets(job)
    running = merged(original, batch_job.start_patch(job, SPOT))
    assert running["spec"]["parallelism"] == (2 if annotated else 3)
    assert running["spec"]["completions"] == (2 if annotated else 5)
    stopped = merged(running, batch_job.suspend_patch(decoded(running)))
    patch = batch_job.restore_patch(decoded(stopped), wanted)
    assert patch is not None
    restored = merged(stopped, patch)
    assert restored["spec"] == original["spec"]
    assert batch_job.restore_patch(decoded(restored), wanted) is None, "nothing is left to undo"


def test_maps_that_were_not_there_are_not_left_behind_empty() -> None:
    original = manifest()
    del original["spec"]["template"]["spec"]["nodeSelector"], original["spec"]["template"]["spec"]["tolerations"]
    job = decoded(original)
    running = merged(original, batch_job.start_patch(job, SPOT))
    patch = batch_job.restore_patch(decoded(running), batch_job.pod_sets(job))
    assert patch is not None
    assert merged(running, patch)["spec"]["template"] == original["spec"]["template"]


def test_a_steered_template_is_not_mistaken_for_the_users_own() -> None:
    job = decoded(manifest())
    running = decoded(merged(manifest(), batch_job.start_patch(job, SPOT)))
    assert batch_job.pod_sets(running)[0].template.metadata.labels == {"app": "train"}


def test_every_patch_is_for_the_job_that_was_seen() -> None:
    job = decoded(manifest() | {"status": {"startTime": "2026-01-01T00:00:00Z"}})
    for patch in (batch_job.suspend_patch(job), batch_job.start_patch(job, SPOT), batch_job.clear_start_patch(job)):
        assert patch is not None and patch["metadata"] == {"uid": "u1", "resourceVersion": "7"}
    assert batch_job.clear_start_patch(decoded(manifest())) is None


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({}, False),
        ({"active": 3, "ready": 2}, False),
        ({"active": 3, "ready": 3}, True),
        ({"active": 1, "ready": 1, "succeeded": 2}, True),
        ({"ready": 1, "succeeded": 1, "uncountedTerminatedPods": {"succeeded": ["x"]}}, True),
        ({"ready": 1, "failed": 2}, False),
    ],
)
def test_ready_counts_ready_and_succeeded_pods(status: dict[str, Any], ready: bool) -> None:
    facts = batch_job.run_facts(decoded(manifest() | {"status": status}))
    assert facts.are_pods_ready is ready
    assert facts.has_active_pods is bool(status.get("active"))


@pytest.mark.parametrize(
    ("type_", "status", "ending"),
    [
        ("Complete", "True", JobEnding(True, "m")),
        ("Failed", "True", JobEnding(False, "m")),
        ("Complete", "False", None),
        ("Suspended", "True", None),
    ],
)
def test_how_a_job_ends(type_: str, status: str, ending: JobEnding | None) -> None:
    conditions = [{"type": type_, "status": status, "message": "m"}]
    assert batch_job.run_facts(decoded(manifest() | {"status": {"conditions": conditions}})).ending == ending


@pytest.mark.parametrize(("succeeded", "spare"), [(0, {}), (2, {}), (3, {"main": 1}), (4, {"main": 2})])
def test_pods_that_will_not_be_needed_again_are_reclaimable(succeeded: int, spare: dict[str, int]) -> None:
    job = decoded(manifest() | {"status": {"succeeded": succeeded}})
    assert batch_job.run_facts(job).reclaimable == spare
