"""Admission webhooks are asked before a write is carried out.

    what the write would make (a dry run) -> webhooks that mutate, one after the other -> what that would make
        -> webhooks that validate, all at once -> the write

The verbs of the API server are synchronous and know nothing of this: a write that concerns a webhook is tried out first
and carried out last, and an update only if nobody changed the object in between. Where nothing is configured, and that
is nearly always, a request costs one look. Controllers write through here too: see `life/loop.py`.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from pilotage.kube.connection import Connection
from pilotage.kube.credentials import StaticCredentials
from pilotage.kube.errors import KubeconfigError
from pilotage.kube.http_transport import HttpSettings, HttpTransport
from pilotage.kube.source import Inline
from pilotage.kube.tls import TlsSettings
from pilotage.kube.transport import TransportError
from pilotage.rng import random_uid
from pilotage.sandbox.api import Api
from pilotage.sandbox.errors import ApiError, bad_request
from pilotage.sandbox.http.bodies import warning_headers
from pilotage.sandbox.http.exchange import Request, ServerResponse, encode_json, error_response
from pilotage.sandbox.http.routes.paths import Paths, Target
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.operations.lookup import CachedLookup
from pilotage.sandbox.operations.policies import MUTATING_WEBHOOKS, USER, VALIDATING_WEBHOOKS, about
from pilotage.sandbox.rules.admission_policies import Write
from pilotage.sandbox.rules.json_fields import Json, dict_or_empty
from pilotage.sandbox.rules.webhooks import CallFailed, WebhookAnswer, WebhookMatch, answer_of, review_of, webhooks_of
from pilotage.sandbox.storage.records import Change, Key

OPERATIONS: Final[Mapping[str, str]] = {"POST": "CREATE", "PUT": "UPDATE", "PATCH": "UPDATE", "DELETE": "DELETE"}
_TRIES: Final = 5
_MOST_ANSWERED: Final = 16 << 20
_MOST_DELETED: Final = 10_000
_EXEMPT: Final = frozenset({MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS})
# What the server gives to an object that is created, and a client may not send.
_GIVEN: Final = ("uid", "creationTimestamp", "resourceVersion", "generation", "selfLink")

Dispatch = Callable[[Request], Any]


class AdmissionWebhooks:
    """The webhooks of one sandbox."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._paths = Paths(api.registry)
        self._lookup = CachedLookup(api.store)
        self._configured: dict[str, tuple[WebhookMatch, ...]] | None = None
        self._concerned: dict[tuple[str, ...], bool] = {}
        self._transports: dict[tuple[str, bytes, str], HttpTransport] = {}
        self.are_there = True
        """Whether there may be any."""
        for resource in _EXEMPT:
            api.store.subscribe(resource, self._forget)

    def concern(self, resource_type: ResourceType, operation: str, subresource: str = "") -> bool:
        """Whether some webhook may want to see such a write."""
        if self._configured is None:
            self._look()
        if not self.are_there or resource_type.storage in _EXEMPT:
            return False
        key = (resource_type.api_version, resource_type.plural, operation, subresource)
        known = self._concerned.get(key)
        if known is None:
            write = replace(about(resource_type, operation), subresource=subresource)
            hooks = (*self._of(MUTATING_WEBHOOKS), *self._of(VALIDATING_WEBHOOKS))
            known = self._concerned[key] = any(one.may_match(write) for one in hooks)
        return known

    async def respond(self, request: Request, dispatch: Dispatch) -> Any:
        """The answer to a request; `dispatch` carries it out."""
        try:
            target = self._concerned_target(request)
            if target is None:
                return dispatch(request)
            for _ in range(_TRIES):
                answer = await self._carried_out(request, target, dispatch)
                # A patch goes onto whatever is there: somebody was quicker with another one.
                if request.method != "PATCH" or answer.status != 409:
                    break
            return answer
        except ApiError as error:
            return error_response(error)

    def _concerned_target(self, request: Request) -> Target | None:
        operation = OPERATIONS.get(request.method)
        target = None if operation is None else self._paths.target_of(request.path)
        if target is None or operation is None:
            return None
        return target if self.concern(target.resource_type, operation, target.subresource) else None

    async def _carried_out(self, request: Request, target: Target, dispatch: Dispatch) -> ServerResponse:
        warnings: list[str] = []
        if request.method == "DELETE":
            await self._judge_deletion(request, target, dispatch, warnings)
            return _with_warnings(dispatch(request), warnings)
        is_action = request.method == "POST" and bool(target.subresource)
        tried = _Trial(request.body) if is_action else _Trial.of(dispatch(_dry(request)))
        if tried.rejection is not None:
            return tried.rejection
        write = self._write(request, target, tried.obj)
        mutated = await self._mutated(write, request, warnings)
        if mutated is not write.new and mutated is not None and mutated != write.new:
            request = _with_object(request, mutated)
            if not is_action:
                tried = _Trial.of(dispatch(_dry(request)))
                if tried.rejection is not None:
                    return tried.rejection
                mutated = tried.obj
        await self._judged(replace(write, new=mutated), request, warnings)
        return _with_warnings(dispatch(request), warnings)

    async def _judge_deletion(self, request: Request, target: Target, dispatch: Dispatch, warnings: list[str]) -> None:
        if target.name:
            objects = [self._old(target, target.name)]
        else:
            found = dispatch(Request("GET", request.path, {**request.query, "limit": str(_MOST_DELETED)}))
            objects = msgspec.json.decode(found.body).get("items") or [] if found.status == 200 else []
        for obj in objects:
            if obj is not None:
                write = self._write(request, target, None, obj)
                await self._judged(write, request, warnings)

    def _write(self, request: Request, target: Target, new: Json | None, old: Json | None = None) -> Write:
        resource_type = target.resource_type
        operation = OPERATIONS[request.method]
        name = target.name or dict_or_empty((new or old or {}).get("metadata")).get("name", "")
        if operation == "UPDATE":
            old = self._old(target, name)
        namespace = target.namespace or ""
        return replace(
            about(resource_type, operation),
            subresource=target.subresource,
            name=name,
            namespace=namespace,
            new=new,
            old=old,
            namespace_object=self._lookup.get("namespaces", "", namespace) if namespace else None,
            is_dry_run=request.query.get("dryRun") == "All",
            user=dict(request.user or USER),
        )

    def _old(self, target: Target, name: str) -> Json | None:
        record = self._api.store.get(Key(target.resource_type.storage, target.namespace or "", name))
        return None if record is None else record.object()

    async def _mutated(self, write: Write, request: Request, warnings: list[str]) -> Json | None:
        hooks = self._of(MUTATING_WEBHOOKS)
        seen: dict[WebhookMatch, Json | None] = {}
        for is_again in (False, True):
            for one in hooks:
                if is_again and (one.spec.reinvocation_policy != "IfNeeded" or seen.get(one, write.new) == write.new):
                    continue
                if one.wants(write):
                    answer = await self._asked(one, write, request)
                    warnings += answer.warnings
                    write = replace(write, new=answer.obj)
                    seen[one] = answer.obj
        return write.new

    async def _judged(self, write: Write, request: Request, warnings: list[str]) -> None:
        hooks = [one for one in self._of(VALIDATING_WEBHOOKS) if one.wants(write)]
        answers = await asyncio.gather(*(self._asked(one, write, request) for one in hooks), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            warnings += answer.warnings

    async def _asked(self, hook: WebhookMatch, write: Write, request: Request) -> WebhookAnswer:
        if write.is_dry_run and hook.spec.side_effects not in ("None", "NoneOnDryRun"):
            raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
        uid = random_uid(self._api.rng)
        try:
            status, body = await self._called(hook, review_of(write, uid, _options(request)))
            return answer_of(hook.spec, write, uid, status, body)
        except CallFailed as failure:
            if hook.spec.failure_policy == "Ignore":
                return WebhookAnswer(write.new)
            raise failure.rejection() from None

    async def _called(self, hook: WebhookMatch, body: bytes) -> tuple[int, bytes]:
        server, path, server_name = self._address(hook)
        seconds = hook.spec.timeout_seconds
        try:
            transport = self._transport(server, base64.b64decode(hook.spec.client_config.ca_bundle), server_name)
            async with asyncio.timeout(seconds):
                answer = await transport.request(
                    "POST",
                    path,
                    query={"timeout": f"{seconds}s"},
                    body=body,
                    timeout_seconds=2 * seconds,
                    most_bytes=_MOST_ANSWERED,
                )
        except TimeoutError:
            problem = f'failed to call webhook: Post "{server}{path}": context deadline exceeded'
            raise CallFailed(hook.spec, problem) from None
        except (TransportError, KubeconfigError) as error:
            raise CallFailed(hook.spec, f'failed to call webhook: Post "{server}{path}": {error}') from None
        return answer.status, answer.body

    def _address(self, hook: WebhookMatch) -> tuple[str, str, str]:
        """Server, path, and the name that its certificate must have. CallFailed if there is no one to call."""
        client = hook.spec.client_config
        if client.service is None:
            parts = urlsplit(client.url)
            return f"https://{parts.netloc}", parts.path or "/", parts.hostname or ""
        reference = client.service
        address = self._service_address(hook, reference.namespace, reference.name)
        path = f"/{reference.path.lstrip('/')}"
        return f"https://{address}:{reference.port}", path, f"{reference.name}.{reference.namespace}.svc"

    def _service_address(self, hook: WebhookMatch, namespace: str, name: str) -> str:
        """There is no network in which a cluster IP leads to a pod, but Services may lead out of the cluster."""
        service = self._lookup.get("services", namespace, name)
        if service is None:
            raise CallFailed(hook.spec, f'failed to call webhook: service "{name}" not found')
        spec = dict_or_empty(service.get("spec"))
        if spec.get("type") == "ExternalName" and isinstance(spec.get("externalName"), str):
            return str(spec["externalName"])
        raise CallFailed(
            hook.spec,
            f'failed to call webhook: pods of the sandbox run no containers, so none answers for service "{name}"; let '
            "the webhook run outside and give its url, or make the service one of type ExternalName",
        )

    def _transport(self, server: str, authority: bytes, server_name: str) -> HttpTransport:
        key = (server, authority, server_name)
        found = self._transports.get(key)
        if found is None:
            tls = TlsSettings(Inline(authority) if authority else None, False, server_name or None)
            connection = Connection(server, tls, StaticCredentials(), "the webhook")
            settings = HttpSettings(connect_seconds=10.0, peer="webhook")
            found = self._transports[key] = HttpTransport(connection, settings)
        return found

    def _of(self, resource: str) -> tuple[WebhookMatch, ...]:
        return () if self._configured is None else self._configured[resource]

    def _forget(self, change: Change) -> None:
        self._configured, self.are_there = None, True

    def _look(self) -> None:
        self._concerned.clear()
        self._configured = {}
        for resource in _EXEMPT:
            found = sorted(self._lookup.list(resource), key=lambda obj: str(obj["metadata"]["name"]))
            self._configured[resource] = tuple(one for obj in found for one in webhooks_of(obj))
        self.are_there = any(self._configured.values())


class _Trial(msgspec.Struct):
    """What a write would make, or why it would be rejected."""

    body: bytes
    rejection: ServerResponse | None = None

    @classmethod
    def of(cls, answer: ServerResponse) -> _Trial:
        return cls(answer.body, answer if answer.status >= 300 else None)

    @property
    def obj(self) -> Json:
        found: Json = msgspec.json.decode(self.body)
        return found


def _dry(request: Request) -> Request:
    headers = {**request.headers, "accept": "application/json"}
    return msgspec.structs.replace(request, query={**request.query, "dryRun": "All"}, headers=headers)


def _with_object(request: Request, obj: Json) -> Request:
    """The same write with another object: what was judged strictly before is not judged so again."""
    query = {name: value for name, value in request.query.items() if name not in ("fieldValidation", "force")}
    if request.method == "POST":
        metadata = {name: value for name, value in obj["metadata"].items() if name not in _GIVEN}
        obj = {**obj, "metadata": metadata}
    headers = {**request.headers, "content-type": "application/json"}
    method = "PUT" if request.method == "PATCH" else request.method
    return msgspec.structs.replace(request, method=method, query=query, headers=headers, body=encode_json(obj))


def _options(request: Request) -> Mapping[str, Any]:
    kind = {"POST": "CreateOptions", "DELETE": "DeleteOptions", "PATCH": "PatchOptions"}.get(
        request.method, "UpdateOptions"
    )
    given: dict[str, Any] = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    if "fieldManager" in request.query:
        given["fieldManager"] = request.query["fieldManager"]
    if request.query.get("dryRun"):
        given["dryRun"] = [request.query["dryRun"]]
    return given


def _with_warnings(answer: ServerResponse, warnings: Iterable[str]) -> ServerResponse:
    headers = warning_headers(list(warnings))
    return msgspec.structs.replace(answer, headers=(*answer.headers, *headers)) if headers else answer
