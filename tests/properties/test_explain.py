"""Advice, when applied, makes the pod fit; what is said to fit is what the scheduler would do."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.api.state import CycleState
from pilotage.cycle.placement import Placed, place
from pilotage.explain.explainer import explain
from pilotage.testing import NodeBuilder, PodBuilder, node, pod
from tests.explain.world import engine_of

TAINTS = [("gpu", "a100"), ("spot", "")]


@st.composite
def nodes(draw: st.DrawFn) -> list[NodeBuilder]:
    made = []
    for name in "abcd"[: draw(st.integers(1, 4))]:
        builder = node(name).cpu(str(draw(st.integers(1, 6)))).memory(f"{draw(st.integers(1, 8))}Gi")
        for key, value in TAINTS:
            if draw(st.booleans()):
                builder = builder.taint(key, "NoSchedule", value)
        if draw(st.integers(0, 3)) == 0:
            builder = builder.unschedulable()
        if draw(st.booleans()):
            builder = builder.label("disk", draw(st.sampled_from(["ssd", "hdd"])))
        made.append(builder)
    return made


@st.composite
def waiting_pods(draw: st.DrawFn) -> PodBuilder:
    builder = pod("p").requests(cpu=str(draw(st.integers(1, 8))), memory=f"{draw(st.integers(1, 10))}Gi")
    if draw(st.booleans()):
        builder = builder.tolerate("gpu")
    if draw(st.booleans()):
        builder = builder.node_selector({"disk": "ssd"})
    return builder


def applied(change: str, made: list[NodeBuilder], waiting: PodBuilder) -> tuple[list[NodeBuilder], PodBuilder]:
    """The world after the advice was followed, word by word."""
    if found := re.fullmatch(r"it asked for (\S+) (\S+) instead of \S+", change):
        amounts = dict(waiting.json()["spec"]["containers"][0]["resources"]["requests"])
        return made, waiting.requests({**amounts, found[2]: found[1]})
    if found := re.fullmatch(r"it tolerated the taint ([^=:]+)=?([^:]*):(\w+)", change):
        return made, waiting.tolerate(found[1], found[3], found[2] or None)
    if found := re.fullmatch(r"node (\w) were uncordoned", change):
        return [b.spec(unschedulable=False) if b.json()["metadata"]["name"] == found[1] else b for b in made], waiting
    if found := re.fullmatch(r"node (\w) had the label (\w+)=(\w+)", change):
        _, name, key, value = found[0], *found.groups()
        return [b.label(key, value) if b.json()["metadata"]["name"] == name else b for b in made], waiting
    found = re.fullmatch(r"there were one more node like (\w)", change)
    assert found is not None, change
    like = next(b for b in made if b.json()["metadata"]["name"] == found[1])
    twin = like.json()
    twin["metadata"]["name"] = "twin"
    return [*made, NodeBuilder(twin).spec(unschedulable=False)], waiting


@settings(max_examples=150, deadline=None)
@given(nodes(), waiting_pods())
def test_every_advice_is_true(made: list[NodeBuilder], waiting: PodBuilder) -> None:
    report = explain(engine_of(*made), waiting.build())
    for advice in report.would_fit_if:
        if advice.change.endswith("(by preemption)"):
            continue
        changed_nodes, changed_pod = applied(advice.change, made, waiting)
        assert explain(engine_of(*changed_nodes), changed_pod.build()).fits, advice.change


@settings(max_examples=150, deadline=None)
@given(nodes(), waiting_pods())
def test_explanation_agrees_with_the_scheduler(made: list[NodeBuilder], waiting: PodBuilder) -> None:
    report = explain(engine_of(*made), waiting.build())
    placement = place(engine_of(*made), CycleState(), waiting.build())
    assert report.fits == isinstance(placement, Placed)
    if isinstance(placement, Placed):
        assert report.best[0].node == placement.node_name
