"""The webhook that holds back what names a queue."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from pilotage.model import queue_admission
from pilotage.sandbox.rules.json_patch import apply_operations
from pilotage.serve.admission_pages import PATH, admission_pages
from pilotage.serve.page import PageRequest

Json = dict[str, Any]
QUEUED = {queue_admission.QUEUE_NAME: "lq"}


def review(obj: Any, operation: str = "CREATE", frameworks: frozenset[str] = queue_admission.FRAMEWORKS) -> Json:
    asked = {"kind": "AdmissionReview", "request": {"uid": "1", "operation": operation, "object": obj}}
    body = json.dumps(asked).encode()
    answer = admission_pages(frameworks)[PATH](PageRequest(PATH, "POST", {"timeout": ["5s"]}, body=body))
    assert answer.status == 200
    found: Json = json.loads(answer.body)["response"]
    return found


def test_a_running_job_is_answered_with_a_patch_that_suspends_it() -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"labels": QUEUED}, "spec": {"parallelism": 2}}
    found = review(job)
    assert (found["uid"], found["allowed"], found["patchType"]) == ("1", True, "JSONPatch")
    changed = apply_operations(job, json.loads(base64.b64decode(found["patch"])))
    assert changed["spec"] == {"parallelism": 2, "suspend": True}


@pytest.mark.parametrize(
    ("obj", "operation"),
    [
        pytest.param({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {}}, "CREATE", id="names no queue"),
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": QUEUED}, "spec": {}}, "UPDATE", id="is there"
        ),
        pytest.param({"metadata": {"labels": QUEUED}}, "CREATE", id="says not what it is"),
    ],
)
def test_what_is_not_its_business_is_allowed_as_it_is(obj: Json, operation: str) -> None:
    assert review(obj, operation) == {"uid": "1", "allowed": True}


def test_what_cannot_be_queued_is_refused_with_the_reason() -> None:
    job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"labels": QUEUED}}
    found = review(job)
    assert not found["allowed"] and found["status"]["code"] == 403
    assert "TrainJobs are not queued" in found["status"]["message"]
    assert review(job, "UPDATE")["allowed"], "it is there already"


def test_kinds_that_are_not_configured_are_left_alone() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": QUEUED}, "spec": {}}
    assert "patch" not in review(pod, frameworks=frozenset({"batch/job"}))


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"request": 1}', b'{"request": {"uid": "1", "object": null}}'])
def test_what_is_no_review_is_refused(body: bytes) -> None:
    answer = admission_pages(queue_admission.FRAMEWORKS)[PATH](PageRequest(PATH, "POST", body=body))
    assert answer.status == 400
    assert admission_pages(queue_admission.FRAMEWORKS)[PATH](PageRequest(PATH)).status == 405
