"""Rejections remembered for equal pods are what asking anew would say, however the nodes change."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator

import pytest

from pilotage.api import (
    CycleState,
    Filter,
    Mask,
    NodeTable,
    NodeView,
    Pending,
    Plugin,
    Reason,
    Reject,
    Rejection,
    VectorFilter,
)
from pilotage.cluster.state import Cluster
from pilotage.framework.diagnosis import Diagnosis
from pilotage.framework.evaluation import Evaluator
from pilotage.model import Pod
from pilotage.testing import node, pod
from tests.framework.scripted_plugins import profile_of

MANY, CLAIM = Reason("Many", "too many pods"), Reason("Claim", "no claim")
BUSY = Reason("Busy", "busy", unresolvable=True)


class _Signed(Plugin):
    def sign(self, pod: Pod) -> Hashable:
        return ()


class Columns(_Signed, VectorFilter):
    """Two reasons, alone and together."""

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        yield nodes.pod_count > 1, MANY
        yield nodes.requested("cpu") > 1500, BUSY


class BothForms(Columns, Filter):
    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        reasons = [MANY] if node.pod_count > 1 else []
        reasons += [BUSY] if node.requested("cpu") > 1500 else []
        return Reject(*reasons) if reasons else None


class PerNode(_Signed, Filter):
    """Names an amount, so that nodes differ in their reasons; and asks somebody else now and then."""

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        if node.labels.get("claims") == "pending":
            return Pending(CLAIM)
        used = node.requested("cpu")
        return Reject(Reason("Used", "used", have=used)) if used % 1000 == 300 else None


class Unsigned(Plugin, Filter):
    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return Reject(MANY) if len(pod.name) % 2 and node.pod_count else None


def told(evaluator: Evaluator, cluster: Cluster, asked: Pod) -> list[tuple[str, Rejection]]:
    """By row: who rejects it, and how."""
    diagnosis = Diagnosis(node_names=tuple(cluster.nodes.names))
    evaluator.diagnose(CycleState(), asked, diagnosis, None)
    assert diagnosis.rejectors == {rejection.plugin for rejection in diagnosis.rejections()}
    return [(diagnosis.plugin_of(name), diagnosis.rejection(name)) for name in diagnosis.node_names]


@pytest.mark.parametrize("size", [4, 40], ids=["asked one by one", "asked in columns"])
@pytest.mark.parametrize(
    "mix",
    [(Columns,), (BothForms,), (PerNode,), (PerNode, BothForms), (Columns, PerNode), (Columns, Unsigned)],
    ids=lambda mix: "+".join(cls.__name__ for cls in mix),
)
def test_what_is_remembered_is_what_would_be_found(mix: tuple[type[Plugin], ...], size: int) -> None:
    rng, cluster = random.Random(size), Cluster()
    for number in range(size):
        cluster.put_node(node(f"n{number}").build())
    kept = Evaluator(profile_of(*(cls() for cls in mix)), cluster.nodes, cluster.nominations)
    for step in range(40):
        for change in range(rng.choice((0, 1, 2, 12))):
            new = pod(f"p-{step}-{change}").requests(cpu=rng.choice(("100m", "1"))).node(f"n{rng.randrange(size)}")
            cluster.put_pod(new.build())
        if step % 7 == 0:
            label = rng.choice(("pending", "bound"))
            cluster.put_node(node(f"n{rng.randrange(size + 1)}").label("claims", label).build())
        fresh = Evaluator(profile_of(*(cls() for cls in mix)), cluster.nodes, cluster.nominations)
        asked = pod(f"q-{step}").build()
        assert told(kept, cluster, asked) == told(fresh, cluster, asked)


@pytest.mark.parametrize("mix", [(BothForms,), (PerNode, BothForms)], ids=["alone", "together"])
@pytest.mark.parametrize("seed", range(4))
def test_nominations_count_for_everyone_but_their_owner(mix: tuple[type[Plugin], ...], seed: int) -> None:
    rng, cluster = random.Random(seed), Cluster()
    for number in range(6):
        cluster.put_node(node(f"n{number}").build())
    askers = [pod(f"q-{number}").priority(number % 2).requests(cpu="700m").build() for number in range(5)]
    kept = Evaluator(profile_of(*(cls() for cls in mix)), cluster.nodes, cluster.nominations)
    for step in range(60):
        cluster.nominations.nominate(rng.choice(askers), rng.choice(("", "n0", "n1", "n2")))
        if step % 3 == 0:
            cluster.put_pod(pod(f"p-{step}").requests(cpu="100m").node(f"n{rng.randrange(6)}").build())
        asked = rng.choice(askers)
        fresh = Evaluator(profile_of(*(cls() for cls in mix)), cluster.nodes, cluster.nominations)
        assert told(kept, cluster, asked) == told(fresh, cluster, asked)


def test_other_facts_make_everything_to_be_asked_again() -> None:
    class Facts(Columns):
        version = 0

        def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
            yield nodes.everywhere(True), (MANY, BUSY)[self.version]

        def facts_version(self) -> Hashable:
            return self.version

    cluster = Cluster()
    cluster.put_node(node("a").build())
    plugin = Facts()
    evaluator = Evaluator(profile_of(plugin), cluster.nodes, cluster.nominations)
    assert told(evaluator, cluster, pod("p").build()) == [("Facts", Reject(MANY))]
    plugin.version = 1
    assert told(evaluator, cluster, pod("q").build()) == [("Facts", Reject(BUSY))]
