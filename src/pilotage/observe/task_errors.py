"""Errors in what is done again and again: logged, counted, and the next round comes.

A timer that dies of one bad round takes everything with it that it would have done later. `contained` ends the round
only. Cancellation passes through.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pilotage.observe.instruments import Counter
from pilotage.observe.skipped_objects import describe

log = logging.getLogger(__name__)


class TaskErrors:
    def __init__(self, counter: Counter | None = None) -> None:
        """`counter` has the label task."""
        self._counter = counter if counter is not None else Counter("task")
        self._logged: dict[str, str] = {}

    @contextmanager
    def contained(self, task: str) -> Iterator[None]:
        """One round of a task; an error that comes again in every round is logged once."""
        try:
            yield
        except Exception as error:
            self.failed(task, error)
        else:
            self._logged.pop(task, None)

    def failed(self, task: str, error: Exception) -> None:
        self._counter.add(task)
        text = describe(error)
        if self._logged.get(task) != text:
            self._logged[task] = text
            log.error("a round of a task failed, the next one comes: task=%s error=%s", task, text, exc_info=error)
