"""Keeps a sink equal to the server's objects of one kind.

    list in pages --> sink.replace --> watch from the list's version --> sink.apply, batch by batch
        ^                                 |            |
        |   version too old (410)         |            | cut, ended, 429, 5xx
        +---------------------------------+            +--> wait (jittered), watch again from the last version seen

A list is expensive for both sides, so everything that can be resumed is resumed: a failed page is asked for again, a
cut watch goes on from the version of its last event or bookmark. Only a server that no longer has (or never had)
that version makes us list again, or one that fails (5xx, nonsense) a few times in a row whenever it is asked to watch
from there: what happened meanwhile is worth a list to us. Lists in quick succession are spaced out, longer and longer,
each by another random time. What was deleted while we could not watch shows by its absence in `sink.replace`.
`relist` makes a new list at once: for those who cannot decide anything by a view that may lag behind.

The server is asked to end every watch after a few minutes, and the transport gives up a stream on which nothing
arrives for longer than that: a connection that died silently cannot go unnoticed. `contact_age` says how long ago the
server was last heard of. Of a kind in which nothing happens it is about a minute at most (we ask for bookmarks, which
API servers send that often), or, without bookmarks, what a watch lasts.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from pilotage.clock import Clock
from pilotage.kube.client import KubeClient, ListOptions
from pilotage.kube.discovery import why_not_served
from pilotage.kube.errors import ApiStatusError
from pilotage.kube.list_watch import Backoff, LineJoiner, LineTooLong, Listing, Undecodable
from pilotage.kube.permissions import way_out
from pilotage.kube.transport import TransportError
from pilotage.model.errors import DecodeError
from pilotage.model.kinds import KindInfo, WatchEvent
from pilotage.observe.skipped_objects import SkippedObjects

WATCH_SECONDS = (120, 240)
"""Each watch lasts a time drawn from this range, so that the watches of many kinds do not end together."""
HEALTHY_AFTER_SECONDS = 5.0
LONGEST_RETRY_AFTER_SECONDS = 300.0
FRUITLESS_LIMIT = 3
"""So many watches in a row that fail and bring nothing: then it is time for a new list."""
ABSENT_AFTER = 3
_CHANGES = frozenset({"ADDED", "MODIFIED", "DELETED"})
_MAY_PASS = frozenset({401, 403, 408, 429})

_log = logging.getLogger(__name__)


class Sink(Protocol):
    """Where the objects go. `kind` is the kind's name, such as "Pod". Called from the event loop, never re-entered."""

    def replace(self, kind: str, objects: list[Any]) -> None:
        """These are all objects that there are; whatever else the sink holds of this kind is gone."""

    def apply(self, kind: str, events: list[WatchEvent]) -> None:
        """ADDED, MODIFIED and DELETED in order. May repeat what is known already, also in older versions."""


class WatchBroken(Exception):
    """A watch that is of no use although the connection holds."""

    def __init__(self, message: str, *, must_relist: bool = False) -> None:
        super().__init__(message)
        self.must_relist = must_relist


class WatchedKind(Struct, frozen=True):
    """Which objects of a kind to keep up with."""

    kind: KindInfo
    field_selector: str = ""
    label_selector: str = ""
    page_size: int = 500
    """Objects in each page of a list."""
    explains_absence: bool = False
    """Warn of a kind that the server does not have, with what discovery knows; else that is as it should be."""


