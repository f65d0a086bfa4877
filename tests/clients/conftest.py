"""A sandbox in a process of its own, as it is started by default, and folders in which clients are built."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e.processes import PILOTAGE, environment

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "clients"
BUILD_SECONDS = 3000.0
RUN_SECONDS = 180.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.clients)
            item.add_marker(pytest.mark.timeout(BUILD_SECONDS + RUN_SECONDS))


class Sandbox:
    """A running `pilotage sandbox`."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def run(self, command: Sequence[str | Path], cwd: Path | None = None, stdin: str = "") -> str:
        """What a client says on its output; it must succeed."""
        done = self.attempt(command, cwd, stdin)
        assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def attempt(
        self, command: Sequence[str | Path], cwd: Path | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        home = BUILD / "home"
        home.mkdir(parents=True, exist_ok=True)
        settings = environment(KUBECONFIG=str(self.kubeconfig), HELM_CONFIG_HOME=str(home), HELM_DATA_HOME=str(home))
        return subprocess.run(
            list(map(str, command)),
            cwd=cwd,
            input=stdin,
            env=settings,
            capture_output=True,
            text=True,
            check=False,
            timeout=RUN_SECONDS,
        )


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    command = [PILOTAGE, "sandbox", "--ephemeral", "--nodes", "3"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), text=True) as one:
        assert one.stdin is not None and one.stdout is not None
        try:
            yield Sandbox(Path(one.stdout.readline().strip()))
        finally:
            one.stdin.close()
            one.wait(30)


def needs(*programs: str) -> None:
    """Leave the test out, and say so, where a program is not there."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not installed: install it to run this client against the sandbox")


def workshop(name: str) -> Path:
    """A copy of the sources of a client, in which what it is built of is kept."""
    folder = BUILD / name
    shutil.copytree(HERE / name, folder, dirs_exist_ok=True)
    return folder


def build(command: Sequence[str | Path], cwd: Path, **settings: str) -> None:
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=BUILD_SECONDS,
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
