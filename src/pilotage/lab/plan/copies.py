"""How many more copies of a pod fit, and what stops the next one: found by placing them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import msgspec

from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import ProfileEngine
from pilotage.explain.explainer import explain
from pilotage.explain.report import Report
from pilotage.lab.plan.placing import Placing, Unplaceable, as_new
from pilotage.model import Pod

_EVERY = 256


class FittingCopies(msgspec.Struct, frozen=True, rename="camel"):
    """What became of the copies."""

    pod: str
    copies: int
    nodes: dict[str, int]
    """How many on each, most first."""
    stopped_by: str
    """Why the next one does not fit; "" if as many fit as were asked about."""
    report: Report | None = None
    """Everything about the next one."""


def fit(
    cluster: Cluster,
    engines: Mapping[str, ProfileEngine],
    pod: Pod,
    most: int,
    on_progress: Callable[[int], None] = lambda placed: None,
) -> FittingCopies:
    """Place copies until one does not fit, or there are `most`; the cluster is afterwards as it was before."""
    placing, on = Placing(cluster, engines), Counter[str]()
    stopped_by, report = "", None
    try:
        for number in range(most):
            copy = as_new(pod, f"{pod.name}-copy-{number}")
            try:
                on[placing.place(copy)] += 1
            except Unplaceable as problem:
                stopped_by = str(problem)
                engine = engines.get(pod.spec.scheduler_name)
                report = None if engine is None else explain(engine, copy)
                break
            if number % _EVERY == 0:
                on_progress(number)
    finally:
        placing.take_back()
    ordered = dict(sorted(on.items(), key=lambda one: (-one[1], one[0])))
    return FittingCopies(pod.key, on.total(), ordered, stopped_by, report)
