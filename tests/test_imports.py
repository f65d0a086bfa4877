"""What a command does without is not imported by it: most of the time of a short command would go there.

`benchmarks/imports.py` measures the time; here it is only looked at which modules there are.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import pilotage
from pilotage.cli.main import _COMMANDS

DRAWING = ("rich", "pygments")
HEAVY = ("cel_expr_python", "cryptography", "numpy", "prometheus_client", "re2", "uvicorn", "yaml", *DRAWING)
SANDBOX = ("pilotage.sandbox", "uvicorn")
QUEUEING = ("pilotage.jobs",)
CEL = ("cel_expr_python", "pilotage.cel", "re2")

NOT_NEEDED: dict[str, tuple[str, ...]] = {
    "run": (*SANDBOX, *QUEUEING, *DRAWING, *CEL, "prometheus_client", "cryptography", "yaml"),
    "queue": (*SANDBOX, *QUEUEING, *DRAWING, *CEL, "prometheus_client", "cryptography"),
    "explain": (*DRAWING, "uvicorn", "prometheus_client", "cryptography"),
    "config": (*SANDBOX, *DRAWING, *CEL, "prometheus_client", "cryptography"),
}
"""Command -> what its help, and so its module, does without."""


def imported(text: str) -> set[str]:
    """The names in what `-X importtime` writes."""
    return {line.rpartition("|")[2].strip() for line in text.splitlines() if line.startswith("import time:")}


def found(modules: set[str], unwanted: tuple[str, ...]) -> list[str]:
    return sorted(name for name in modules if any(f"{name}.".startswith(f"{one}.") for one in unwanted))


def imported_by(*arguments: str) -> set[str]:
    command = [sys.executable, "-X", "importtime", "-m", "pilotage", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return imported(done.stderr)


@pytest.mark.e2e
@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_what_is_asked_of_no_command_imports_the_command_line_only(argument: str) -> None:
    modules = imported_by(argument)
    assert "click" in modules
    assert found(modules, (*HEAVY, "asyncio", "email", "importlib.metadata", "msgspec")) == []
    parts = {name.split(".")[1] for name in modules if name.startswith("pilotage.")}
    assert parts == {"cli", "escaping", "observe"}
    assert found(modules, tuple(entry.module for entry in _COMMANDS.values())) == []


@pytest.mark.e2e
@pytest.mark.parametrize("command", NOT_NEEDED)
def test_a_command_does_without_what_only_others_need(command: str) -> None:
    modules = imported_by(command, "--help")
    assert "pilotage.model" in modules
    assert found(modules, NOT_NEEDED[command]) == []


@pytest.mark.e2e
def test_a_scheduler_that_serves_has_imported_nothing_that_it_may_never_use() -> None:
    """Until it waits for the API server: both processes are complete by then."""
    with socket.socket() as nobody, socket.socket() as pages:
        for one in (nobody, pages):
            one.bind(("127.0.0.1", 0))
        server, port = f"http://127.0.0.1:{nobody.getsockname()[1]}", pages.getsockname()[1]
        pages.close()
        flags = ("--master", server, "--bind-address", "127.0.0.1", "--secure-port", str(port))
        command = [sys.executable, "-X", "importtime", "-m", "pilotage", "run", *flags]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            lines = []
            for line in process.stderr:
                lines.append(line)
                if "waiting for the API server" in line:
                    break
            process.send_signal(signal.SIGTERM)
            lines.append(process.stderr.read())
    modules = imported("".join(lines))
    assert {"numpy", "pilotage.assembly", "pilotage.certificates", "pilotage.supervise.supervisor"} <= modules
    assert found(modules, (*SANDBOX, *QUEUEING, *DRAWING, *CEL, "prometheus_client", "yaml")) == []


DATACLASSES_OF_RUN = """
import dataclasses, sys
import pilotage.cli.run
classes = {cls for name, module in list(sys.modules.items()) if name.startswith("pilotage.")
           for cls in vars(module).values() if isinstance(cls, type) and dataclasses.is_dataclass(cls)}
print(len([cls for cls in classes if cls.__module__.startswith("pilotage.")]))
"""


def test_few_records_of_run_are_dataclasses() -> None:
    """Making a dataclass takes a millisecond, a `msgspec.Struct` a fiftieth of that."""
    command = [sys.executable, "-c", DATACLASSES_OF_RUN]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) <= 76


def test_the_version_is_that_of_the_package() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    assert f'\nversion = "{pilotage.__version__}"\n' in text