class Reflector:
    """`run()` until cancelled. It survives everything that the server and the network do, and its own bugs."""

    def __init__(
        self,
        client: KubeClient,
        watched: WatchedKind,
        sink: Sink,
        clock: Clock,
        rng: random.Random,
        *,
        on_contact: Callable[[bool], None] | None = None,
        skipped: SkippedObjects | None = None,
    ) -> None:
        """`on_contact` is called with False when watching was interrupted, and with True when it goes on; `skipped`
        counts objects that do not decode."""
        self._client = client
        self._kind = kind = watched.kind
        self._sink = sink
        self._clock = clock
        self._rng = rng
        self._page_size = watched.page_size
        self._options = ListOptions(field_selector=watched.field_selector, label_selector=watched.label_selector)
        self._listing = Listing(watched.page_size)
        self._position: str | None = None
        self._backoff = Backoff(rng)
        self._relist_backoff = Backoff(rng)
        self._fruitless = 0
        self._absences = 0
        self._absence_told: dict[str, str] = {}
        """By version of the kind: what was said of its absence."""
        self._failures = 0
        self._warned = ""
        self._on_contact = on_contact
        self._explains_absence = watched.explains_absence
        self.is_in_contact = True
        """False from a failed list or watch until the next watch is open."""
        self._synced = asyncio.Event()
        self._listed = asyncio.Event()
        """Everything that was asked for by `relist` is there."""
        self._step: asyncio.Task[None] | None = None
        self.undecodable = Undecodable(kind.kind, skipped if skipped is not None else SkippedObjects())
        self.is_served = True
        self.lists_completed = 0
        self.last_contact = clock.monotonic()
        self._is_running = False

    @property
    def contact_age(self) -> float | None:
        """Seconds since the server was last heard of; None if there is no watch yet."""
        return self._clock.monotonic() - self.last_contact if self._is_running else None

    @property
    def kind(self) -> KindInfo:
        return self._kind

    @property
    def has_synced(self) -> bool:
        """The sink has seen a complete list (or that the server does not know the kind)."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    async def relist(self) -> None:
        """Return when the sink has everything that the server had when this was called.

        If this is cancelled meanwhile the watch goes on from where it was.
        """
        if not self.is_served:
            return
        before = self._position
        self._listed.clear()
        self._go_on_from(None)
        try:
            await self._listed.wait()
        finally:
            if not self._listed.is_set():
                self._go_on_from(before)

    def _go_on_from(self, position: str | None) -> None:
        self._position, self._listing = position, Listing(self._page_size)
        if self._step is not None:
            self._step.cancel()

    async def run(self) -> None:
        self._is_running = True
        self._touch()
        while True:
            async with asyncio.TaskGroup() as tasks:
                self._step = tasks.create_task(self._go_on(), name=f"watch {self._kind.plural}")

    async def _go_on(self) -> None:
        """A page of the list, or a watch until it ends, and the wait after what went wrong with it."""
        try:
            if self._position is None:
                await self._list_next_page()
            else:
                await self._watch(self._position)
        except (ApiStatusError, TransportError, WatchBroken, LineTooLong) as error:
            if not await self._explained(error):
                self._report(error)
            self._note_contact(False)
            await self._clock.sleep(self._recover(error))
        except Exception as error:
            _log.exception("%s: cannot go on with this answer, will list anew", self._kind.plural)
            self._note_contact(False)
            self._listing = Listing(self._page_size)
            broken = WatchBroken(f"{type(error).__name__}: {error}", must_relist=True)
            await self._clock.sleep(self._recover(broken))

    async def _list_next_page(self) -> None:
        listing = self._listing
        options = replace(self._options, limit=listing.limit, continue_token=listing.continue_token)
        try:
            page = await self._client.list_page(self._kind, options)
        except DecodeError as error:
            raise WatchBroken(f"the list is not readable: {error}") from error
        self._touch()
        self._backoff.reset()
        if listing.add(page):
            self._hand_over(listing)

    def _hand_over(self, listing: Listing) -> None:
        self.undecodable.listed(listing.errors)
        self._sink.replace(self._kind.kind, listing.items)
        self._position = listing.resource_version
        self._listing = Listing(self._page_size)
        self._absences = 0
        self._absence_told.clear()
        if not self.is_served and self._explains_absence:
            _log.info("%s: the API server has this kind now; %d objects", self._kind.kind, len(listing.items))
        self.is_served = True
        self.lists_completed += 1
        self._synced.set()
        self._listed.set()

    async def _watch(self, position: str) -> None:
        opened: float | None = None
        lines = LineJoiner()
        timeout = self._rng.randint(*WATCH_SECONDS)
        try:
            async with self._client.watch(
                self._kind, self._options, resource_version=position, timeout_seconds=timeout
            ) as chunks:
                opened = self._touch()
                self._note_contact(True)
                async for chunk in chunks:
                    self._touch()
                    if complete := lines.complete(chunk):
                        self._deliver(complete)
        finally:
            if opened is not None and self._clock.monotonic() - opened >= HEALTHY_AFTER_SECONDS:
                self._made_progress()
        if self._position == position and self._clock.monotonic() - opened < HEALTHY_AFTER_SECONDS:
            raise TransportError("the server ended the watch at once", sent=True)

    def _deliver(self, lines: bytes) -> None:
        events = self._kind.decode_events(lines)
        changes = [event for event in events if event.type in _CHANGES and event.object.__class__ is not DecodeError]
        if len(changes) == len(events):
            self._apply(changes)
        else:
            self._deliver_mixed(events)

    def _deliver_mixed(self, events: list[WatchEvent]) -> None:
        """A batch with bookmarks, errors or objects that do not decode: what comes before trouble still counts."""
        changes: list[WatchEvent] = []
        bookmark = ""
        trouble: Exception | None = None
        for event in events:
            if event.type == "BOOKMARK":
                bookmark = event.object.resource_version
            elif (trouble := self._trouble(event)) is not None:
                break
            elif not isinstance(event.object, DecodeError):
                changes.append(event)
                bookmark = ""
        self._apply(changes)
        if bookmark:
            self._position = bookmark
            self._made_progress()
        if trouble is not None:
            raise trouble

    def _trouble(self, event: WatchEvent) -> Exception | None:
        content = event.object
        if event.type == "ERROR":
            return ApiStatusError(content.code or 410, content.reason, content.message or "the watch failed")
        if event.type not in _CHANGES:
            return WatchBroken(f"not a watch event: {content}")
        if isinstance(content, DecodeError) and self.undecodable.sink_is_stale_after(event.type, content):
            return WatchBroken(f"no longer decodes: {content}", must_relist=True)
        return None

    def _apply(self, changes: list[WatchEvent]) -> None:
        if not changes:
            return
        self.undecodable.understood(changes)
        self._sink.apply(self._kind.kind, changes)
        self._position = changes[-1].object.resource_version or self._position
        self._made_progress()

    def _touch(self) -> float:
        self.last_contact = self._clock.monotonic()
        return self.last_contact

    def _note_contact(self, is_in_contact: bool) -> None:
        if is_in_contact is not self.is_in_contact:
            self.is_in_contact = is_in_contact
            if self._on_contact is not None:
                self._on_contact(is_in_contact)

    def _made_progress(self) -> None:
        self._backoff.reset()
        self._relist_backoff.reset()
        self._fruitless = 0
        self._failures = 0
        if self._warned:
            _log.info("%s: in touch with the server again", self._kind.plural)
            self._warned = ""

    def _recover(self, error: Exception) -> float:
        """Choose where to go on; returns the seconds to wait before that."""
        if self._position is None:
            if self._recover_list(error):
                return 0.0
        elif self._must_relist(error):
            self._position = None
            self._fruitless = 0
            return self._relist_backoff.next_delay()
        asked = getattr(error, "retry_after", None) or 0.0
        return max(self._backoff.next_delay(), min(asked, LONGEST_RETRY_AFTER_SECONDS))

    def _recover_list(self, error: Exception) -> bool:
        """Returns whether there is another version of the kind to ask for at once."""
        if not isinstance(error, ApiStatusError):
            return False
        if error.is_gone:
            self._listing.start_again()
        elif error.code == 404:
            # Of a kind that does not exist, this is all that is to be heard.
            self._touch()
            self._listing = Listing(self._page_size)
            self._absences += 1
            self._kind = self._kind.in_other_version()
            if self._kind.other_version and self._absences == 1:
                return True
            # A server that has just started may not know its custom kinds yet: what we hold is kept for a moment.
            if not self.has_synced or (self.is_served and self._absences >= ABSENT_AFTER):
                self._hand_over_nothing()
        return False

    def _hand_over_nothing(self) -> None:
        """A kind that the server does not know has no objects; it may be installed later."""
        self.is_served = False
        self.undecodable.listed([])
        self._sink.replace(self._kind.kind, [])
        self._synced.set()
        self._listed.set()

    def _must_relist(self, error: Exception) -> bool:
        if isinstance(error, WatchBroken) and error.must_relist:
            return True
        if isinstance(error, TransportError):
            return False
        if isinstance(error, ApiStatusError):
            if error.code in _MAY_PASS:
                return False
            if error.code < 500 or "Too large resource version" in error.message:
                return True
        # A server in trouble (5xx) or talking nonsense deserves some patience, but not for ever with one version.
        self._fruitless += 1
        return self._fruitless >= FRUITLESS_LIMIT

    async def _explained(self, error: Exception) -> bool:
        """Whether it is the absence of the kind, and was logged with what discovery knows of it."""
        if not self._explains_absence or not isinstance(error, ApiStatusError) or error.code != 404:
            return False
        problem = await why_not_served(self._client, self._kind)
        # Asked for in one version after the other, each has its own answer: news is what was not said of it before.
        if problem and problem != self._absence_told.get(self._kind.api_version):
            _log.warning("%s", problem)
            self._absence_told[self._kind.api_version] = problem
        return bool(problem)

    def _report(self, error: Exception) -> None:
        problem = f"{self._kind.plural}: {error}"
        if isinstance(error, ApiStatusError) and error.code == 403:
            problem = f"{self._kind.plural}: {error.message}; {way_out(self._kind, ('list', 'watch'))}"
        self._failures += 1
        # One cut or one expired version is everyday life; what does not pass by itself is worth a warning, once.
        if self._failures == 1 and (isinstance(error, TransportError) or getattr(error, "is_gone", False)):
            _log.info("%s", problem)
        elif problem != self._warned:
            # That an older server does not have a kind is as it should be.
            level = logging.INFO if getattr(error, "code", None) == 404 else logging.WARNING
            _log.log(level, "%s", problem)
            self._warned = problem
        else:
            _log.debug("%s", problem)
