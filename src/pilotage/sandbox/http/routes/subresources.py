"""What hangs below an object besides its status: binding, eviction and scale; and what a sandbox cannot offer."""

from __future__ import annotations

from typing import Any, Final

from pilotage.sandbox.api import Api
from pilotage.sandbox.errors import ApiError, FieldError, bad_request, invalid, method_not_allowed, not_implemented
from pilotage.sandbox.http.account_tokens import AccountTokens
from pilotage.sandbox.http.bodies import (
    apply_request_in,
    author_in,
    is_apply,
    is_dry_run,
    object_in,
    patch_in,
)
from pilotage.sandbox.http.exchange import Request, ServerResponse, json_response, success_status
from pilotage.sandbox.http.routes.commands import pod_command
from pilotage.sandbox.http.routes.logs import pod_log
from pilotage.sandbox.http.routes.paths import Target
from pilotage.sandbox.kinds.shapes import check_options_shape
from pilotage.sandbox.operations.binding import target_of

_NO_CONTAINERS: Final = frozenset({"attach", "portforward", "proxy"})
_BOUND: Final = json_response(success_status(), 201)


class Subresources:
    """The subresources that are no plain view of the object."""

    def __init__(self, api: Api, accounts: AccountTokens) -> None:
        self._api = api
        self._accounts = accounts

    def handles(self, subresource: str) -> bool:
        return subresource in ("binding", "eviction", "exec", "log", "scale", "token") or subresource in _NO_CONTAINERS

    def handle(self, request: Request, target: Target) -> ServerResponse:
        subresource = target.subresource
        if subresource in _NO_CONTAINERS:
            return self._no_containers(target)
        if subresource == "scale":
            return self._scale(request, target)
        if subresource == "log":
            return self._log(request, target)
        if subresource == "exec":
            return pod_command(self._pod(target), request.query, self._api)
        if request.method != "POST":
            raise method_not_allowed(request.method.lower(), f"{target.resource_type.plural}/{subresource}")
        if subresource == "token":
            return json_response(self._accounts.issue(target.own_namespace, target.name, object_in(request)), 201)
        if subresource == "binding":
            return self.bind(request, target.own_namespace, target.name)
        return self._evict(request, target)

    def bind(self, request: Request, namespace: str, name: str) -> ServerResponse:
        """A Binding, posted to the pod's subresource or (name "") to the bindings of the namespace."""
        binding = object_in(request)
        check_options_shape("Binding", binding)
        metadata = binding.get("metadata") or {}
        own_name = metadata.get("name") or name
        if name and own_name != name:
            raise bad_request(f"the name of the object ({own_name}) does not match the name on the URL ({name})")
        if not own_name:
            raise _name_required("Binding")
        uid = metadata.get("uid")
        node = target_of(binding)
        self._api.verbs.bind(namespace, own_name, node, uid=uid, dry_run=is_dry_run(request))
        return _BOUND

    def _evict(self, request: Request, target: Target) -> ServerResponse:
        eviction = object_in(request)
        check_options_shape("Eviction", eviction)
        name = (eviction.get("metadata") or {}).get("name") or target.name
        if name != target.name:
            raise bad_request("name in URL does not match name in Eviction object")
        options = eviction.get("deleteOptions") or {}
        dry_run = is_dry_run(request) or options.get("dryRun") == ["All"]
        self._api.verbs.evict(target.own_namespace, name, options, dry_run=dry_run)
        return json_response(success_status(), 201)

    def _scale(self, request: Request, target: Target) -> ServerResponse:
        verbs = self._api.verbs
        resource_type = target.resource_type
        record = verbs.read(resource_type, target.own_namespace, target.name)
        match request.method:
            case "GET":
                return json_response(verbs.scale(resource_type, record))
            case "PUT":
                author, wanted = author_in(request, resource_type), object_in(request)
                scale = verbs.set_scale(resource_type, record, wanted, author=author, dry_run=is_dry_run(request))
            case "PATCH" if is_apply(request):
                applied = apply_request_in(request, resource_type, "scale")
                scale = verbs.apply_scale(resource_type, record, applied, dry_run=is_dry_run(request))
            case "PATCH":
                author, patch = author_in(request, resource_type), patch_in(request)
                scale = verbs.patch_scale(resource_type, record, patch, author=author, dry_run=is_dry_run(request))
            case _:
                raise method_not_allowed(request.method.lower(), f"{resource_type.plural}/scale")
        return json_response(scale)

    def _log(self, request: Request, target: Target) -> ServerResponse:
        if request.method != "GET":
            raise method_not_allowed(request.method.lower(), f"{target.resource_type.plural}/log")
        return ServerResponse(200, pod_log(self._pod(target), request.query, self._api).encode(), "text/plain")

    def _pod(self, target: Target) -> dict[str, Any]:
        return self._api.verbs.read(target.resource_type, target.own_namespace, target.name).object()

    def _no_containers(self, target: Target) -> ServerResponse:
        self._api.verbs.read(target.resource_type, target.own_namespace, target.name)
        what = f"{target.resource_type.plural}/{target.subresource}"
        raise not_implemented(
            f"{what} of {target.own_namespace}/{target.name}: pods of the sandbox are simulated and run no containers; "
            "see their status, conditions and events instead"
        )


def _name_required(kind: str) -> ApiError:
    return invalid(kind, "", "", [FieldError("metadata.name", type="FieldValueRequired")])
