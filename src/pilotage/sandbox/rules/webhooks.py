"""Admission webhooks: which writes a configuration concerns, what is sent to it, and what its answer means.

The words of rejections are those of the API server. Calling is not here: `http/admission_webhooks.py`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from pilotage.cel import CelCompileError, CelError
from pilotage.model.selectors import LabelSelector
from pilotage.sandbox.errors import ApiError, FieldError
from pilotage.sandbox.rules.admission_policies import (
    Evaluation,
    Expression,
    MatchResources,
    PolicyMatch,
    PolicyPart,
    ResourceRule,
    Write,
    compiled,
    one_of,
    without_nulls,
)
from pilotage.sandbox.rules.json_fields import Json, dict_or_empty
from pilotage.sandbox.rules.patch import JSON_PATCH, apply_patch

MUTATING, VALIDATING = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"
_LONGEST_WAIT: Final = 30
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")

_encode = msgspec.json.Encoder().encode


class ServiceReference(PolicyPart, frozen=True):
    namespace: str = ""
    name: str = ""
    path: str = ""
    port: int = 443


class ClientConfig(PolicyPart, frozen=True):
    url: str = ""
    service: ServiceReference | None = None
    ca_bundle: str = ""


class Webhook(PolicyPart, frozen=True):
    """One webhook of a configuration, with the fields of PolicyMatch's specs."""

    name: str = ""
    client_config: ClientConfig = ClientConfig()
    rules: tuple[ResourceRule, ...] = ()
    failure_policy: str = "Fail"
    match_policy: str = "Equivalent"
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    side_effects: str = ""
    timeout_seconds: int = 10
    admission_review_versions: tuple[str, ...] = ()
    match_conditions: tuple[Expression, ...] | None = None
    reinvocation_policy: str = "Never"

    @property
    def variables(self) -> tuple[Expression, ...]:
        return ()

    @property
    def match_constraints(self) -> MatchResources:
        return MatchResources(self.rules, None, self.namespace_selector, self.object_selector)


class WebhookMatch(PolicyMatch):
    """A webhook that is ready to be asked; CelCompileError if a condition is none."""

    spec: Webhook

    def wants(self, write: Write) -> bool:
        """Whether it is to be asked about the write. ApiError if a condition fails and `failurePolicy` is Fail."""
        if not self.matches(write):
            return False
        try:
            return self.applies(Evaluation({}, write, None))
        except CelError as error:
            if self.spec.failure_policy == "Ignore":
                return False
            raise ApiError(403, "Forbidden", str(error)) from None


class WebhookAnswer(msgspec.Struct, frozen=True):
    """What a webhook answered to a write that it allows."""

    obj: Json | None
    warnings: tuple[str, ...] = ()


def webhooks_of(configuration: Json) -> Iterator[WebhookMatch]:
    """In their order; one that an earlier version of the sandbox let in may be none."""
    for one in msgspec.convert(without_nulls(configuration.get("webhooks") or []), tuple[Webhook, ...]):
        yield WebhookMatch(one.name, one)


def review_of(write: Write, uid: str, options: Mapping[str, Any]) -> bytes:
    """The AdmissionReview that asks about the write."""
    request = {
        "uid": uid,
        **write.request(),
        "object": write.new,
        "oldObject": write.old,
        "options": dict(options) or None,
    }
    if not write.subresource:
        del request["subResource"], request["requestSubResource"]
    return _encode({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})


