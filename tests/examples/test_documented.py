"""Every example is a good plugin, and the page about them shows a command that works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from pilotage.framework.plugin_files import load_plugin_file
from pilotage.testing import check_plugin
from tests.examples.sandbox_world import EXAMPLES

FILES = sorted(EXAMPLES.glob("*.py"))
PAGE = (EXAMPLES / "README.md").read_text()
COMMANDS = re.findall(r"^    (pilotage (?:sandbox|scenario) .*)$", PAGE.replace("\\\n", " "), flags=re.MULTILINE)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_does_what_it_says(file: Path) -> None:
    for cls in load_plugin_file(file):
        check_plugin(cls)


def test_every_example_has_one_command() -> None:
    assert sorted(re.findall(r"--plugin (\S+)", " ".join(COMMANDS))) == [f"examples/plugins/{f.name}" for f in FILES]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_files_of_a_command_are_there(command: str) -> None:
    words = shlex.split(command)
    given = [words[at + 1] for at, word in enumerate(words) if word in ("--plugin", "-f", "--config", "scenario")]
    assert given and all((EXAMPLES.parents[1] / path).is_file() for path in given)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_docstring_shows_the_command_of_the_page(file: Path) -> None:
    shown = [
        line.strip()
        for line in file.read_text().replace("\\\\\n", " ").splitlines()
        if re.search("pilotage (sandbox|scenario)", line)
    ]
    assert [shlex.split(line) for line in shown] == [
        shlex.split(command) for command in COMMANDS if f"--plugin examples/plugins/{file.name}" in command
    ]
