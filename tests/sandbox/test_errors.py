from __future__ import annotations

import pytest

from pilotage.sandbox import errors
from pilotage.sandbox.errors import ApiError, FieldError


@pytest.mark.parametrize(
    ("error", "code", "reason", "message"),
    [
        (errors.not_found("pods", "x"), 404, "NotFound", 'pods "x" not found'),
        (errors.not_found("deployments.apps", "x"), 404, "NotFound", 'deployments.apps "x" not found'),
        (errors.already_exists("pods", "x"), 409, "AlreadyExists", 'pods "x" already exists'),
        (
            errors.modified("pods", "x"),
            409,
            "Conflict",
            'Operation cannot be fulfilled on pods "x": the object has been modified; '
            "please apply your changes to the latest version and try again",
        ),
        (errors.forbidden("pods", "x", "no"), 403, "Forbidden", 'pods "x" is forbidden: no'),
        (errors.gone("too old"), 410, "Expired", "too old"),
        (errors.unauthorized(), 401, "Unauthorized", "Unauthorized"),
        (errors.internal_error("boom"), 500, "InternalError", "Internal error occurred: boom"),
    ],
    ids=lambda value: value.reason if isinstance(value, ApiError) else "",
)
def test_errors_speak_as_the_api_server_does(error: ApiError, code: int, reason: str, message: str) -> None:
    status = error.status()
    assert (status["code"], status["reason"], status["message"]) == (code, reason, message)
    assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FieldError("spec.a", type="FieldValueRequired"), "spec.a: Required value"),
        (FieldError("spec.a", "say it", type="FieldValueRequired"), "spec.a: Required value: say it"),
        (FieldError("spec.a", "must be big", 1), "spec.a: Invalid value: 1: must be big"),
        (FieldError("spec.a", "no", "x"), 'spec.a: Invalid value: "x": no'),
        (FieldError("spec.a", "no", {"b": [1]}), 'spec.a: Invalid value: {"b":[1]}: no'),
        (FieldError("spec.a", "frozen", type="FieldValueForbidden"), "spec.a: Forbidden: frozen"),
        (FieldError("spec.a", value="x", type="FieldValueDuplicate"), 'spec.a: Duplicate value: "x"'),
        (
            FieldError("spec.a", 'supported values: "b"', "x", "FieldValueNotSupported"),
            'spec.a: Unsupported value: "x": supported values: "b"',
        ),
    ],
)
def test_field_errors_read_as_kubectl_users_know_them(error: FieldError, text: str) -> None:
    assert str(error) == text


def test_an_enormous_value_is_cut_in_the_message() -> None:
    assert len(str(FieldError("spec.a", "no", "x" * 10_000))) < 300


def test_invalid_lists_every_field_in_message_and_causes() -> None:
    wrong = [FieldError("spec.a", type="FieldValueRequired"), FieldError("spec.b", "no", 1)]
    status = errors.invalid("Deployment", "apps", "web", wrong).status()
    assert status["message"] == (
        'Deployment.apps "web" is invalid: [spec.a: Required value, spec.b: Invalid value: 1: no]'
    )
    assert status["code"] == 422
    assert status["details"]["causes"] == [
        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.a"},
        {"reason": "FieldValueInvalid", "message": "Invalid value: 1: no", "field": "spec.b"},
    ]


def test_details_name_resource_and_group_apart() -> None:
    status = errors.not_found("deployments.apps", "web").status()
    assert status["details"] == {"name": "web", "group": "apps", "kind": "deployments"}


def test_retry_after_is_part_of_the_details() -> None:
    assert errors.too_many_requests("later", retry_after=10).status()["details"]["retryAfterSeconds"] == 10
