"""What does not change while the process runs: versions, and which feature gates are on."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from typing import Final

from pilotage import __version__
from pilotage.observe.metrics import Metrics

FOLLOWED: Final = ("1", "37")
"""The Kubernetes release whose scheduler we follow."""
_STAGES: Final = {"alpha": "ALPHA", "beta": "BETA", "GA": ""}


def tell_facts(metrics: Metrics, gates: Iterable[tuple[str, str, bool]]) -> None:
    """`gates` are (name, stage, is on)."""
    for name, stage, is_on in gates:
        metrics.kubernetes_feature_enabled.set(is_on, name, _STAGES[stage])
    ours, python = __version__, platform.python_version()
    metrics.build_info.set(1, ours, python)
    major, minor = FOLLOWED
    system = f"{platform.system()}/{platform.machine()}".lower()
    git_version = f"v{major}.{minor}.0-pilotage.{ours}"
    metrics.kubernetes_build_info.set(
        1, major, minor, git_version, "", "", "", "", platform.python_implementation(), system
    )
