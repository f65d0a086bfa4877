"""Verbosity as Kubernetes components count it (`-v=N`), on the levels of Python's logging.

    v=0, 1   what an operator acts on (INFO and above)
    v=2      each attempt, binding and preemption
    v=4      moves between the parts of the queue, and what is tried again (DEBUG; tracebacks are whole from here on)
    v=5      answers of queueing hints

Code that logs more than INFO asks `log.isEnabledFor` first: where it is off, that look-up is all that it costs.
"""

from __future__ import annotations

import logging
from typing import Final

_DEBUG_VERBOSITY: Final = 4
_MOST: Final = _DEBUG_VERBOSITY + logging.DEBUG - 1
"""The level of a record must be greater than 0."""


def level_of(verbosity: int) -> int:
    """The level of Python's logging that stands for a verbosity."""
    if verbosity < 2:
        return logging.INFO
    if verbosity < _DEBUG_VERBOSITY:
        return logging.INFO - verbosity
    return logging.DEBUG + _DEBUG_VERBOSITY - min(verbosity, _MOST)


def verbosity_of(level: int) -> int:
    """The verbosity from which on records of this level are shown."""
    if level >= logging.INFO:
        return 0
    return _DEBUG_VERBOSITY + logging.DEBUG - level if level <= logging.DEBUG else min(logging.INFO - level, 3)


ATTEMPTS: Final = level_of(2)
QUEUE_MOVES: Final = level_of(4)
HINT_ANSWERS: Final = level_of(5)
