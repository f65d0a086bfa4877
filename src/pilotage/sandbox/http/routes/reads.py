"""get, list and watch."""

from __future__ import annotations

from typing import Protocol

from pilotage.rng import random_suffix
from pilotage.sandbox.api import Api
from pilotage.sandbox.errors import gone, too_large_resource_version
from pilotage.sandbox.http.exchange import Request, ServerResponse
from pilotage.sandbox.http.list_options import ListParameters, check_list, check_watch, list_options
from pilotage.sandbox.http.paging import ListPages, Page
from pilotage.sandbox.http.presentation import Presentation, presentation_for
from pilotage.sandbox.http.routes.paths import Target
from pilotage.sandbox.http.watch import Watch, WatchHub, WatchScope
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.operations.selection import ObjectSelection
from pilotage.sandbox.storage.records import Record


class OnRead(Protocol):
    """Called before something is read (name "": all of it), to bring it up to date."""

    def __call__(self, resource: str, namespace: str | None, name: str, *, is_watch: bool) -> None: ...


def nothing_on_read(resource: str, namespace: str | None, name: str, *, is_watch: bool) -> None:
    """What is stored is what is to be seen."""


class Reads:
    """The reading verbs of one server."""

    def __init__(self, api: Api, hub: WatchHub, on_read: OnRead) -> None:
        self._api = api
        self._on_read = on_read
        self._hub = hub
        self._pages = ListPages(api.clock, random_suffix(api.rng, 10))

    def get(self, request: Request, target: Target) -> ServerResponse:
        self._on_read(target.resource_type.storage, target.namespace, target.name, is_watch=False)
        record = self._api.verbs.read(target.resource_type, target.own_namespace, target.name)
        version = request.query.get("resourceVersion", "")
        if version.isdigit() and int(version) > self._api.store.revision:
            raise too_large_resource_version(int(version), self._api.store.revision)
        return ServerResponse(200, self._presentation(request, target.resource_type).one(record))

    def list_or_watch(self, request: Request, target: Target) -> ServerResponse | Watch:
        options = list_options(request, target.resource_type)
        presentation = self._presentation(request, target.resource_type)
        is_watch, name = request.flag("watch"), options.selection.exact_name or ""
        self._on_read(target.resource_type.storage, target.namespace, name, is_watch=is_watch)
        if is_watch:
            return self._watch(target, options, presentation)
        return self._list(target, options, presentation)

    def _list(self, target: Target, options: ListParameters, presentation: Presentation) -> ServerResponse:
        revision = self._api.store.revision
        check_list(options, revision)
        if options.match == "Exact" and options.resource_version != revision:
            raise gone(f"The resourceVersion for the provided list is too old: {options.resource_version}")
        page = self._page(target, options)
        tells_remaining = options.selection.is_everything
        return ServerResponse(200, presentation.many(page, tells_remaining=tells_remaining))

    def _page(self, target: Target, options: ListParameters) -> Page:
        about = (target.resource_type.storage, target.namespace, options.asked)
        records = None
        if options.continue_token:
            found = self._pages.following(options.continue_token, options.limit, about)
            if isinstance(found, Page):
                return found
            after = (found.namespace, found.name)
            records = [r for r in self._select(target, options.selection) if (r.key.namespace, r.key.name) > after]
        if records is None:
            records = self._select(target, options.selection)
        return self._pages.first(records, self._api.store.revision, options.limit, about)

    def _watch(self, target: Target, options: ListParameters, presentation: Presentation) -> Watch:
        check_watch(options)
        revision = self._api.store.revision
        from_now = not options.resource_version
        sends_initial = options.sends_initial_events if options.sends_initial_events is not None else from_now
        scope = WatchScope(
            presentation=presentation,
            namespace=target.namespace,
            selection=options.selection,
            start=revision if sends_initial else options.resource_version or revision,
            initial=self._select(target, options.selection) if sends_initial else None,
            marks_initial_end=bool(options.sends_initial_events),
            wants_bookmarks=options.wants_bookmarks,
            timeout_seconds=options.timeout_seconds or None,
        )
        return Watch(self._api.store, scope, self._api.clock, self._hub)

    def _select(self, target: Target, selection: ObjectSelection) -> list[Record]:
        return self._api.verbs.select(target.resource_type, target.namespace, selection)

    def _presentation(self, request: Request, resource_type: ResourceType) -> Presentation:
        return presentation_for(request, resource_type, self._api.clock.time())
