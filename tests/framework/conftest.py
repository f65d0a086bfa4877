from __future__ import annotations

import pytest

from tests.framework import scripted_plugins


@pytest.fixture
def calls() -> list[str]:
    """Which methods of scripted plugins are called in this test, in order."""
    scripted_plugins.calls.clear()
    return scripted_plugins.calls
