"""Pods placed in memory and taken back."""

from __future__ import annotations

import numpy as np
import pytest

from pilotage.assembly import SchedulerOptions
from pilotage.explain.engine import cluster_of_manifests, thinking_engines
from pilotage.lab.plan.placing import Placing, Unplaceable, as_new
from pilotage.testing import VirtualClock, node, pod


def test_what_was_placed_counts_until_it_is_taken_back() -> None:
    cluster = cluster_of_manifests([node("a").cpu("2").json(), node("b").cpu("2").json()])
    placing = Placing(cluster, thinking_engines(cluster, VirtualClock(), SchedulerOptions()))
    subject = pod("p").requests(cpu="2").node("gone").build()
    assert {placing.place(as_new(subject, f"p{at}")) for at in range(2)} == {"a", "b"}
    with pytest.raises(Unplaceable, match="2 Insufficient cpu"):
        placing.place(as_new(subject, "p2"))
    placing.take_back()
    assert placing.place(as_new(subject), np.array([name == "b" for name in cluster.nodes.names])) == "b"
