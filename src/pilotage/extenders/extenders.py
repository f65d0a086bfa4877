"""All extenders of a scheduler: those that must answer first, then the ignorable ones, each in the order of the file.

A question is about one pod in one attempt. What was answered so far is `ExtenderAdvice`, to which the next one is put:

    the nominated node alone -> all nodes, with scores -> victims
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pilotage.api.preemption import Candidate, VictimPolicy
from pilotage.extenders.extender import Extender, ExtenderError, Filtered, NodeRejection, Victims
from pilotage.model import Node, Pod
from pilotage.observe.metrics import Metrics

log = logging.getLogger(__name__)

PodsOn = Callable[[str], Sequence[Pod] | None]
"""The pods on a node; None if there is no such node."""
_POLICY = VictimPolicy()


class NodesQuestion(Struct, frozen=True):
    """On which of these nodes, on which the pod fits, may it be, and how good are they?"""

    pod: Pod
    nodes: Sequence[Node]
    is_nominated: bool = False
    """It is about the nominated node alone, which is not scored."""


class VictimsQuestion(Struct, frozen=True):
    """Return those of these candidates that are left for preemption."""

    pod: Pod
    candidates: Sequence[Candidate]


Question = NodesQuestion | VictimsQuestion


class Points(Struct, frozen=True):
    """What extenders add to the totals of nodes."""

    by_node: dict[str, int] = msgspec.field(default_factory=dict)
    named: frozenset[str] = frozenset()
    """Nodes about which at least one of them said something: ties between them are broken by chance."""


class ExtenderAdvice(Struct, frozen=True):
    """What was said about a pod in this attempt; None: nobody was asked yet."""

    nominated: Filtered | None = None
    nodes: Filtered | ExtenderError | None = None
    points: Points = msgspec.field(default_factory=Points)
    victims: tuple[Candidate, ...] | ExtenderError | None = None


class Extenders:
    """Who is asked about a pod, and what all of them say together."""

    def __init__(self, extenders: Iterable[Extender], metrics: Metrics, pods_on: PodsOn) -> None:
        self.all = tuple(sorted(extenders, key=lambda one: one.configuration.ignorable))
        """In the order in which they are asked."""
        self._pods_on = pods_on
        self._scoring = 0
        if self.all:
            metrics.goroutines.read_from(lambda: {("prioritizing_extender",): float(self._scoring)})

    def __bool__(self) -> bool:
        return bool(self.all)

    @property
    def may_filter(self) -> bool:
        return any(one.configuration.filter_verb for one in self.all)

    def line_of(self, pod: Pod) -> tuple[int, ...]:
        """The numbers of those that are asked in every attempt of the pod.

        They decide about one pod after the other, as kube-scheduler does: pods of a common extender stand in line.
        """
        return tuple(
            number
            for number, one in enumerate(self.all)
            if (one.configuration.filter_verb or one.configuration.prioritize_verb) and one.is_interested(pod)
        )

    def asked_about_nodes(self, pod: Pod) -> bool:
        return any(one.configuration.filter_verb and one.is_interested(pod) for one in self.all)

    def asked_about_victims(self, pod: Pod) -> bool:
        return any(one.configuration.preempt_verb and one.is_interested(pod) for one in self.all)

    def binder_of(self, pod: Pod) -> Extender | None:
        return next((one for one in self.all if one.configuration.bind_verb and one.is_interested(pod)), None)

    async def close(self) -> None:
        """Let go of all connections."""
        for one in self.all:
            await one.close()

    # --- questions ---------------------------------------------------------------------------------------------

    async def answer(self, question: Question, advice: ExtenderAdvice) -> ExtenderAdvice:
        """The advice with one answer more. What goes wrong is part of it."""
        if isinstance(question, VictimsQuestion):
            return replace(advice, victims=await self._victims(question))
        try:
            filtered = await self._filter(question.pod, question.nodes)
        except ExtenderError as error:
            if question.is_nominated:
                # All nodes are looked at next, and this one again.
                return replace(advice, nominated=Filtered(()))
            return replace(advice, nodes=error)
        if question.is_nominated:
            return replace(advice, nominated=filtered)
        points = Points()
        if len(filtered.kept) > 1:
            kept = frozenset(filtered.kept)
            points = await self._score(question.pod, [node for node in question.nodes if node.name in kept])
        return replace(advice, nodes=filtered, points=points)

    async def _filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        rejected: dict[str, NodeRejection] = {}
        for one in self.all:
            if not nodes or not one.configuration.filter_verb or not one.is_interested(pod):
                continue
            try:
                answer = await one.filter(pod, nodes)
            except ExtenderError:
                if not one.configuration.ignorable:
                    raise
                continue
            rejected.update(answer.rejected)
            by_name = {node.name: node for node in nodes}
            nodes = [by_name[name] for name in answer.kept]
        return Filtered(tuple(node.name for node in nodes), rejected)

    async def _score(self, pod: Pod, nodes: Sequence[Node]) -> Points:
        """All of them at the same time; who fails says nothing."""
        asked = [one for one in self.all if one.configuration.prioritize_verb and one.is_interested(pod)]
        silent = any(not one.configuration.prioritize_verb and one.is_interested(pod) for one in self.all)
        totals: dict[str, int] = {}

        async def ask(one: Extender) -> None:
            self._scoring += 1
            try:
                answer = await one.prioritize(pod, nodes)
            except ExtenderError:
                return
            finally:
                self._scoring -= 1
            for name, points in answer.items():
                totals[name] = totals.get(name, 0) + points

        async with asyncio.TaskGroup() as tasks:
            for one in asked:
                tasks.create_task(ask(one), name="extender scores")
        named = frozenset(totals) | frozenset(node.name for node in nodes if silent)
        return Points(totals, named)

    async def _victims(self, question: VictimsQuestion) -> tuple[Candidate, ...] | ExtenderError:
        pod, candidates = question.pod, tuple(question.candidates)
        for one in self.all:
            if not candidates or not one.configuration.preempt_verb or not one.is_interested(pod):
                continue
            try:
                candidates = self._reviewed(one, pod, candidates, await one.preempt(pod, candidates))
            except ExtenderError as error:
                if not one.configuration.ignorable:
                    return error
                log.info("ignored what an extender said of victims: extender=%s error=%s", one.name, error)
        return candidates

    def _reviewed(
        self, extender: Extender, pod: Pod, candidates: Sequence[Candidate], answer: Victims
    ) -> tuple[Candidate, ...]:
        before = {candidate.node_name: candidate for candidate in candidates}
        made = []
        for node_name, (uids, violations) in answer.items():
            known = before.get(node_name)
            on_node = self._pods_on(node_name)
            if on_node is None:
                raise ExtenderError(f'nodeinfo not found for node name "{node_name}"')
            if not uids:
                if extender.configuration.ignorable:
                    continue
                raise ExtenderError(f'expected at least one victim pod on node "{node_name}"')
            # A victim of the candidate may have left while the extender was asked: it is none any more.
            by_uid = {one.uid: one for one in (*on_node, *(known.victims if known is not None else ()))}
            for uid in uids:
                if uid not in by_uid:
                    raise ExtenderError(
                        f"extender: {extender.name} claims to preempt pod (UID: &{{{uid}}}) on node: {node_name}, "
                        "but the pod is not found on that node"
                    )
            victims = tuple(sorted((by_uid[uid] for uid in dict.fromkeys(uids)), key=_POLICY.importance))
            made.append(Candidate(node_name, victims, violations, _POLICY.cost(pod, victims, violations)))
        return tuple(made)
