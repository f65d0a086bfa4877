"""For all tests: what was imported and collected is no garbage, so that nobody need look at it again."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    # Thousands of test items and modules: a collection that looks at all of them takes a second.
    gc.collect()
    gc.freeze()
