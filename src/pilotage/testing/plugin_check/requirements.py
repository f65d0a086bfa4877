"""The requirements for plugins, each with the experiment that would show that one is not met."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pilotage.api import points
from pilotage.api.plugin import Plugin
from pilotage.api.results import Nominate, Pending, PreFlight, Reject, Skip, Wait
from pilotage.api.views import QueuedPod
from pilotage.framework.diagnosis import Diagnosis
from pilotage.testing.builders import PodBuilder
from pilotage.testing.plugin_check.answers import Answers, Asked, OddAnswer, difference
from pilotage.testing.plugin_check.hint_audit import missed_chances, wrongly_shared
from pilotage.testing.plugin_check.placements import (
    members_on_nodes,
    placement_scores_in_range,
    same_placement_scores,
    unchanged_by_placements,
    usable_placements,
)
from pilotage.testing.plugin_check.read_only import contents
from pilotage.testing.plugin_check.world import RandomCluster

_LOWEST, _HIGHEST = 0, 100
_PODS_TO_REJECT: Final = 12
_EVALUATING: Final = (points.PreFilter, points.Filter, points.VectorFilter, points.Score, points.VectorScore)
_ANY: Final = tuple(points.ALL_POINTS)
_PLACEMENT_SCORES: Final = (points.PlacementScore, points.VectorPlacementScore)
_PLACEMENTS: Final = (points.PlacementGenerate, *_PLACEMENT_SCORES)
_COLUMNS: Final = (points.VectorFilter, points.VectorScore)


@dataclass(frozen=True, slots=True)
class Broken:
    """A requirement that is not met, and what showed it."""

    check: str
    requirement: str
    evidence: list[str]


@dataclass(frozen=True, slots=True)
class Requirement:
    """What is required, of which plugins, and how to find out."""

    name: str
    text: str
    points: tuple[type, ...]
    evidence: Callable[[RandomCluster], Iterator[list[str]]]

    def concerns(self, plugin: Plugin) -> bool:
        return isinstance(plugin, self.points)

    def broken(self, world: RandomCluster) -> Broken | None:
        """The first evidence against it in this world."""
        return next((Broken(self.name, self.text, found) for found in self.evidence(world)), None)


def _known_answers(world: RandomCluster) -> Iterator[list[str]]:
    """Nothing is compared: points that are asked once per pod just have to answer what they may."""
    plugin: Any = world.plugin
    for builder in world.pending:
        pod, name = builder.build(), world.cluster.nodes.names[0]
        asked = Asked(plugin, world.cluster.nodes, pod)
        if isinstance(plugin, points.PreEnqueue):
            _expect("pre_enqueue", plugin.pre_enqueue(pod), Reject | Pending | None)
        if isinstance(plugin, points.QueueSort):
            _expect_sort_key(plugin.sort_key(QueuedPod(pod, 0.0, 1)))
        if isinstance(plugin, points.PostFilter):
            rejected = Diagnosis(node_names=tuple(world.cluster.nodes.names))
            _expect("post_filter", plugin.post_filter(asked.state, pod, rejected), Nominate | Reject | Pending)
        if isinstance(plugin, points.Permit):
            answer = plugin.permit(asked.state, pod, name)
            _expect("permit", answer, Wait | Reject | Pending | None)
            if isinstance(answer, Wait) and answer.timeout_seconds <= 0:
                yield [f"permit answered {answer!r}, which no pod can survive"]
        if isinstance(plugin, points.PreBind):
            _expect("pre_bind_pre_flight", plugin.pre_bind_pre_flight(asked.state, pod, name), PreFlight | Skip)


def _expect(method: str, answer: object, wanted: Any) -> None:
    if not isinstance(answer, wanted):
        raise OddAnswer(f"{method} answered {answer!r}; it may be {wanted}")


def _expect_sort_key(key: object) -> None:
    if not isinstance(key, tuple) or not all(isinstance(part, int | float) for part in key):
        raise OddAnswer(f"sort_key answered {key!r}; it must be a tuple of numbers")


def _unchanged_inputs(world: RandomCluster) -> Iterator[list[str]]:
    for builder in world.pending:
        before = contents(world.cluster.nodes)
        asked = _ask(world, builder)
        asked.per_node()
        asked.in_columns()
        after = contents(world.cluster.nodes)
        for name, text in before.items():
            if after[name] != text:
                yield [f"node {name} was {text.decode()}", f"and is {after[name].decode()}"]


def _scores_in_range(world: RandomCluster) -> Iterator[list[str]]:
    for builder in world.pending:
        asked = _ask(world, builder)
        for answers in (asked.per_node(), asked.in_columns()):
            for name, score in asked.normalized(answers.score).items() if answers.score else ():
                if not _LOWEST <= score <= _HIGHEST:
                    evidence = f"node {name} got {score} for pod {builder.json()}"
                    yield [evidence, f"the node: {world.nodes[name].json()}", "normalise, or use min() and max()"]


def _same_in_both_forms(world: RandomCluster) -> Iterator[list[str]]:
    for builder in world.pending:
        asked = _ask(world, builder)
        by_node, by_column = asked.per_node(), asked.in_columns()
        yield from _compared(by_node, by_column, ("per node", "columns "), builder)


def _same_on_part_of_the_nodes(world: RandomCluster) -> Iterator[list[str]]:
    size = len(world.cluster.nodes)
    rows = np.array(sorted(world.sample(range(size), max(1, size // 2))), dtype=np.int64)
    labels = ("of all nodes ", "of a part   ")
    for builder in world.pending:
        asked = _ask(world, builder)
        part = Answers(asked.filter_column(rows), None)
        if not isinstance(world.plugin, points.PreScore) or world.plugin.sign(builder.build()) is not None:
            # Without a signature it is asked about the very nodes that PreScore has seen.
            part = Answers(part.filter, asked.score_column(rows))
        yield from _compared(asked.in_columns(), part, labels, builder)


def _same_when_asked_again(world: RandomCluster) -> Iterator[list[str]]:
    for builder in world.pending:
        first, second = _ask(world, builder), _ask(world, builder)
        yield from _compared(first.per_node(), second.per_node(), ("at first", "again   "), builder)
        yield from _compared(first.in_columns(), second.in_columns(), ("at first", "again   "), builder)


def _same_for_equal_signatures(world: RandomCluster) -> Iterator[list[str]]:
    for builder in world.pending:
        signature = world.plugin.sign(builder.build())
        if signature is None:
            continue
        hash(signature)
        own = _answers(world, builder)
        for other in world.variants(builder):
            if world.plugin.sign(other.build()) == signature:
                for evidence in _compared(own, _answers(world, other), ("this pod ", "other pod"), builder):
                    yield [f"both pods are signed {signature!r}", *evidence, f"other pod: {other.json()}"]


def _one_node_at_a_time(world: RandomCluster) -> Iterator[list[str]]:
    """What happens on one node must not change the signed answers about others."""
    signed = [pod for pod in world.pending if world.plugin.sign(pod.build()) is not None]
    before = [(_answers(world, pod), world.plugin.facts_version()) for pod in signed]
    mark, structure = world.cluster.nodes.mark, world.cluster.nodes.structure
    happening = world.other_node_changes()
    changed = world.cluster.nodes.changed_since(mark)
    if changed is None or world.cluster.nodes.structure != structure:
        return
    touched = {world.cluster.nodes.names[row] for row in changed}
    for pod, (answers, version) in zip(signed, before, strict=True):
        if world.plugin.facts_version() == version:
            rest = _without(answers, touched)
            for evidence in _compared(rest, _answers(world, pod), ("before", "after "), pod):
                yield [f"then: {happening.what}", *evidence, "sign() must be None, or facts_version() must change"]


def _unreserve_gives_back(world: RandomCluster) -> Iterator[list[str]]:
    plugin: Any = world.plugin
    for builder in world.pending:
        pod, name = builder.build(), world.cluster.nodes.names[0]
        state = _ask(world, builder).state
        before = _books(plugin)
        plugin.unreserve(state, pod, name)
        yield from _changed_books(before, plugin, "unreserve without reserve")
        plugin.reserve(state, pod, name)
        # A book that reserve did not write in may be about something else.
        written = {name: book for name, book in before.items() if _books(plugin).get(name) != book}
        plugin.unreserve(state, pod, name)
        yield from _changed_books(written, plugin, "reserve and unreserve")
        before = _books(plugin)
        plugin.unreserve(state, pod, name)
        yield from _changed_books(before, plugin, "unreserve twice")


def _wakes_its_pods(world: RandomCluster) -> Iterator[list[str]]:
    for builder in [*world.pending, *world.more_pods(_PODS_TO_REJECT)]:
        yield from missed_chances(world, builder)


def _same_for_the_whole_class(world: RandomCluster) -> Iterator[list[str]]:
    for builder in [*world.pending, *world.more_pods(_PODS_TO_REJECT)]:
        yield from wrongly_shared(world, builder)


def _ask(world: RandomCluster, pod: PodBuilder) -> Asked:
    return Asked(world.plugin, world.cluster.nodes, pod.build())


def _answers(world: RandomCluster, pod: PodBuilder) -> Answers:
    """In the form that the framework would use."""
    asked = _ask(world, pod)
    by_column, by_node = asked.in_columns(), asked.per_node()
    return Answers(by_column.filter or by_node.filter, by_column.score or by_node.score)


def _without(answers: Answers, names: set[str]) -> Answers:
    def rest(found: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        return None if found is None else {name: answer for name, answer in found.items() if name not in names}

    return Answers(rest(answers.filter), rest(answers.score))


def _compared(first: Answers, second: Answers, labels: tuple[str, str], pod: PodBuilder) -> Iterator[list[str]]:
    for one, other in ((first.filter, second.filter), (first.score, second.score)):
        if one is not None and other is not None:
            found = difference(one, other, labels)
            if found:
                yield [*found, f"the pod: {pod.json()}"]


def _books(plugin: Plugin) -> dict[str, Any]:
    """What a plugin remembers in plain collections."""
    own: dict[str, Any] = getattr(plugin, "__dict__", {})
    return {name: copy.copy(value) for name, value in own.items() if isinstance(value, dict | list | set)}


def _changed_books(before: dict[str, Any], plugin: Plugin, what: str) -> Iterator[list[str]]:
    now = _books(plugin)
    for name, value in before.items():
        if now.get(name) != value:
            yield [f"after {what} self.{name} was {value!r} and is {now.get(name)!r}"]
            return


REQUIREMENTS: Final = (
    Requirement("points", "answers what its points know", _ANY, _known_answers),
    Requirement("inputs", "does not change what it is given", _EVALUATING, _unchanged_inputs),
    Requirement("score range", "gives scores from 0 to 100", (points.Score, points.VectorScore), _scores_in_range),
    Requirement("both forms", "says the same per node and in columns", _COLUMNS, _same_in_both_forms),
    Requirement("part of the nodes", "says the same of a part of the nodes", _COLUMNS, _same_on_part_of_the_nodes),
    Requirement("deterministic", "says the same when it is asked again", _EVALUATING, _same_when_asked_again),
    Requirement("sign", "says the same of pods with equal signatures", _EVALUATING, _same_for_equal_signatures),
    Requirement("one node", "that signs looks at one node at a time", _EVALUATING, _one_node_at_a_time),
    Requirement("unreserve", "gives back what it reserved, at any time", (points.Reserve,), _unreserve_gives_back),
    Requirement("placements", "offers placements that can be used", (points.PlacementGenerate,), usable_placements),
    Requirement(
        "placement scores", "gives placements scores from 0 to 100", _PLACEMENT_SCORES, placement_scores_in_range
    ),
    Requirement(
        "placement forms", "says the same of placements, each or all", _PLACEMENT_SCORES, same_placement_scores
    ),
    Requirement("placement inputs", "does not change what it is given", _PLACEMENTS, unchanged_by_placements),
    Requirement("members", "nominates members of its group", (points.PodGroupPostFilter,), members_on_nodes),
    Requirement("pure hints", "with pure_hints answers by what its hints read", _ANY, _same_for_the_whole_class),
    Requirement("hints", "wakes the pods that it rejected", _ANY, _wakes_its_pods),
)
