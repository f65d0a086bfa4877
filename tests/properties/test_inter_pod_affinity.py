"""InterPodAffinity on random clusters that change: columns = node by node = the rules written down plainly.

One plugin lives through all changes of its cluster, so what it remembers of nodes, pods and namespaces is on trial
too. The plain rules below loop over nodes, pods and terms and know nothing of columns, classes or tallies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.model import Node, Pod
from pilotage.model.pod_spec import PodAffinity, PodAffinityTerm
from pilotage.model.selectors import LabelSelector
from pilotage.plugins.args import InterPodAffinityArgs
from pilotage.plugins.inter_pod_affinity import pods_per_domain, tallies, term_book
from pilotage.testing import NodeBuilder, PodBuilder, node, pod
from tests.plugins.inter_pod_affinity.affinity_world import (
    HOSTNAME,
    NOT_APART,
    NOT_NEAR,
    UNWELCOME,
    ZONE,
    AffinityWorld,
    Json,
    apart,
    near,
    rather_apart,
    rather_near,
    term,
)

NODE_NAMES = [f"n{number}" for number in range(7)]
SPACES = ["default", "prod", "test"]
SELECTORS: list[Json | None] = [
    None,
    {},
    {"matchLabels": {"app": "1"}},
    {"matchLabels": {"app": "2", "color": "blue"}},
    {"matchLabels": {"color": "blue"}},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["1", "2"]}]},
    {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["1"]}]},
    {"matchLabels": {"color": "red"}, "matchExpressions": [{"key": "app", "operator": "Exists"}]},
]
STAGES: list[Json] = [
    {},
    {"matchLabels": {"stage": "a"}},
    {"matchExpressions": [{"key": "stage", "operator": "DoesNotExist"}]},
]


@st.composite
def nodes(draw: st.DrawFn) -> NodeBuilder:
    built = node(draw(st.sampled_from(NODE_NAMES)))
    if draw(st.integers(0, 4)):
        built = built.zone(draw(st.sampled_from(["a", "b", "c", ""])))
    if draw(st.integers(0, 2)):
        built = built.label("rack", draw(st.sampled_from(["1", "2"])))
    return built.label(HOSTNAME, "shared") if draw(st.integers(0, 4)) == 0 else built


@st.composite
def terms(draw: st.DrawFn) -> Json:
    more: dict[str, Any] = {}
    if draw(st.integers(0, 2)) == 0:
        more["namespaces"] = draw(st.lists(st.sampled_from([*SPACES, "unknown"]), min_size=1, max_size=2))
    if draw(st.integers(0, 2)) == 0:
        more["namespaceSelector"] = draw(st.sampled_from(STAGES))
    return term(draw(st.sampled_from(SELECTORS)), draw(st.sampled_from([ZONE, ZONE, HOSTNAME, "rack"])), **more)


@st.composite
def pods(draw: st.DrawFn, name: str) -> PodBuilder:
    built = pod(name).namespace(draw(st.sampled_from(["default", *SPACES, "unknown"])))
    if draw(st.booleans()):
        built = built.label("color", draw(st.sampled_from(["blue", "red"])))
    if draw(st.integers(0, 3)):
        built = built.label("app", draw(st.sampled_from("123")))
    for add in draw(st.lists(st.sampled_from([near, apart, rather_near, rather_apart]), max_size=3)):
        weight = {"weight": draw(st.integers(1, 100))} if add in (rather_near, rather_apart) else {}
        built = add(built, draw(terms()), **weight)
    return built


@st.composite
def placed(draw: st.DrawFn) -> PodBuilder:
    built = draw(pods(f"p{draw(st.integers(0, 9))}")).node(draw(st.sampled_from(NODE_NAMES)))
    return built.terminating() if draw(st.integers(0, 5)) == 0 else built


changes = st.one_of(
    st.tuples(st.just("node"), nodes()),
    st.tuples(st.just("node gone"), st.sampled_from(NODE_NAMES)),
    *[st.tuples(st.just("pod"), placed())] * 4,
    st.tuples(st.just("pod gone"), placed()),
    st.tuples(st.just("namespace"), st.tuples(st.sampled_from(SPACES), st.sampled_from(["a", "b", None]))),
    st.tuples(st.just("namespace gone"), st.sampled_from(SPACES)),
)
steps = st.lists(
    st.tuples(st.lists(changes, max_size=6), pods("new"), st.integers(0, 2**7 - 1)), min_size=1, max_size=8
)
arguments = st.builds(InterPodAffinityArgs, st.sampled_from([0, 1, 100]), st.booleans())


def apply(world: AffinityWorld, change: str, thing: Any) -> None:
    cluster = world.cluster
    match change:
        case "node":
            cluster.put_node(thing.build())
        case "node gone":
            cluster.remove_node(thing)
        case "pod":
            cluster.put_pod(thing.build())
        case "pod gone":
            cluster.remove_pod(thing.build().uid)
        case "namespace":
            world.put_namespace(thing[0], {} if thing[1] is None else {"stage": thing[1]})
        case "namespace gone":
            cluster.remove_object("Namespace", thing)


def live(args: InterPodAffinityArgs, first: list[NodeBuilder], days: list[tuple[Any, PodBuilder, int]]) -> None:
    """After each round of changes ask about the pods of all rounds so far, as a workload would."""
    world = AffinityWorld(first, args=args)
    asked: list[PodBuilder] = []
    for made, waiting, chosen in days:
        for change, thing in made:
            apply(world, change, thing)
        world.check()
        asked.append(waiting)
        names = world.cluster.nodes.names
        feasible = [name for at, name in enumerate(names) if chosen >> at & 1] or list(names)
        for builder in asked:
            plain = PlainRules(world, world.pod(builder))
            assert world.rejections(builder) == plain.rejections()
            assert world.skips_filter(builder) == plain.skips_filter()
            if names:
                assert world.scores(builder, feasible) == plain.scores(feasible, args)
        world.check()


@settings(max_examples=60, deadline=None)
@given(args=arguments, first=st.lists(nodes(), min_size=2, max_size=6), days=steps)
def test_columns_and_memory_give_what_the_plain_rules_give(
    args: InterPodAffinityArgs, first: list[NodeBuilder], days: list[tuple[Any, PodBuilder, int]]
) -> None:
    live(args, first, days)


@contextmanager
def short_memory() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pods_per_domain, "_KEPT_SUMS", 2)
        patch.setattr(pods_per_domain, "_FEW_NODES", 1)
        patch.setattr(tallies, "_KEPT_TALLIES", 2)
        patch.setattr(term_book, "_KEPT_ANSWERS", 2)
        yield


@settings(max_examples=40, deadline=None)
@given(args=arguments, first=st.lists(nodes(), min_size=2, max_size=6), days=steps)
def test_what_was_forgotten_is_worked_out_again(
    args: InterPodAffinityArgs, first: list[NodeBuilder], days: list[tuple[Any, PodBuilder, int]]
) -> None:
    with short_memory():
        live(args, first, days)


@settings(max_examples=60, deadline=None)
@given(
    first=st.lists(nodes(), min_size=2, max_size=6),
    there=st.lists(placed(), max_size=10, unique_by=lambda builder: builder.build().uid),
    asked=pods("new"),
    moved=st.lists(placed(), min_size=1, max_size=4, unique_by=lambda builder: builder.build().uid),
)
def test_imagined_pods_count_like_pods_that_are_there(
    first: list[NodeBuilder], there: list[PodBuilder], asked: PodBuilder, moved: list[PodBuilder]
) -> None:
    """Adding pods to a node in a dry run gives the verdict of a cluster in which they are on that node."""
    known = {builder.build().uid for builder in there}
    target = first[0].build().name
    added = [builder.node(target) for builder in moved if builder.build().uid not in known]
    before, after = AffinityWorld(first, there), AffinityWorld(first, [*there, *added])
    if before.skips_filter(asked):
        return
    imagined = before.imagine(asked, target)
    for builder in added:
        imagined.add(builder)
    assert imagined.rejection == after.rejections(asked).get(target, "")
    for builder in added:
        imagined.remove(builder)
    assert imagined.rejection == before.rejections(asked).get(target, "")


class PlainRules:
    """What the plugin should say, one node, one pod and one term at a time."""

    def __init__(self, world: AffinityWorld, asked: Pod) -> None:
        table = world.cluster.nodes
        self._pod = asked
        self._nodes = [table.node(row) for row in range(len(table))]
        self._pods = [(other, self._nodes[row]) for row in range(len(table)) for other in table.pods_on(row).values()]
        self._spaces = {name: space.labels for name, space in world.cluster.objects("Namespace").items()}

    def _own_term_means(self, wanted: PodAffinityTerm, other: Pod) -> bool:
        """The pod's terms: only namespaces that exist can be selected by their labels, unless all are."""
        selector = wanted.namespace_selector
        by_labels = selector is not None and (
            selector.is_empty or (other.namespace in self._spaces and selector.matches(self._spaces[other.namespace]))
        )
        return (_names(wanted, self._pod, other) or by_labels) and _selects(wanted.label_selector, other.labels)

    def _other_term_means(self, wanted: PodAffinityTerm, owner: Pod) -> bool:
        """Terms of others about the pod: a namespace that does not exist has no labels."""
        labels: Mapping[str, str] = self._spaces.get(self._pod.namespace, {})
        by_labels = _selects(wanted.namespace_selector, labels)
        return (_names(wanted, owner, self._pod) or by_labels) and _selects(wanted.label_selector, self._pod.labels)

    def _counts(self) -> tuple[Counter[tuple[str, str]], ...]:
        close: Counter[tuple[str, str]] = Counter()
        away: Counter[tuple[str, str]] = Counter()
        unwelcome: Counter[tuple[str, str]] = Counter()
        wanted = _affinity(self._pod).required
        for other, where in self._pods:
            if wanted and all(self._own_term_means(t, other) for t in wanted):
                close.update(_domains(where, wanted))
            own = [t for t in _anti_affinity(self._pod).required if self._own_term_means(t, other)]
            away.update(_domains(where, own))
            theirs = [t for t in _anti_affinity(other).required if self._other_term_means(t, other)]
            unwelcome.update(_domains(where, theirs))
        return close, away, unwelcome

    def skips_filter(self) -> bool:
        has_terms = _affinity(self._pod).required or _anti_affinity(self._pod).required
        return not has_terms and not self._counts()[2]

    def rejections(self) -> dict[str, str]:
        close, away, unwelcome = self._counts()
        wanted = _affinity(self._pod).required
        is_first = not close and all(self._own_term_means(t, self._pod) for t in wanted)
        found = {}
        for checked in self._nodes:
            domains = set(checked.labels.items())
            needed = {(t.topology_key, checked.labels.get(t.topology_key)) for t in wanted}
            has_keys = all(value is not None for _, value in needed)
            if not has_keys or not (is_first or needed <= close.keys()):
                found[checked.name] = NOT_NEAR
            elif domains & away.keys():
                found[checked.name] = NOT_APART
            elif domains & unwelcome.keys():
                found[checked.name] = UNWELCOME
        return found

    def scores(self, feasible: Sequence[str], args: InterPodAffinityArgs) -> dict[str, tuple[int, int]] | None:
        has_wishes = bool(_affinity(self._pod).preferred or _anti_affinity(self._pod).preferred)
        if args.ignore_preferred_terms_of_existing_pods and not has_wishes:
            return None
        weights: dict[tuple[str, str], int] = {}
        for other, where in self._pods:
            for wanted, weight in self._matching(other, args.hard_pod_affinity_weight):
                for domain in _domains(where, [wanted]):
                    weights[domain] = weights.get(domain, 0) + weight
        if not weights:
            return None
        raw = {
            n.name: sum(weights.get(domain, 0) for domain in n.labels.items())
            for n in self._nodes
            if n.name in feasible
        }
        low, spread = min(raw.values()), max(raw.values()) - min(raw.values())
        return {name: (score, int(100 * ((score - low) / spread)) if spread else 0) for name, score in raw.items()}

    def _matching(self, other: Pod, hard_weight: int) -> Iterator[tuple[PodAffinityTerm, int]]:
        for sign, mine, theirs in (
            (1, _affinity(self._pod), _affinity(other)),
            (-1, _anti_affinity(self._pod), _anti_affinity(other)),
        ):
            for weighted in mine.preferred:
                if self._own_term_means(weighted.pod_affinity_term, other):
                    yield weighted.pod_affinity_term, sign * weighted.weight
            for weighted in theirs.preferred:
                if self._other_term_means(weighted.pod_affinity_term, other):
                    yield weighted.pod_affinity_term, sign * weighted.weight
        for wanted in _affinity(other).required:
            if hard_weight and self._other_term_means(wanted, other):
                yield wanted, hard_weight


def _affinity(pod: Pod) -> PodAffinity:
    return (pod.spec.affinity and pod.spec.affinity.pod_affinity) or PodAffinity()


def _anti_affinity(pod: Pod) -> PodAffinity:
    return (pod.spec.affinity and pod.spec.affinity.pod_anti_affinity) or PodAffinity()


def _names(wanted: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    if not wanted.namespaces and wanted.namespace_selector is None:
        return owner.namespace == other.namespace
    return other.namespace in wanted.namespaces


def _selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    return selector is not None and selector.matches(labels)


def _domains(where: Node, wanted: Sequence[PodAffinityTerm]) -> list[tuple[str, str]]:
    return [(t.topology_key, where.labels[t.topology_key]) for t in wanted if t.topology_key in where.labels]