def answer_of(webhook: Webhook, write: Write, uid: str, status: int, body: bytes) -> WebhookAnswer:
    """What the answer means. ApiError if it rejects the write; CallFailed if it is no answer."""
    if status != 200:
        raise CallFailed(
            webhook,
            f"an error on the server ({body[:200].decode(errors='replace').strip()!r}) has "
            "prevented the request from succeeding",
        )
    try:
        review = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise CallFailed(webhook, f"couldn't get version/kind; json parse error: {error}") from None
    response = dict_or_empty(review.get("response")) if isinstance(review, dict) else {}
    if not response:
        raise CallFailed(webhook, "webhook response was absent")
    if response.get("uid") != uid:
        raise CallFailed(webhook, f"expected response.uid={uid!r}, got {response.get('uid')!r}")
    warnings = tuple(str(one) for one in response.get("warnings") or ())
    if response.get("allowed") is not True:
        raise _denied(webhook.name, dict_or_empty(response.get("status")))
    patch = response.get("patch")
    if not patch:
        return WebhookAnswer(write.new, warnings)
    if response.get("patchType") != "JSONPatch":
        raise CallFailed(webhook, f"webhook returned response.patch but patchType {response.get('patchType')!r}")
    try:
        decoded = base64.b64decode(patch, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise CallFailed(webhook, "response.patch is not base64") from None
    return WebhookAnswer(apply_patch(JSON_PATCH, write.kind, write.new or {}, decoded), warnings)


class CallFailed(Exception):
    """A webhook did not answer, or not as it should."""

    def __init__(self, webhook: Webhook, problem: str) -> None:
        super().__init__(problem)
        self.webhook = webhook

    def rejection(self) -> ApiError:
        """The answer to the client if the webhook's `failurePolicy` is Fail."""
        text = f'failed calling webhook "{self.webhook.name}": {self}'
        return ApiError(500, "InternalError", f"Internal error occurred: {text}", {"causes": [{"message": text}]})


def _denied(name: str, status: Json) -> ApiError:
    text = f'admission webhook "{name}" denied the request'
    reason, message = status.get("reason"), status.get("message")
    if message:
        text = f"{text}: {message}"
    elif reason:
        text = f"{text}: {reason}"
    else:
        text = f"{text} without explanation"
    code = status.get("code")
    code = code if isinstance(code, int) and 400 <= code < 600 else 403 if not reason else 400
    details = dict_or_empty(status.get("details"))
    return ApiError(code, str(reason or ("Forbidden" if code == 403 else "")), text, details or None)


# --- what a configuration may be --------------------------------------------------------------------------------------


def webhook_configuration_errors(obj: Json) -> list[FieldError]:
    """Why the configuration cannot be used."""
    try:
        webhooks = msgspec.convert(without_nulls(obj.get("webhooks") or []), tuple[Webhook, ...])
    except msgspec.ValidationError as error:
        return [FieldError("webhooks", str(error), "", "FieldValueTypeInvalid")]
    errors: list[FieldError] = []
    names: set[str] = set()
    for at, webhook in enumerate(webhooks):
        path = f"webhooks[{at}]"
        if webhook.name in names:
            errors.append(FieldError(f"{path}.name", value=webhook.name, type="FieldValueDuplicate"))
        names.add(webhook.name)
        errors += _webhook_errors(path, webhook)
    return errors


def _webhook_errors(path: str, webhook: Webhook) -> Iterator[FieldError]:
    if len([part for part in webhook.name.split(".") if part]) < 3:
        yield FieldError(
            f"{path}.name", "should be a domain with at least three segments separated by dots", webhook.name
        )
    yield from _address_errors(f"{path}.clientConfig", webhook.client_config)
    if not webhook.side_effects:
        problem = f"must specify one of {', '.join(_SIDE_EFFECTS)}"
        yield FieldError(f"{path}.sideEffects", problem, type="FieldValueRequired")
    else:
        yield from one_of(f"{path}.sideEffects", webhook.side_effects, _SIDE_EFFECTS)
    yield from one_of(f"{path}.failurePolicy", webhook.failure_policy, ("Fail", "Ignore"))
    yield from one_of(f"{path}.matchPolicy", webhook.match_policy, ("Equivalent", "Exact"))
    yield from one_of(f"{path}.reinvocationPolicy", webhook.reinvocation_policy, ("IfNeeded", "Never"))
    if not 1 <= webhook.timeout_seconds <= _LONGEST_WAIT:
        problem = "the timeout value must be between 1 and 30 seconds"
        yield FieldError(f"{path}.timeoutSeconds", problem, webhook.timeout_seconds)
    versions = f"{path}.admissionReviewVersions"
    if not webhook.admission_review_versions:
        problem = "must specify one of v1, v1beta1"
        yield FieldError(versions, problem, type="FieldValueRequired")
    elif "v1" not in webhook.admission_review_versions:
        yield FieldError(versions, "must include at least one of v1, v1beta1", list(webhook.admission_review_versions))
    for at, condition in enumerate(webhook.match_conditions or ()):
        try:
            compiled(condition.expression)
        except CelCompileError as error:
            where = f"{path}.matchConditions[{at}].expression"
            yield FieldError(where, f"compilation failed: {error}", condition.expression)


def _address_errors(path: str, client: ClientConfig) -> Iterator[FieldError]:
    if bool(client.url) == (client.service is not None):
        yield FieldError(path, "exactly one of url or service is required", type="FieldValueRequired")
    elif client.url:
        if urlsplit(client.url).scheme != "https":
            yield FieldError(f"{path}.url", "'https' is the only allowed URL scheme", client.url)
        elif not urlsplit(client.url).hostname:
            yield FieldError(f"{path}.url", "host must be specified", client.url)
    elif client.service is not None:
        for field in ("name", "namespace"):
            if not getattr(client.service, field):
                yield FieldError(f"{path}.service.{field}", type="FieldValueRequired")
    try:
        base64.b64decode(client.ca_bundle, validate=True)
    except binascii.Error:
        yield FieldError(f"{path}.caBundle", "must be base64", client.ca_bundle[:20])
