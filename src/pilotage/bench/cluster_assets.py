"""Where the programs of a real control plane are: etcd, kube-apiserver and, for comparison, kube-scheduler.

`KUBEBUILDER_ASSETS` names a folder with them, as in the tests of controllers; otherwise it is the folder into which
`make cluster-assets` builds them. Nothing is ever downloaded from here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

KUBERNETES_VERSION = "v1.36.3"
"""The newest release whose whole module is published."""
NEEDED = ("etcd", "kube-apiserver")
VARIABLE = "KUBEBUILDER_ASSETS"


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
