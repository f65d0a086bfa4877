"""Node selectors in columns say what they say node by node, few or many terms, whatever labels nodes have."""

from __future__ import annotations

import random
from typing import Any

from pilotage.api import CycleState
from pilotage.cluster.node_rows import NodeRows
from pilotage.cluster.node_view import RowView
from pilotage.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from pilotage.testing import NodeBuilder, node, pod
from tests.plugins.one_plugin import OnePlugin

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
KEYS = ("zone", "size", "rare", "absent", "kubernetes.io/hostname")


def some_nodes(rng: random.Random) -> list[NodeBuilder]:
    nodes = []
    for number in range(40):
        built = node(f"n{number}").label("size", rng.choice(["-3", "7", "12", "large"]))
        if rng.random() < 0.8:
            built = built.label("zone", f"z{rng.randrange(4)}")
        if number < 3:
            built = built.label("rare", str(number))
        nodes.append(built)
    return nodes


def requirement(rng: random.Random) -> dict[str, Any]:
    operator, key = rng.choice(OPERATORS), rng.choice(KEYS)
    wanted: dict[str, Any] = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        known = ["z0", "z1", "7", "large", "n3", "n17", "nowhere", "0"]
        wanted["values"] = rng.sample(known, rng.randrange(1, 6))
    elif operator in ("Gt", "Lt"):
        wanted["values"] = [str(rng.randrange(-5, 15))]
    return wanted


def term(rng: random.Random) -> dict[str, Any]:
    fields = {"key": "metadata.name", "operator": rng.choice(["In", "NotIn"]), "values": [f"n{rng.randrange(45)}"]}
    expressions = [requirement(rng) for _ in range(rng.choice([0, 1, 1, 1, 2, 3]))]
    return {"matchExpressions": expressions, "matchFields": [fields] if rng.random() < 0.2 else []}


def test_columns_and_nodes_agree_on_random_selectors() -> None:
    rng = random.Random(11)
    matched = set()
    for attempt in range(150):
        world = OnePlugin(NodeAffinity(NodeAffinityArgs()), *some_nodes(rng))
        terms = [term(rng) for _ in range(rng.choice([1, 2, 5, 40]))]
        weighted = [{"weight": rng.randrange(1, 100), "preference": one} for one in terms]
        built = pod(f"p{attempt}").spec(
            nodeSelector={"zone": "z1"} if rng.random() < 0.2 else {},
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
                    "preferredDuringSchedulingIgnoredDuringExecution": weighted,
                }
            },
        )
        rejected = world.rejected(built)
        world.raw_scores(built)
        matched.add(len(rejected))
    assert {0, 40} < matched, "some selectors match all nodes, some none, some a part"


def test_a_table_of_some_nodes_is_judged_like_the_whole() -> None:
    rng = random.Random(2)
    world = OnePlugin(NodeAffinity(NodeAffinityArgs()), *some_nodes(rng))
    nodes = world.cluster.nodes
    for _ in range(50):
        built = pod("p").node_affinity_terms(*(term(rng) for _ in range(20))).build()
        rows = nodes.order[rng.sample(range(40), 15)]
        ((mask, _),) = world.plugin.filter_all(CycleState(), built, NodeRows(nodes, rows))
        alone = [world.plugin.filter(CycleState(), built, RowView(nodes, row)) is not None for row in rows.tolist()]
        assert mask.tolist() == alone
