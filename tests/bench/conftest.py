"""For all tests of benchmarks: what other tests left behind is not looked at.

A benchmark collects garbage before it measures, and thaws what was frozen. In a process with thousands of tests each
such collection takes a second, and here nothing is measured for its time.
"""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True)
def no_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "collect", lambda *_: 0)
    for name in ("freeze", "unfreeze"):
        monkeypatch.setattr(gc, name, lambda: None)
