"""Follows a cluster into a recording, with the reflectors of the scheduler.

All kinds are listed first; what there is then is the state at second 0. From there on every record has the time at
which we heard of it. While the server is out of reach nothing is lost that the watches can resume, but it is heard of
late; what had to be listed anew may have come and gone unseen. Both are gaps in the trace.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from functools import partial
from typing import Final

from pilotage.clock import Clock
from pilotage.kube.client import KubeClient
from pilotage.kube.errors import ApiStatusError
from pilotage.kube.reflector import Reflector, WatchedKind
from pilotage.kube.transport import TransportError
from pilotage.lab.trace.recording import SHORTEST_GAP, Recording
from pilotage.model.errors import DecodeError
from pilotage.model.kinds import KINDS, KindInfo

TICK_SECONDS: Final = 1.0
"""How often what was seen is passed on to the disk."""
_FIRST: Final = "storageclasses"
"""They say whether the volume of a claim is a decision of the scheduler."""


class TraceTime:
    """Seconds since the start of a trace; they stand still until `go_on`."""

    def __init__(self, clock: Clock, at: float) -> None:
        self._clock = clock
        self._offset: float | None = None
        self._begin = at

    def now(self) -> float:
        return self._begin if self._offset is None else round(self._clock.monotonic() - self._offset, 3)

    def go_on(self) -> None:
        self._offset = self._clock.monotonic() - self._begin


class Outage:
    """The time during which the server was out of reach for one kind or more; one gap in the trace for all of them."""

    def __init__(self, recording: Recording, clock: Clock) -> None:
        self._recording = recording
        self._clock = clock
        self._out: set[str] = set()
        self._lists: dict[str, int] = {}
        self._since = 0.0

    def contact(self, reflector: Callable[[], Reflector], plural: str, is_in_contact: bool) -> None:
        if not is_in_contact:
            if not self._out and not self._lists:
                self._since = self._clock.monotonic()
            self._out.add(plural)
            self._lists.setdefault(plural, reflector().lists_completed)
            return
        if self._lists.get(plural) == reflector().lists_completed:
            del self._lists[plural]
        self._out.discard(plural)
        if not self._out:
            self._over()

    def close(self) -> None:
        """The recording ends; an outage that goes on ends here."""
        if self._out:
            self._over()

    def _over(self) -> None:
        is_back = not self._out
        listed = sorted(self._lists) if is_back else []
        seconds = self._clock.monotonic() - self._since
        self._lists.clear()
        if listed:
            self._recording.gap(seconds, f"listed anew: {', '.join(listed)}; what came and went meanwhile is missing")
        elif not is_back:
            self._recording.gap(seconds, f"out of reach until the end: {', '.join(sorted(self._out))}")
        elif seconds >= SHORTEST_GAP:
            self._recording.gap(seconds, "out of reach; what happened meanwhile is dated at the end of it")


async def cluster_uid(client: KubeClient) -> str | None:
    """What tells this cluster from others: the UID of its namespace kube-system; None if it does not say."""
    namespaces = KINDS["namespaces"]
    try:
        found = namespaces.decode(await client.get(namespaces, "", "kube-system"))
    except (ApiStatusError, TransportError, DecodeError):
        return None
    uid: str = found.uid
    return uid or None


async def follow(
    client: KubeClient,
    kinds: Collection[KindInfo],
    recording: Recording,
    time: TraceTime,
    clock: Clock,
    rng: random.Random,
    on_tick: Callable[[], bool],
) -> None:
    """Record until `on_tick`, which is called about once a second, says that it is enough (True).

    Raises what keeps the recording from being written.
    """
    outage = Outage(recording, clock)
    reflectors: dict[str, Reflector] = {}
    for kind in kinds:
        contact = partial(outage.contact, partial(reflectors.__getitem__, kind.plural), kind.plural)
        reflectors[kind.plural] = Reflector(client, WatchedKind(kind), recording, clock, rng, on_contact=contact)
    with closing(outage):
        await _follow(reflectors, recording, time, clock, on_tick)


async def _follow(
    reflectors: Mapping[str, Reflector],
    recording: Recording,
    time: TraceTime,
    clock: Clock,
    on_tick: Callable[[], bool],
) -> None:
    async with asyncio.TaskGroup() as tasks:
        first = [reflectors[_FIRST]] if _FIRST in reflectors else []
        rest = [reflector for reflector in reflectors.values() if reflector not in first]
        following = []
        for group in (first, rest):
            following += [tasks.create_task(one.run(), name=f"record {one.kind.plural}") for one in group]
            for reflector in group:
                await reflector.wait_synced()
        time.go_on()
        while not on_tick():
            recording.flush()
            if recording.failure is not None:
                raise recording.failure
            await clock.sleep(TICK_SECONDS)
        for task in following:
            task.cancel()
