"""Where the programs of a real control plane are: etcd, kube-apiserver and, for comparison, kube-scheduler.

`KUBEBUILDER_ASSETS` names a folder with them, as in the tests of controllers; otherwise it is the folder into which
`make cluster-assets` builds them. Nothing is ever downloaded from here.

A release does not start with a feature gate that it does not know, so how it is started with pod groups depends
on it: 1.36 has them as v1alpha2 behind three gates, 1.37 as v1beta1 behind one.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

KUBERNETES_VERSION = "v1.36.3"
"""The release that tests and benchmarks use; `make cluster-assets KUBERNETES=v1.37.1` builds another."""
NEEDED = ("etcd", "kube-apiserver")
VARIABLE = "KUBEBUILDER_ASSETS"
_VERSION_SECONDS: Final = 30.0
_BY_ITSELF: Final = ("TopologyAwareWorkloadScheduling", "DRAWorkloadResourceClaims")


class AssetsMissing(Exception):
    """There is no control plane to start; the message is one line with the way out."""


@dataclass(frozen=True, slots=True)
class ClusterAssets:
    """A folder of programs."""

    folder: Path

    def program(self, name: str) -> Path:
        return self.folder / name

    @property
    def kube_scheduler(self) -> Path | None:
        """None if it is not among the programs."""
        path = self.folder / "kube-scheduler"
        return path if path.exists() else None


def built_folder(version: str, environment: Mapping[str, str]) -> Path:
    """Where `make cluster-assets` leaves the programs of a version: outside of any checkout, shared by all."""
    cache = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME", "~")).expanduser() / ".cache"
    return Path(cache) / "pilotage" / "cluster-assets" / version


def find_assets(environment: Mapping[str, str] = os.environ) -> ClusterAssets:
    """The programs to use; AssetsMissing if one that is needed is not there."""
    given = environment.get(VARIABLE)
    folder = Path(given) if given else built_folder(KUBERNETES_VERSION, environment)
    missing = [name for name in NEEDED if not os.access(folder / name, os.X_OK)]
    if missing:
        way_out = f"correct {VARIABLE}" if given else f"run `make cluster-assets` (needs Go) or set {VARIABLE}"
        raise AssetsMissing(f"no {' and no '.join(missing)} in {folder}; {way_out}")
    return ClusterAssets(folder)


def gate_flags(gates: Sequence[str]) -> list[str]:
    """What turns these feature gates on."""
    return [f"--feature-gates={','.join(f'{gate}=true' for gate in gates)}"] if gates else []


@dataclass(frozen=True, slots=True)
class PodGroupRelease:
    """How a release has pod groups."""

    version: str
    """Of scheduling.k8s.io."""
    gates: tuple[str, ...]
    """So that they are scheduled together and preempt."""
    more_gates: tuple[str, ...]
    """For the rest."""

    def server_flags(self, *, everything: bool = False) -> list[str]:
        """For the API server."""
        gates = self.gates + self.more_gates if everything else self.gates
        return [*gate_flags(gates), f"--runtime-config=scheduling.k8s.io/{self.version}=true"]


_IN_1_36: Final = PodGroupRelease(
    "v1alpha2", ("GenericWorkload", "GangScheduling", "WorkloadAwarePreemption"), _BY_ITSELF
)
_SINCE_1_37: Final = PodGroupRelease("v1beta1", ("GenericWorkload",), (*_BY_ITSELF, "PodGroupPreemptionPolicy"))


def pod_group_release(assets: ClusterAssets) -> PodGroupRelease | None:
    """That of these programs; None if it is so old that it has none in a form that we read."""
    command = [str(assets.program("kube-apiserver")), "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_VERSION_SECONDS).stdout
    found = re.search(r"v(\d+)\.(\d+)", said)
    release = (int(found[1]), int(found[2])) if found else (0, 0)
    return None if release < (1, 36) else _IN_1_36 if release < (1, 37) else _SINCE_1_37
