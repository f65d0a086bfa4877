"""For all tests: what was imported and collected is no garbage, and logging is as it was.

A command sets up logging for its process, which here goes on with other tests.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator

import pytest


def pytest_collection_finish() -> None:
    # Thousands of test items and modules: a collection that looks at all of them takes a second.
    gc.collect()
    gc.freeze()


LEVELS = {name: logging.getLogger(name).level for name in ("root", "pilotage")}


@pytest.fixture(autouse=True)
def logging_as_at_the_start() -> Iterator[None]:
    _reset_levels()
    yield
    _reset_levels()


def _reset_levels() -> None:
    logging.disable(logging.NOTSET)
    for name, level in LEVELS.items():
        logging.getLogger(name).setLevel(level)
