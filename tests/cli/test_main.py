from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version

import click
import pytest

from pilotage.cli import main
from pilotage.cli.errors import CommandError, ExitCode

COMMANDS = list(main._COMMANDS)


def test_help_teaches_what_it_is_and_how_to_begin(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call(["--help"]) == 0
    out = capsys.readouterr().out
    assert "A Kubernetes scheduler that can be programmed in Python" in out
    for first_step in ("pilotage demo", "pilotage sandbox --nodes 10", "pilotage run --kubeconfig FILE"):
        assert first_step in out
    assert all(f"  {name} " in out for name in COMMANDS)


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call([]) == 0
    assert "First steps:" in capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_has_help_with_an_example(name: str, flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call([name, flag]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Usage: pilotage {name} ")
    assert f"\n    pilotage {name}" in out.partition("Examples:")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_overview_and_the_command_say_the_same(name: str) -> None:
    entry = main._COMMANDS[name]
    command = main.cli.get_command(click.Context(main.cli), name)
    assert command is not None and command.name == name
    assert entry.summary.endswith(".") and len(entry.summary) <= 64


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call(["--version"]) == 0
    assert capsys.readouterr().out == f"pilotage {version('pilotage')}\n"


def test_the_overview_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom pilotage.cli.main import call\ncall(['--help'])\n"
        "heavy = {'numpy', 'rich', 'aiohttp', 'uvicorn', 'yaml', 'msgspec'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["sandbx"], 'error: no command "sandbx" (did you mean "sandbox"?) (see pilotage --help)'),
        (["frobnicate"], 'error: no command "frobnicate" (there are: demo, sandbox, run,'),
        (["sandbox", "--frob"], "(see pilotage sandbox --help)"),
        (["sandbox", "--nodes", "many"], "'many' is not a valid integer"),
        (["sandbox", "--nodes", "-1"], "-1 is not in the range x>=0"),
        (["sandbox", "--port", "70000"], "70000 is not in the range"),
        (["sandbox", "extra"], "unexpected extra argument (extra)"),
        (["demo", "--nodes", "1"], "1 is not in the range x>=3"),
        (["run", "--config", "c.yaml"], "c.yaml: cannot be read: no such file or directory"),
        (["run", "--kubeconfig", "/no/such/file"], "kubeconfig /no/such/file: no such file"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.call(arguments) == ExitCode.BAD_INPUT
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ") and captured.err.count("\n") == 1
    assert problem in captured.err


@pytest.fixture
def command_that(monkeypatch: pytest.MonkeyPatch):
    """Put a command in place whose body is given."""

    def put(body) -> None:
        command = click.Command("odd", callback=body)
        monkeypatch.setattr(main._LazyGroup, "get_command", lambda self, ctx, name: command)

    return put


def test_every_problem_of_a_command_is_a_line(command_that, capsys: pytest.CaptureFixture[str]) -> None:
    def body() -> None:
        raise CommandError(ExitCode.UNREACHABLE, "first", "second\nwith a break")

    command_that(body)
    assert main.call(["odd"]) == 3
    assert capsys.readouterr().err == "error: first\nerror: second with a break\n"


def test_a_bug_is_one_line_that_asks_for_a_report(command_that, capsys: pytest.CaptureFixture[str]) -> None:
    command_that(lambda: {}["missing"])
    assert main.call(["odd"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: this is a bug in pilotage: KeyError: 'missing'; run it again with -v")
    assert err.count("\n") == 1


def test_a_bug_shows_its_traceback_with_v(command_that) -> None:
    command_that(lambda: {}["missing"])
    with pytest.raises(KeyError):
        main.call(["-v", "odd"])


def test_no_color_is_passed_on_as_the_environment_variable(command_that, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    seen = []

    def body() -> None:
        seen.append(os.environ.get("NO_COLOR"))

    command_that(body)
    assert main.call(["--no-color", "odd"]) == 0
    assert seen == ["1"]
