"""Objects that could not be taken in: what one object brings about must stay with that object.

Wherever a watch event takes effect, an exception is caught per object and handed to `SkippedObjects`, with the stage at
which it happened. The object is left out, everything else goes on, and it is tried again when it changes. People see it
in four places: one line in the log with the traceback, a counter by kind and stage, `/statusz`, and `explain`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

from pilotage.observe.instruments import Counter

log = logging.getLogger(__name__)

Stage = Literal["decode", "intake", "index", "cycle", "binding", "queueing", "reconcile", "status"]

MOST_KEPT: Final = 1000
"""More of them than this are counted, but neither listed nor logged one by one."""
_LONGEST_TEXT: Final = 300

CONSEQUENCES: Final[dict[Stage, str]] = {
    "decode": "to the scheduler it does not exist",
    "intake": "to the scheduler it does not exist",
    "index": "one index of a plugin does not know it",
    "cycle": "its scheduling attempt failed and is repeated with backoff",
    "binding": "its binding failed and it is scheduled again",
    "queueing": "workload queueing goes on without it",
    "reconcile": "it is looked at again with backoff",
    "status": "its status is not written until it changes",
}


class SkippedObject(Struct, frozen=True):
    kind: str
    key: str
    """ "namespace/name" or "name", "" if not even that is known."""
    stage: Stage
    error: str
    """Type and text of the exception, shortened."""

    @property
    def consequence(self) -> str:
        return CONSEQUENCES[self.stage]

    @property
    def sentence(self) -> str:
        return f"{self.kind} {self.key} is skipped ({self.stage}): {self.error}; {self.consequence}"


class SkippedObjects:
    """What is skipped at present, by kind and key; bounded, the counter is not."""

    def __init__(self, counter: Counter | None = None) -> None:
        """`counter` has the labels kind and stage."""
        self._counter = counter if counter is not None else Counter("kind", "stage")
        self._known: dict[tuple[str, str], SkippedObject] = {}
        self._is_full = False

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[SkippedObject]:
        return iter(list(self._known.values()))

    def skip(self, kind: str, key: str, stage: Stage, error: BaseException) -> SkippedObject:
        """Count it; and log it, unless that was said of this object before."""
        self._counter.add(kind, stage)
        found = SkippedObject(kind, key, stage, describe(error))
        before = self._known.get((kind, key))
        if before is None and len(self._known) >= MOST_KEPT:
            self._log_full()
            return found
        self._known[kind, key] = found
        if before is None or before.stage != stage:
            # What does not decode is said by the message; everything else is a fault of ours that has to be found.
            log.warning("%s", found.sentence, exc_info=None if stage == "decode" else error)
        return found

    def understood(self, kind: str, key: str) -> None:
        """It was taken in after all, or it is gone."""
        if self._known and self._known.pop((kind, key), None) is not None:
            self._is_full = False

    def about(self, kind: str, key: str) -> SkippedObject | None:
        return self._known.get((kind, key))

    def concerning(self, namespace: str) -> list[SkippedObject]:
        """What may matter to a pod of this namespace: everything in it, and everything that is in none."""
        return [one for one in self if one.key.partition("/")[0] == namespace or "/" not in one.key]

    def _log_full(self) -> None:
        if not self._is_full:
            log.warning("%d objects are skipped; further ones are counted, but not listed or logged", MOST_KEPT)
        self._is_full = True


def describe(error: BaseException) -> str:
    """Type and text of an exception, on one line and of bounded length."""
    try:
        text = "".join(one if one.isprintable() else "?" for one in " ".join(str(error)[:_LONGEST_TEXT].split()))
    except Exception:  # the text of an exception may itself be what cannot be made
        text = ""
    name = type(error).__name__
    whole = f"{name}: {text}" if text else name
    return whole if len(whole) <= _LONGEST_TEXT else f"{whole[: _LONGEST_TEXT - 3]}..."
