"""PodTopologySpread on random clusters that change: columns = node by node = the rules written down plainly.

One plugin lives through all changes of its cluster, so what it remembers of nodes, pods and services is on trial too.
The plain rules below count with loops over nodes and pods and know nothing of columns.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pilotage.model import Node, Pod
from pilotage.model.pod_spec import TopologySpreadConstraint
from pilotage.plugins.node_selection import node_matches
from pilotage.plugins.tolerations import first_untolerated
from pilotage.testing import NodeBuilder, PodBuilder, node, pod
from tests.plugins.pod_topology_spread.spread_world import (
    HARD,
    HOSTNAME,
    NO_LABEL,
    SOFT,
    TOO_MANY,
    ZONE,
    Json,
    SpreadWorld,
    rule,
    spread,
)

NODE_NAMES = [f"n{number}" for number in range(8)]
KEYS = [ZONE, HOSTNAME, "rack"]
SELECTORS: list[Json | None] = [
    None,
    {},
    {"matchLabels": {"color": "blue"}},
    {"matchLabels": {"color": "blue"}},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["1", "2"]}]},
    {"matchLabels": {"color": "blue"}, "matchExpressions": [{"key": "app", "operator": "Exists"}]},
]
SERVICES = [{"color": "blue"}, {"app": "1"}, {}]


class Dice(random.Random):
    """Random parts of a cluster, dense enough that most rules matter."""

    def happens(self, percent: int) -> bool:
        return self.random() * 100 < percent

    def node(self) -> NodeBuilder:
        built = node(self.choice(NODE_NAMES))
        if self.happens(85):
            built = built.zone(self.choice(["a", "b", "c", ""]))
        if self.happens(75):
            built = built.label("rack", self.choice("12"))
        if self.happens(60):
            built = built.label("disk", "ssd")
        if self.happens(15):
            built = built.label(HOSTNAME, "shared")
        return built.taint("gpu", "NoSchedule") if self.happens(25) else built

    def labelled(self, name: str) -> PodBuilder:
        built = pod(name).namespace("other" if self.happens(15) else "default")
        if self.happens(85):
            built = built.label("color", "blue" if self.happens(75) else "red")
        return built.label("app", self.choice("123")) if self.happens(60) else built

    def placed(self) -> PodBuilder:
        built = self.labelled(f"p{self.randrange(40)}").node(self.choice(NODE_NAMES))
        return built.terminating() if self.happens(10) else built

    def rule(self) -> Json:
        more: dict[str, Any] = {}
        if self.happens(25):
            more["minDomains"] = self.randint(1, 4)
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if self.happens(40):
                more[policy] = self.choice(["Honor", "Ignore"])
        if self.happens(25):
            more["matchLabelKeys"] = ["app"]
        key, when = self.choice(KEYS), self.choice([HARD, SOFT])
        return rule(key, when, self.randint(1, 3), self.choice(SELECTORS), **more)

    def waiting(self) -> PodBuilder:
        built = self.labelled("new")
        if self.happens(75):
            built = built.spec(topologySpreadConstraints=[self.rule() for _ in range(self.randint(1, 3))])
        if self.happens(35):
            built = built.node_selector(disk="ssd")
        return built.tolerate("gpu") if self.happens(50) else built

    def change(self, world: SpreadWorld) -> None:
        """Let something happen in the cluster."""
        cluster, kind = world.cluster, self.random()
        if kind < 0.1:
            cluster.put_node(self.node().build())
        elif kind < 0.15:
            cluster.remove_node(self.choice(NODE_NAMES))
        elif kind < 0.8:
            cluster.put_pod(self.placed().build())
        elif kind < 0.9:
            cluster.remove_pod(self.placed().build().uid)
        else:
            world.put("Service", "only", selector=self.choice(SERVICES))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_columns_and_memory_give_what_the_plain_rules_give(seed: int) -> None:
    dice = Dice(seed)
    world = SpreadWorld([dice.node() for _ in range(8)], [dice.placed() for _ in range(20)])
    # The same few pods are asked for again and again, so that what was remembered of them is used.
    pods = [dice.waiting() for _ in range(4)]
    for _ in range(16):
        for _ in range(dice.randrange(5)):
            dice.change(world)
        asked = dice.choice(pods)
        plain = PlainRules(world, asked.build())
        assert world.rejections(asked) == plain.rejections()
        names = world.cluster.nodes.names
        feasible = [name for name in names if dice.happens(70)] or list(names)
        if names:
            assert world.scores(asked, feasible) == plain.scores(feasible)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_imagined_pods_count_like_pods_that_are_there(seed: int) -> None:
    """Adding pods to a node in a dry run gives the verdict of a cluster in which they are on that node."""
    dice = Dice(seed)
    first, there = [dice.node() for _ in range(8)], [dice.placed() for _ in range(20)]
    before = SpreadWorld(first, there)
    asked = dice.waiting()
    constraints = asked.build().spec.topology_spread_constraints
    # Pods that are imagined count for an empty selector, pods that are there do not.
    assume(not any(c.label_selector is not None and c.label_selector.is_empty for c in constraints))
    assume(not before.skips_filter(asked))
    target = first[0].build().name
    added = [dice.labelled(f"added{number}").node(target) for number in range(3)]
    imagined = before.imagine(asked, target)
    for builder in added:
        imagined.add(builder)
    assert imagined.is_rejected == (target in SpreadWorld(first, [*there, *added]).rejections(asked))
    for builder in added:
        imagined.remove(builder)
    assert imagined.is_rejected == (target in before.rejections(asked))


class PlainRules:
    """What the plugin should say, one node and one pod at a time."""

    def __init__(self, world: SpreadWorld, asked: Pod) -> None:
        table = world.cluster.nodes
        self._pod = asked
        self._nodes = [table.node(row) for row in range(len(table))]
        self._pods = {table.names[row]: list(table.pods_on(row).values()) for row in range(len(table))}
        self._deduced: dict[str, str] = {}
        for service in world.cluster.objects("Service").values():
            if asked.namespace == "default" and service.spec.selector.items() <= asked.labels.items():
                self._deduced = service.spec.selector

    def _rules(self, action: str) -> list[TopologySpreadConstraint]:
        own = self._pod.spec.topology_spread_constraints
        if own:
            return [r for r in own if r.when_unsatisfiable == action]
        if action == HARD or not self._deduced:
            return []
        selector = {"matchLabels": self._deduced}
        defaults = spread(rule(HOSTNAME, SOFT, 3, selector), rule(ZONE, SOFT, 5, selector)).build()
        return list(defaults.spec.topology_spread_constraints)

    def _selects(self, wanted: TopologySpreadConstraint, other: Pod) -> bool:
        if wanted.label_selector is None or not wanted.label_selector.matches(other.labels):
            return False
        mine = self._pod.labels
        return all(other.labels.get(key) == mine[key] for key in wanted.match_label_keys if key in mine)

    def _count(self, wanted: TopologySpreadConstraint, node: Node) -> int:
        selector, mine = wanted.label_selector, self._pod.labels
        is_empty = selector is not None and selector.is_empty and not any(k in mine for k in wanted.match_label_keys)
        pods = [p for p in self._pods[node.name] if p.namespace == self._pod.namespace and not p.is_terminating]
        return 0 if is_empty else sum(self._selects(wanted, other) for other in pods)

    def _included(self, wanted: TopologySpreadConstraint, node: Node) -> bool:
        if wanted.node_affinity_policy != "Ignore" and not node_matches(self._pod, node):
            return False
        untolerated = first_untolerated(node.spec.taints, self._pod.spec)
        return wanted.node_taints_policy != "Honor" or untolerated is None

    def rejections(self) -> dict[str, str]:
        hard = self._rules(HARD)
        whole = [n for n in self._nodes if _has_keys(n, hard)]
        found = {}
        for checked in self._nodes:
            for wanted in hard:
                value = checked.labels.get(wanted.topology_key)
                counts: Counter[str] = Counter()
                for n in whole:
                    if self._included(wanted, n):
                        counts[n.labels[wanted.topology_key]] += self._count(wanted, n)
                least = 0 if len(counts) < (wanted.min_domains or 1) else min(counts.values())
                itself = self._selects(wanted, self._pod)
                if value is None or counts[value] + itself - least > wanted.max_skew:
                    found[checked.name] = NO_LABEL if value is None else TOO_MANY
                    break
        return found

    def scores(self, feasible: Iterable[str]) -> dict[str, tuple[int, int]] | None:
        soft = self._rules(SOFT)
        if not soft:
            return None
        requires_all = bool(self._pod.spec.topology_spread_constraints)
        candidates = [n for n in self._nodes if n.name in set(feasible)]
        rated = [n for n in candidates if not requires_all or _has_keys(n, soft)]
        raw = {n.name: self._raw(n, soft, rated, requires_all) if n in rated else 0 for n in candidates}
        most = max((raw[n.name] for n in rated), default=0)
        least = min((raw[n.name] for n in rated), default=0)
        normal = {n.name: 100 if most == 0 else 100 * (most + least - raw[n.name]) // most for n in rated}
        return {name: (score, normal.get(name, 0)) for name, score in raw.items()}

    def _raw(self, node: Node, soft: list[TopologySpreadConstraint], rated: list[Node], requires_all: bool) -> int:
        total = 0.0
        for wanted in soft:
            key = wanted.topology_key
            if key not in node.labels:
                continue
            if key == HOSTNAME:
                count, size = self._count(wanted, node), len(rated)
            else:
                counted = [n for n in self._nodes if not requires_all or _has_keys(n, soft)]
                alike = [n for n in counted if n.labels.get(key, "") == node.labels[key] and self._included(wanted, n)]
                count, size = sum(self._count(wanted, n) for n in alike), len({n.labels.get(key, "") for n in rated})
            total += count * math.log(size + 2) + (wanted.max_skew - 1)
        return math.floor(total + 0.5)


def _has_keys(node: Node, wanted: list[TopologySpreadConstraint]) -> bool:
    return all(one.topology_key in node.labels for one in wanted)
