"""Benchmarks collect garbage before they measure; what other tests have left behind is none of theirs."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def nothing_to_collect_but_ones_own() -> Iterator[None]:
    """With a heap of gigabytes a collection takes seconds, and there are dozens."""
    gc.freeze()
    yield
    gc.unfreeze()
