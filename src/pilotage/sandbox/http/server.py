"""The API server: a request goes in, an answer or a watch comes out, without any I/O.

    request -> token -> path -> verb -> ServerResponse | Watch

`handle` never raises: a rejection becomes a Status with its code, and a bug a logged 500, after which the server
goes on. `respond` is the same, but answers only when what the answer shows is on disk.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from pilotage.clock import Clock
from pilotage.sandbox.api import Api
from pilotage.sandbox.errors import ApiError, internal_error, method_not_allowed, no_such_path, unauthorized
from pilotage.sandbox.http.access import Access
from pilotage.sandbox.http.account_tokens import AccountTokens
from pilotage.sandbox.http.admission_webhooks import AdmissionWebhooks
from pilotage.sandbox.http.audit_log import AuditLog
from pilotage.sandbox.http.exchange import Request, ServerResponse, error_response
from pilotage.sandbox.http.extensions import ExtensionGroup, Extensions
from pilotage.sandbox.http.negotiation import view_for
from pilotage.sandbox.http.routes.documents import HEALTH_PATHS, Documents
from pilotage.sandbox.http.routes.paths import Paths, Target
from pilotage.sandbox.http.routes.reads import OnRead, Reads, nothing_on_read
from pilotage.sandbox.http.routes.reviews import Reviews
from pilotage.sandbox.http.routes.subresources import Subresources
from pilotage.sandbox.http.routes.writes import Writes
from pilotage.sandbox.http.watch import Watch, WatchHub
from pilotage.sandbox.operations.policies import USER
from pilotage.sandbox.storage.records import Change, Key, Record
from pilotage.sandbox.storage.store import JournalError, Store

__all__ = ["ApiServer", "Request", "ServerResponse", "Watch"]

Answer = Callable[[Request], ServerResponse]
Ask = Callable[[Request], ServerResponse | Watch]

KEPT_SECONDS: Final = 3600.0
"""How long an event is kept after its last write."""

_EVENTS: Final = "events"
_TICK_SECONDS: Final = 0.5
_READ_METHODS: Final = frozenset({"GET", "HEAD"})

_log = logging.getLogger(__name__)


class ApiServer:
    """The Kubernetes HTTP dialect on top of an `Api`. Without a token every client is let in."""

    def __init__(
        self,
        api: Api,
        *,
        token: str | None,
        clock: Clock,
        on_read: OnRead = nothing_on_read,
        users: Mapping[str, dict[str, Any]] | None = None,
        audit: AuditLog | None = None,
        webhooks: AdmissionWebhooks | None = None,
    ) -> None:
        """`users` by token, beside the administrator: they may do what roles allow. None: no roles are asked."""
        self.api = api
        self.token = token
        self._clock = clock
        self._audit = audit
        self.watches = WatchHub(clock)
        self._events = EventExpiry(api.store, clock)
        self._paths = Paths(api.registry)
        self._reads = Reads(api, self.watches, on_read)
        self._writes = Writes(api)
        self._accounts = AccountTokens(api)
        self._subresources = Subresources(api, self._accounts)
        self.access = Access(api, token, self._accounts, self._paths, users)
        self._reviews = Reviews(self.access, self._accounts)
        self._extensions = Extensions()
        self._documents = Documents(api.registry, self._extensions)
        self._added: dict[str, Answer] = dict(self._accounts.documents)
        self.webhooks = webhooks or AdmissionWebhooks(api)

    def add_document(self, path: str, answer: Answer) -> None:
        """Serve something that is no object of the cluster under this path, such as the state of a scheduler."""
        self._added[path] = answer

    def add_group(self, group: ExtensionGroup) -> None:
        """Serve an API group that other code answers, from now on."""
        self._extensions.add(group)
        self._documents.forget()

    def handle(self, request: Request) -> ServerResponse | Watch:
        """The answer to a request from outside."""
        try:
            request = self._identified(request)
            self.access.check(request)
            return self.access.warned(request, self.dispatch(request))
        except ApiError as error:
            return error_response(error)

    async def respond(self, request: Request) -> ServerResponse | Watch:
        """Like `handle`, but the answer waits until what it says is on disk, be it to a write or to a read."""
        begin = 0.0 if self._audit is None else self._clock.time()
        try:
            request = self._identified(request)
            self.access.check(request)
            answer = self.access.warned(request, await self.respond_trusted(request))
        except ApiError as error:
            answer = error_response(error)
        if self._audit is not None:
            self._audit.record(request, answer, self._paths, begin)
        return answer

    async def respond_trusted(self, request: Request) -> ServerResponse | Watch:
        """Like `respond`, for callers in this process: no token is asked for."""
        if self.webhooks.are_there and request.method not in _READ_METHODS:
            answered = await self.webhooks.respond(request, self.dispatch)
            return await self._settled(request, lambda _: answered)
        return await self._settled(request, self.dispatch) if self.api.store.has_journal else self.dispatch(request)

    async def run(self, every_seconds: float = _TICK_SECONDS) -> None:
        """What time brings: bookmarks, ends of watches, old events. Runs until cancelled."""
        while True:
            await self._clock.sleep(every_seconds)
            self.watches.tick()
            # Controllers do not wait for the disk: a write of theirs that was lost is taken back here.
            self.api.store.take_back_lost()
            try:
                self._events.tick()
            except JournalError:
                # The journal has logged it, each write is answered with an error, and reads go on.
                continue
            except Exception:
                _log.exception("old events could not be removed")

    def dispatch(self, request: Request) -> ServerResponse | Watch:
        """The answer to a request whose sender is known; never raises."""
        try:
            if request.user is None:
                return self._route(request)
            with self.api.verbs.asked_by(request.user):
                return self._route(request)
        except ApiError as error:
            return error_response(error)
        except JournalError as error:
            return _not_stored(error)
        except Exception as error:
            _log.exception("request failed: method=%s path=%s", request.method, request.path)
            return error_response(internal_error(f"{type(error).__name__}: {error}"))

    async def _settled(self, request: Request, answer: Ask) -> ServerResponse | Watch:
        """The answer, when everything that it can have seen is on disk."""
        store = self.api.store
        while True:
            answered = answer(request)
            if request.path in HEALTH_PATHS:
                return answered
            try:
                await store.durable(store.revision)
            except BaseException as error:
                if isinstance(answered, Watch):
                    answered.close()
                if not isinstance(error, JournalError):
                    raise
                if request.method not in _READ_METHODS:
                    return _not_stored(error)
                # What a read has seen is taken back by now: it looks again.
            else:
                return answered

    def _identified(self, request: Request) -> Request:
        """The request with who asks; ApiError if nobody does who is known."""
        if self.token is None or self.access.is_open(request):
            return request
        user = self.access.user_of(request)
        if user is None:
            raise unauthorized()
        # That it is the administrator matters only where somebody looks at it.
        is_of_interest = user is not USER or self.access.is_on or self._audit is not None
        return msgspec.structs.replace(request, user=user) if is_of_interest else request

    def _route(self, request: Request) -> ServerResponse | Watch:
        if request.path.startswith(self._extensions.paths):
            extension = self._extensions.find(request.path)
            if extension is not None:
                return extension.answer(request)
        target = self._paths.target_of(request.path)
        if target is None and request.path in self._added and request.method in _READ_METHODS:
            return self._added[request.path](request)
        if target is None:
            return self._documents.answer(request)
        # Before anything is done: a write whose answer cannot be given must not happen.
        view_for(request.headers.get("accept", ""), plain_only="get" not in target.resource_type.verbs)
        if target.subresource:
            return self._subresource(request, target)
        if target.name:
            return self._object(request, target)
        return self._collection(request, target)

    def _collection(self, request: Request, target: Target) -> ServerResponse | Watch:
        resource_type = target.resource_type
        if request.method == "POST" and "get" not in resource_type.verbs:
            if self._reviews.handles(resource_type):
                return self._reviews.answer(request, resource_type)
            return self._subresources.bind(request, target.own_namespace, "")
        if "get" not in resource_type.verbs:
            raise method_not_allowed(request.method.lower(), resource_type.qualified)
        match request.method:
            case "GET" | "HEAD":
                return self._reads.list_or_watch(request, target)
            case "POST":
                return self._writes.create(request, target)
            case "DELETE":
                return self._writes.delete_collection(request, target)
            case _:
                raise method_not_allowed(request.method.lower(), resource_type.qualified)

    def _object(self, request: Request, target: Target) -> ServerResponse | Watch:
        if "get" not in target.resource_type.verbs:
            raise method_not_allowed(request.method.lower(), target.resource_type.qualified)
        match request.method:
            case "GET" | "HEAD":
                return self._reads.get(request, target)
            case "PUT":
                return self._writes.update(request, target)
            case "PATCH":
                return self._writes.patch(request, target)
            case "DELETE":
                return self._writes.delete(request, target)
            case _:
                raise method_not_allowed(request.method.lower(), target.resource_type.qualified)

    def _subresource(self, request: Request, target: Target) -> ServerResponse | Watch:
        if target.subresource not in target.resource_type.subresources:
            raise no_such_path()
        if self._subresources.handles(target.subresource):
            return self._subresources.handle(request, target)
        if request.method not in ("GET", "HEAD", "PUT", "PATCH"):
            raise method_not_allowed(request.method.lower(), f"{target.resource_type.qualified}/{target.subresource}")
        return self._object(request, target)


def _not_stored(error: JournalError) -> ServerResponse:
    return error_response(internal_error(f"the write was not stored: {error}"))


class EventExpiry:
    """The events of a store and when each has to go: an hour after its last write, as in every cluster.

    Writes come in the order of time, so the queue of (time, event, revision) is always sorted; an event whose revision
    has moved on has a later entry of its own.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._due: deque[tuple[float, Key, int]] = deque()
        for record in store.list(_EVENTS):
            self._expect(record)
        store.subscribe(_EVENTS, self._on_change)

    def tick(self) -> None:
        """Remove what is due."""
        now = self._clock.monotonic()
        while self._due and self._due[0][0] <= now:
            _, key, revision = self._due[0]
            record = self._store.get(key)
            if record is not None and record.revision == revision:
                self._store.delete(key)
            self._due.popleft()

    def _on_change(self, change: Change) -> None:
        if change.type != "DELETED":
            self._expect(change.record)

    def _expect(self, record: Record) -> None:
        self._due.append((self._clock.monotonic() + KEPT_SECONDS, record.key, record.revision))
