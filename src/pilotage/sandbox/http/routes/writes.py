"""create, update, patch, delete and deletecollection."""

from __future__ import annotations

from typing import Any

from pilotage.sandbox.api import Api
from pilotage.sandbox.errors import ApiError, bad_request
from pilotage.sandbox.http.bodies import (
    apply_request_in,
    author_in,
    field_warnings,
    is_apply,
    is_dry_run,
    object_in,
    patch_in,
    repetition_warnings,
    value_in,
    warning_headers,
)
from pilotage.sandbox.http.exchange import Request, ServerResponse, json_response, success_status
from pilotage.sandbox.http.list_options import list_options
from pilotage.sandbox.http.negotiation import View, view_for
from pilotage.sandbox.http.paging import Page
from pilotage.sandbox.http.presentation import presentation_for
from pilotage.sandbox.http.routes.paths import Target
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.operations.deletion import Deleted
from pilotage.sandbox.rules.conversion import served_body
from pilotage.sandbox.rules.defaults import ignored_fields
from pilotage.sandbox.storage.records import Record


class Writes:
    """The writing verbs of one server, on objects and their status."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def create(self, request: Request, target: Target) -> ServerResponse:
        obj = object_in(request)
        warnings = _warnings(request, target, obj)
        author, dry_run = author_in(request, target.resource_type), is_dry_run(request)
        record = self._api.verbs.create(target.resource_type, target.own_namespace, obj, author=author, dry_run=dry_run)
        return self._answer(request, target, record, 201, warnings)

    def update(self, request: Request, target: Target) -> ServerResponse:
        obj = object_in(request)
        warnings = _warnings(request, target, obj)
        record = self._api.verbs.update(
            target.resource_type,
            self._record(target),
            obj,
            author=author_in(request, target.resource_type),
            subresource=target.subresource,
            dry_run=is_dry_run(request),
        )
        return self._answer(request, target, record, 200, warnings)

    def apply(self, request: Request, target: Target) -> ServerResponse:
        """A PATCH that brings a configuration."""
        wanted = apply_request_in(request, target.resource_type, target.subresource)
        warnings = repetition_warnings(request, target.resource_type)
        record, is_new = self._api.verbs.apply(
            target.resource_type, target.own_namespace, target.name, wanted, dry_run=is_dry_run(request)
        )
        return self._answer(request, target, record, 201 if is_new else 200, warnings)

    def patch(self, request: Request, target: Target) -> ServerResponse:
        if is_apply(request):
            return self.apply(request, target)
        patch = patch_in(request)
        before = self._record(target)
        warnings = [] if target.subresource else _about_effect(target.resource_type)
        if request.query.get("fieldValidation", "") not in ("", "Ignore"):
            # Only the patched object can be judged; a dry run makes it.
            tried = self._api.verbs.patch(
                target.resource_type, before, patch, subresource=target.subresource, dry_run=True
            )
            warnings += field_warnings(request, target.resource_type, tried.object(), before.object())
        record = self._api.verbs.patch(
            target.resource_type,
            before,
            patch,
            author=author_in(request, target.resource_type),
            subresource=target.subresource,
            dry_run=is_dry_run(request),
        )
        return self._answer(request, target, record, 200, warnings)

    def delete(self, request: Request, target: Target) -> ServerResponse:
        options = delete_options(request)
        deleted = self._api.verbs.delete(
            target.resource_type, self._record(target), options, dry_run=_is_dry_run(request, options)
        )
        if deleted.is_gone and not target.resource_type.returns_deleted:
            return json_response(success_status(_details(target.resource_type, deleted)))
        return self._answer(request, target, deleted.record, 200, [])

    def delete_collection(self, request: Request, target: Target) -> ServerResponse:
        options = delete_options(request)
        selection = list_options(request, target.resource_type).selection
        deleted: list[Record] = []
        for record in self._api.verbs.select(target.resource_type, target.namespace, selection):
            try:
                outcome = self._api.verbs.delete(
                    target.resource_type, record, options, dry_run=_is_dry_run(request, options)
                )
            except ApiError as error:
                # What went meanwhile (with its owner) is what was asked for; a protected one ends the request.
                if error.code != 404:
                    raise
                continue
            deleted.append(outcome.record)
        presentation = presentation_for(request, target.resource_type, self._api.clock.time())
        return ServerResponse(200, presentation.many(Page(deleted, self._api.store.revision), tells_remaining=False))

    def _record(self, target: Target) -> Record:
        return self._api.verbs.read(target.resource_type, target.own_namespace, target.name)

    def _answer(
        self, request: Request, target: Target, record: Record, status: int, warnings: list[str]
    ) -> ServerResponse:
        accept = request.headers.get("accept", "")
        warnings = [*warnings, *self._api.verbs.warnings]
        headers = warning_headers(warnings) if warnings else ()
        if view_for(accept) is View.OBJECT:
            return ServerResponse(status, served_body(target.resource_type, record), headers=headers)
        presentation = presentation_for(request, target.resource_type, self._api.clock.time())
        return ServerResponse(status, presentation.one(record), headers=headers)


def _warnings(request: Request, target: Target, obj: dict[str, Any]) -> list[str]:
    """About fields of a whole object that are unknown, and about what is known and without effect."""
    unknown = field_warnings(request, target.resource_type, obj)
    if target.subresource:
        return unknown
    return [*unknown, *_about_effect(target.resource_type), *ignored_fields(target.resource_type.kind, obj)]


def _about_effect(resource_type: ResourceType) -> list[str]:
    why = resource_type.no_effect
    return [f"{resource_type.qualified} are stored here and have no effect: {why}"] if why else []


def delete_options(request: Request) -> dict[str, Any]:
    """metav1.DeleteOptions from the body and, where it is silent, from the query."""
    options = value_in(request) if request.body.strip() else {}
    if not isinstance(options, dict):
        raise bad_request("the request body must be a DeleteOptions object")
    query = request.query
    if "gracePeriodSeconds" in query and options.get("gracePeriodSeconds") is None:
        try:
            options["gracePeriodSeconds"] = int(query["gracePeriodSeconds"])
        except ValueError:
            raise bad_request(f'invalid gracePeriodSeconds "{query["gracePeriodSeconds"]}"') from None
    if "propagationPolicy" in query and options.get("propagationPolicy") is None:
        options["propagationPolicy"] = query["propagationPolicy"]
    if "orphanDependents" in query and options.get("orphanDependents") is None:
        options["orphanDependents"] = request.flag("orphanDependents")
    return options


def _is_dry_run(request: Request, options: dict[str, Any]) -> bool:
    return is_dry_run(request) or options.get("dryRun") == ["All"]


def _details(resource_type: ResourceType, deleted: Deleted) -> dict[str, Any]:
    details = {"name": deleted.record.key.name, "group": resource_type.group, "kind": resource_type.plural}
    return {**{field: value for field, value in details.items() if value}, "uid": deleted.record.uid}
