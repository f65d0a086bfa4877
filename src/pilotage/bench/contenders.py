"""The schedulers that can be measured against one control plane, each as a process with its usual settings.

kube-scheduler limits its own requests to 50 a second unless configured otherwise; as in its own benchmark it is set
so here, because that limit would be all that is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import yaml

from pilotage.bench.child_process import Child
from pilotage.bench.cluster_assets import gate_flags
from pilotage.bench.control_plane import ControlPlane

ALONE = ("--leader-elect=false", "--secure-port=0")
"""No other instance, no scrapes of metrics."""
_UNLIMITED = 100_000


class Contender(Protocol):
    """A scheduler to be measured."""

    @property
    def name(self) -> str: ...

    async def start(self, plane: ControlPlane, folder: Path) -> Child: ...


@dataclass(frozen=True, slots=True)
class Pilotage:
    """`pilotage run`."""

    arguments: Sequence[str] = ()
    name: str = "pilotage"

    async def start(self, plane: ControlPlane, folder: Path) -> Child:
        return await Child.start("run", "--kubeconfig", str(plane.scheduler), *ALONE, *self.arguments)


@dataclass(frozen=True, slots=True)
class KubeScheduler:
    """kube-scheduler."""

    program: Path
    gates: Sequence[str] = ()
    name: str = "kube-scheduler"

    async def start(self, plane: ControlPlane, folder: Path) -> Child:
        connection = {"kubeconfig": str(plane.scheduler), "qps": _UNLIMITED, "burst": _UNLIMITED}
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": connection,
            "leaderElection": {"leaderElect": False},
        }
        file = folder / "kube-scheduler.yaml"
        file.write_text(yaml.safe_dump(configuration))
        log = folder / "kube-scheduler.log"
        flags = (f"--config={file}", "--secure-port=0", *gate_flags(self.gates))
        return await Child.start_program(self.program, *flags, log=log)
