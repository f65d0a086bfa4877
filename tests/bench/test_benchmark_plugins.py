"""The plugins whose cost is measured meet the requirements of the framework."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.framework.plugin_files import load_plugin_files
from pilotage.testing import check_plugin

FILES = sorted((Path(__file__).parents[2] / "benchmarks" / "plugins").glob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_meets_the_requirements(file: Path) -> None:
    (plugin,) = load_plugin_files([file])
    check_plugin(plugin.cls)
