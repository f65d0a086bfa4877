"""The webhook of workload queueing, for clusters without MutatingAdmissionPolicies: AdmissionReview in, patch out.

It knows nothing but what it is sent and changes nothing by itself, so that whoever may reach it may ask it.
"""

from __future__ import annotations

import base64
from copy import deepcopy
from typing import Any, Final

import msgspec

from pilotage.model import queue_admission
from pilotage.serve.page import Page, PageAnswer, PageRequest, error_answer, json_answer

PATH: Final = "/admission/queued"
_REVIEW: Final = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}


def admission_pages(frameworks: frozenset[str]) -> dict[str, Page]:
    """`frameworks`: the integrations whose objects are held back."""

    def answer(request: PageRequest) -> PageAnswer:
        if request.method != "POST":
            return error_answer(405, "MethodNotAllowed", "send an AdmissionReview by POST")
        try:
            asked = msgspec.json.decode(request.body, type=dict[str, Any])["request"]
            uid, operation, obj = asked["uid"], asked["operation"], asked["object"]
            if type(obj) is not dict or type(uid) is not str:
                raise TypeError("request.object must be an object and request.uid a text")
        except (msgspec.DecodeError, KeyError, TypeError) as error:
            return error_answer(400, "BadRequest", f"this is no AdmissionReview: {type(error).__name__}: {error}")
        if operation == "CREATE" and (why := queue_admission.refusal(obj)):
            refused = {"uid": uid, "allowed": False, "status": {"code": 403, "reason": "Forbidden", "message": why}}
            return json_answer({**_REVIEW, "response": refused})
        return json_answer({**_REVIEW, "response": {"uid": uid, "allowed": True, **_patch(obj, operation, frameworks)}})

    return {PATH: answer}


def _patch(obj: dict[str, Any], operation: Any, frameworks: frozenset[str]) -> dict[str, str]:
    admitted = deepcopy(obj)
    if not queue_admission.admit(admitted, frameworks, is_new=operation == "CREATE"):
        return {}
    patch = msgspec.json.encode(queue_admission.differences(obj, admitted))
    return {"patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}
