"""What admission does to an object that names a queue, whatever that object looks like."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.model.queue_admission import (
    FRAMEWORKS,
    GATE,
    HELD,
    LABELLED,
    QUEUE_NAME,
    SUSPENDED,
    admit,
    differences,
    refusal,
)
from pilotage.sandbox.rules.json_patch import apply_operations

Json = dict[str, Any]
KINDS = [("", "Pod"), *SUSPENDED, *LABELLED]
SCALARS = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x", GATE, "true", "lq"])
KEYS = st.sampled_from(
    ["spec", "metadata", "labels", "template", "suspend", "runPolicy", "schedulingGates", "name", QUEUE_NAME, "a/b~c"]
)
ANY_JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)


def of(kind: tuple[str, str], spec: Any, **metadata: Any) -> Json:
    group, name = kind
    metadata = {"labels": {QUEUE_NAME: "lq"}, **metadata}
    return {"apiVersion": f"{group}/v1" if group else "v1", "kind": name, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(("kind", "known"), [(kind, SUSPENDED[kind]) for kind in SUSPENDED])
def test_every_kind_that_can_be_suspended_is(kind: tuple[str, str], known: tuple[str, tuple[str, ...]]) -> None:
    obj = of(kind, {})
    assert admit(obj)
    value: Any = obj
    for key in known[1]:
        value = value[key]
    assert value is True
    assert not admit(obj), "once is enough"
    assert not admit(of(kind, {}), FRAMEWORKS - {known[0]}), "its integration is off"
    assert not admit(of(kind, {}), is_new=False), "it may run already"


def test_a_job_that_belongs_to_a_job_is_marked() -> None:
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "a", "controller": True}
    child = of(("batch", "Job"), {}, ownerReferences=[owner])
    admit(child)
    assert child["metadata"]["annotations"] == {HELD: "true"}
    by_cron = of(("batch", "Job"), {}, ownerReferences=[{**owner, "apiVersion": "batch/v1", "kind": "CronJob"}])
    admit(by_cron)
    assert "annotations" not in by_cron["metadata"]


@pytest.mark.parametrize("template", [{}, {"metadata": {"labels": {"a": "b"}}, "spec": {"suspend": False}}])
def test_the_jobs_of_a_cron_job_get_its_queue(template: Json) -> None:
    cron_job = of(("batch", "CronJob"), {"schedule": "* * * * *", "jobTemplate": deepcopy(template)})
    assert admit(cron_job)
    made = cron_job["spec"]["jobTemplate"]
    assert made["metadata"]["labels"] == {**template.get("metadata", {}).get("labels", {}), QUEUE_NAME: "lq"}
    assert made.get("spec") == template.get("spec"), "each Job is held back when it is created"
    assert admit(of(("batch", "CronJob"), {"jobTemplate": {}}), is_new=False), "a label may be written later"
    assert not admit(of(("batch", "CronJob"), {"jobTemplate": {}}), FRAMEWORKS - {"batch/job"})


def test_the_clusters_of_a_ray_service_are_queued_by_the_label_that_it_hands_them() -> None:
    owner = {"apiVersion": "ray.io/v1", "kind": "RayService", "name": "a", "controller": True}
    cluster = of(("ray.io", "RayCluster"), {}, ownerReferences=[owner])
    assert admit(cluster) and cluster["spec"]["suspend"] is True
    assert "annotations" not in cluster["metadata"], "it waits for its own turn"


def test_what_cannot_be_queued_is_refused_if_it_names_a_queue() -> None:
    job = of(("trainer.kubeflow.org", "TrainJob"), {"runtimeRef": {"name": "torch-distributed"}})
    assert "TrainJobs are not queued" in refusal(job)
    job["metadata"]["labels"] = {}
    assert refusal(job) == refusal(of(("batch", "Job"), {})) == ""


def test_a_job_without_labels_takes_those_of_its_pods() -> None:
    job = of(("batch", "Job"), {"template": {"metadata": {"labels": {QUEUE_NAME: "lq"}}}}, labels={})
    assert admit(job) and job["spec"]["suspend"] is True


@given(kind=st.sampled_from(KINDS), spec=ANY_JSON, metadata=ANY_JSON)
def test_whatever_it_looks_like_it_is_changed_twice_as_once_and_as_the_patch_says(
    kind: tuple[str, str], spec: Any, metadata: Any
) -> None:
    obj = of(kind, spec)
    obj["metadata"] = metadata
    before = deepcopy(obj)
    changed = admit(obj)
    assert changed == (obj != before)
    again = deepcopy(obj)
    assert not admit(again) and again == obj
    assert apply_operations(deepcopy(before), differences(before, obj)) == obj
    assert not admit(before, frozenset()), "nothing is configured"
