"""Hand everything that is known to a new engine: what is referred to comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from pilotage.jobs.surface import QueueingEngine

NAMESPACE: Final = "Namespace"
FOR_THE_ENGINE: Final = (
    "RuntimeClass",
    "LimitRange",
    "ResourceFlavor",
    "Cohort",
    "AdmissionCheck",
    "ClusterQueue",
    "LocalQueue",
    "Workload",
)
"""In the order in which a new engine gets them, after the namespaces."""


def fill(engine: QueueingEngine, objects_of: Callable[[str], Iterable[Any]]) -> None:
    """`objects_of` gives the objects of a kind."""
    for namespace in objects_of(NAMESPACE):
        engine.set_namespace(namespace.name, namespace.labels)
    for kind in FOR_THE_ENGINE:
        for obj in objects_of(kind):
            engine.upsert(obj)
