"""The installed command in processes of its own, as a user starts it, and kubectl beside it."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

BIN = Path(sys.executable).parent
PILOTAGE = str(BIN / "pilotage")
KUBECTL = str(BIN / "kubectl")
PATIENCE_SECONDS = 60.0
_NOT_INHERITED = ("COLUMNS", "FORCE_COLOR", "KUBECONFIG", "LINES", "NO_COLOR")


def environment(**changes: str) -> dict[str, str]:
    """Ours, without what would change how the command behaves."""
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    return {**kept, "TERM": "dumb", **changes}


def pilotage(*arguments: str | Path, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run to the end."""
    command = [PILOTAGE, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env=environment(**changes), cwd="/"
    )


def eventually(what: str, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS:.0f} s: {what}"
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


def status(port: int, path: str, *, scheme: str = "http", token: str = "") -> int:
    """What a page answers; 0 if nobody does."""
    request = urllib.request.Request(f"{scheme}://127.0.0.1:{port}{path}")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    unchecked = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(request, timeout=5, context=unchecked if scheme == "https" else None) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def body(port: int, path: str) -> str:
    """What stands on a page of the port for this machine."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_SECONDS) as answer:
        text: str = answer.read().decode()
        return text


class Background:
    """A command that runs until it is told to end."""

    stdout = stderr = ""
    """What it said, once it has ended."""

    def __init__(self, *arguments: str | Path) -> None:
        self.process = subprocess.Popen(
            [PILOTAGE, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            cwd="/",
        )

    def workers(self) -> list[int]:
        """The processes that it has started itself, such as the scheduler below its supervisor."""
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def signal_all(self, number: signal.Signals) -> None:
        """As Ctrl-Z or a frozen machine would: to everybody at once."""
        for pid in (self.process.pid, *self.workers()):
            os.kill(pid, number)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        if not self.process.stdout or not self.process.stdout.closed:
            self.stdout, self.stderr = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode


class SandboxProcess(Background):
    """`pilotage sandbox` that is ready to serve."""

    def __init__(self, kubeconfig: Path, *arguments: str | Path) -> None:
        self.kubeconfig = kubeconfig
        kubeconfig.unlink(missing_ok=True)
        super().__init__("sandbox", "--kubeconfig", kubeconfig, *arguments)
        eventually("the kubeconfig is written", lambda: kubeconfig.exists() or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()[1]

    def first_lines(self, count: int) -> list[str]:
        assert self.process.stdout is not None
        return [self.process.stdout.readline().rstrip("\n") for _ in range(count)]

    def kubectl(self, *arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [KUBECTL, *map(str, arguments)],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
            env=environment(KUBECONFIG=str(self.kubeconfig)),
        )

    def get(self, *arguments: str) -> list[dict[str, Any]]:
        """The items of `kubectl get ... -o json`."""
        done = self.kubectl("get", *arguments, "-o", "json")
        assert done.returncode == 0, done.stderr
        items: list[dict[str, Any]] = json.loads(done.stdout)["items"]
        return items

    def pods_are(self, phase: str, count: int) -> bool:
        pods = self.get("pods")
        return len(pods) == count and all(pod["status"].get("phase") == phase for pod in pods)
