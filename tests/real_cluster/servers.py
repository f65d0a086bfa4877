"""The two API servers that the suite runs against, behind one face."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import trustme
import yaml

from pilotage.bench.cluster_assets import ClusterAssets
from pilotage.bench.control_plane import HOST, ControlPlane, free_port
from pilotage.bench.program import ServerProgram
from pilotage.model import KINDS
from pilotage.model.kinds import KindInfo

from .client import Client

PATIENCE_SECONDS = 60.0
REPOSITORY = Path(__file__).parents[2]
TOKEN = "token-of-everybody"


def eventually(what: str, is_so: Callable[[], Any], seconds: float = PATIENCE_SECONDS) -> Any:
    """Wait until `is_so()` gives something true, and return that."""
    deadline = time.monotonic() + seconds
    while not (answer := is_so()):
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.05)
    return answer


class Server(Protocol):
    """An API server that can go away and come back with everything that it had stored."""

    name: str
    folder: Path
    admin: Path
    """The kubeconfig of somebody who may do everything."""
    scheduler: Path
    """The kubeconfig of a scheduler."""
    kinds: Mapping[str, KindInfo]
    """In the versions in which it serves them."""

    def start(self) -> None:
        """Serve; returns when it does."""

    def kill(self) -> None:
        """Gone at once, as in a power cut."""

    def stop(self) -> None: ...

    def forget_history(self) -> None:
        """Make the versions of up to now too old to be watched from (while the server is down)."""


class RealServer:
    name = "real"

    def __init__(
        self, assets: ClusterAssets, folder: Path, flags: Sequence[str] = (), kinds: Mapping[str, KindInfo] = KINDS
    ) -> None:
        """`flags` are what the API server is started with besides."""
        self.folder = folder
        self.kinds = kinds
        self.plane = ControlPlane(assets, folder, flags)
        self.admin = self.plane.admin
        self.scheduler = self.plane.scheduler
        self.plane.etcd.start()

    def start(self) -> None:
        self.plane.api_server.start()
        eventually("the API server is ready", self.plane.is_ready)

    def kill(self) -> None:
        self.plane.api_server.kill()

    def stop(self) -> None:
        self.plane.stop()

    def forget_history(self) -> None:
        self.plane.forget_history()


class SandboxServer:
    name = "sandbox"
    kinds: Mapping[str, KindInfo] = KINDS

    def __init__(self, folder: Path, module: str = "tests.real_cluster.sandbox_server") -> None:
        """`module` is the program that serves."""
        self.folder = folder
        authority = trustme.CA()
        issued = authority.issue_cert(HOST)
        self._authority_file = folder / "ca.crt"
        authority.cert_pem.write_to_path(self._authority_file)
        issued.private_key_pem.write_to_path(folder / "server.key")
        issued.cert_chain_pems[0].write_to_path(folder / "server.crt")
        self._port = free_port()
        self.admin = self.scheduler = self.kubeconfig("admin")
        command = [sys.executable, "-m", module, folder, str(self._port), TOKEN]
        self._program = ServerProgram(command, folder / "sandbox.log", REPOSITORY)

    def start(self) -> None:
        self._program.start()
        eventually("the sandbox is ready", self._is_ready)

    def _is_ready(self) -> bool:
        self._program.check()
        return Client(self.admin).is_ready()

    def kill(self) -> None:
        self._program.kill()

    def stop(self) -> None:
        self._program.stop()

    def forget_history(self) -> None:
        """A sandbox that starts again has no history."""

    def kubeconfig(self, name: str, prefix: str = "") -> Path:
        """A kubeconfig of that name; `prefix` comes before every path."""
        path = self.folder / f"{name}.kubeconfig"
        server = f"https://{HOST}:{self._port}{prefix}"
        cluster = {"server": server, "certificate-authority": str(self._authority_file)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "sandbox", "cluster": cluster}],
            "users": [{"name": "all", "user": {"token": TOKEN}}],
            "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "all"}}],
            "current-context": "sandbox",
        }
        path.write_text(yaml.safe_dump(content))
        return path
