"""The plugins that the documentation shows are plugins."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pilotage.api.points import ALL_POINTS
from pilotage.framework.plugin_files import load_plugin_file
from pilotage.testing import check_plugin
from pilotage.testing.plugin_check import CHECKS

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
PLUGINS = [example for example in EXAMPLES if "(Plugin" in example]


@pytest.mark.parametrize("source", PLUGINS)
def test_an_example_does_what_it_says(source: str, tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text(source)
    for cls in load_plugin_file(file):
        check_plugin(cls, args={"zone": "eu-1"} if cls.args_type else None)


@pytest.mark.parametrize("source", PLUGINS)
def test_an_example_is_a_plugin(source: str, tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text(source)
    names = re.findall(r"class (\w+)\(Plugin", source)
    assert [cls.plugin_name() for cls in load_plugin_file(file)] == names


def test_the_other_examples_run() -> None:
    assert len(PLUGINS) == 10
    for example in EXAMPLES:
        if example not in PLUGINS:
            exec(example, {})


def test_every_check_is_explained() -> None:
    rows = re.findall(r"^\| (`.*`) \| ", PAGE.read_text().split("## Tests")[1], flags=re.MULTILINE)
    assert sorted(re.findall(r"`([^`]+)`", " ".join(rows))) == sorted(CHECKS)


def test_every_point_is_explained() -> None:
    explained = re.findall(r"^\| (\w+) \| `", PAGE.read_text(), flags=re.MULTILINE)
    assert explained == [point.__name__ for point in ALL_POINTS]
