"""Command lines on the pages are such that the programs understand them: commands, options, make targets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from fnmatch import filter as filter_names
from fnmatch import fnmatch

import click
import pytest

from pilotage.cli.main import cli
from tests.docs.pages import PAGES, ROOT, Page, page

_PROGRAM = re.compile(r"^(?:\w+=\S+ )*(?:\.venv/bin/|kubectl )?pilotage (.+)$")
_MAKE = re.compile(r"^make((?: [\w-]+(?:=\S+)?)+)$")
_OPTION = re.compile(r"^--?[a-z][\w-]*")
_COMMON = {"-v", "--no-color", "--version"}
COMMANDS = cli.list_commands(click.Context(cli))
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


def _find(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that the words begin with, and the words after its name."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words and re.fullmatch(r"[a-z]+", words[0]):
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            raise click.UsageError(f"no command {words[0]}")
        command, words = found, words[1:]
    return command, words


def _options(command: click.Command) -> set[str]:
    given = {name for one in command.params for name in (*one.opts, *one.secondary_opts) if name.startswith("-")}
    return given | {"-h", "--help"}


def _calls(one: Page) -> Iterator[str]:
    """What stands after `pilotage` wherever it is called."""
    for text in (*one.spans(), *one.command_lines()):
        if found := _PROGRAM.match(text):
            yield found[1]


def _wrong(call: str) -> list[str]:
    """The parts of a call that the command does not know. Brackets, bars and dots of a synopsis are left out."""
    words = shlex.split(re.split(r" [|&>;]+( |$)", call)[0].replace("[", " ").replace("]", " ").replace("...", " "))
    try:
        command, rest = _find(words)
    except click.UsageError as error:
        return [error.message]
    named = [found[0] for word in rest if (found := _OPTION.match(word))]
    return [name for name in named if name not in _options(command)]


@pytest.mark.parametrize("one", PAGES, ids=str)
def test_every_command_and_option_exists(one: Page) -> None:
    assert {call: wrong for call in _calls(one) if (wrong := _wrong(call))} == {}


@pytest.mark.parametrize("one", PAGES, ids=str)
def test_every_make_target_exists(one: Page) -> None:
    calls = [found[1] for text in (*one.spans(), *one.command_lines()) if (found := _MAKE.match(text))]
    assert [word for call in calls for word in call.split() if "=" not in word and word not in TARGETS] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_a_command_has_all_its_options_and_no_others(name: str) -> None:
    one = page(ROOT / f"docs/commands/{name}.md")
    command, _ = _find([name])
    group = list(command.commands.values()) if isinstance(command, click.Group) else [command]
    params = [param for sub in group for param in sub.params if isinstance(param, click.Option)]
    options = {param.opts[0] for param in params if not param.hidden}
    named = set(re.findall(r"(?<![\w-])--?[a-z][\w*-]*", " ".join([*one.spans(), *one.command_lines()])))
    assert [option for option in options - _COMMON if not any(fnmatch(option, pattern) for pattern in named)] == []
    cells = re.findall(r"^\| (`-[^|]*)\|", one.prose, flags=re.MULTILINE)
    listed = {option for cell in cells for option in re.findall(r"`(--?[a-z][\w*-]*)", cell)}
    known = set().union(*map(_options, group)) | _options_of_tools(one)
    assert [pattern for pattern in listed if not filter_names(known, pattern)] == []


def _options_of_tools(one: Page) -> set[str]:
    """Options of the programs in tools/ that the page shows."""
    programs = {name for line in one.command_lines() for name in re.findall(r"tools/\w+\.py", line)}
    return {option for name in programs for option in re.findall(r'"(--[a-z-]+)"', (ROOT / name).read_text())}


def test_wrong_calls_are_found() -> None:
    text = "`pilotage runn`, `pilotage demo --twice`, `pilotage plugin chek F`\n\n    pilotage sandbox [--nods N]\n"
    assert [bool(_wrong(call)) for call in _calls(Page(ROOT / "x.md", text))] == [True] * 4
    right = "run --config F | tee log", "bench [--nodes N] [-o table|json]", "plugin check x.py"
    assert [_wrong(call) for call in right] == [[], [], []]
