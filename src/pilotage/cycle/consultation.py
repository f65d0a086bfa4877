"""Extenders are asked beside the cycles, so that only the pods that they are asked about wait for them.

    cycle -> question -> task that asks -> answer -> the pod's cycle runs again, with the answer

Meanwhile the pod is in flight. An extender decides about one pod after the other, as kube-scheduler makes it: while it
is asked, the pods that have to ask it too stay in the queue, in their order (`is_held`), and all others pass.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from pilotage.cluster.state import Cluster
from pilotage.cycle.advised_placement import Council
from pilotage.cycle.inbox import Inbox
from pilotage.extenders.extender import ExtenderError
from pilotage.extenders.extenders import ExtenderAdvice, Extenders, NodesQuestion, Question
from pilotage.model import Pod
from pilotage.queue.pod_groups import GroupTicket
from pilotage.queue.sub_queues import Line, Ticket


class Answered(NamedTuple):
    """A pod whose question was answered."""

    ticket: Ticket
    advice: ExtenderAdvice


class GroupAnswered(NamedTuple):
    """A group of whose members extenders were asked; what they said, by UID of the member."""

    ticket: GroupTicket
    advice: Mapping[str, ExtenderAdvice]


class Consultation:
    """Which pods are being asked about, and which were answered."""

    def __init__(self, extenders: Extenders, cluster: Cluster, inbox: Inbox, rng: random.Random) -> None:
        self._extenders = extenders
        self._cluster = cluster
        self._inbox = inbox
        self._rng = rng
        self._busy: dict[str, frozenset[int]] = {}
        """By UID of the pod that is asked about: the numbers of the extenders that others wait for."""
        self._asking: dict[str, tuple[Ticket, asyncio.Task[None]]] = {}
        self._answered: deque[Answered | GroupAnswered] = deque()
        self._are_there = bool(extenders)

    def council(self, pod: Pod, advice: ExtenderAdvice) -> Council | None:
        """The extenders to ask about the pod; None if there are none."""
        if not self._are_there or not any(one.is_interested(pod) for one in self._extenders.all):
            return None
        return Council(self._extenders, self._cluster.objects("Node"), self._rng, advice)

    def is_held(self, line: Line) -> bool:
        """Whether an extender that pods of this line have to ask is being asked about another pod."""
        return bool(self._busy) and any(not busy.isdisjoint(line) for busy in self._busy.values())

    def ask(self, ticket: Ticket, question: Question, advice: ExtenderAdvice, tasks: asyncio.TaskGroup) -> None:
        """Begin; the ticket is `answered` later."""
        uid = ticket.uid
        self._busy[uid] = frozenset(self._extenders.line_of(ticket.pod))
        work = self._ask(ticket, question, advice)
        self._asking[uid] = ticket, tasks.create_task(work, name="question to extenders")

    async def _ask(self, ticket: Ticket, question: Question, advice: ExtenderAdvice) -> None:
        answered = Answered(ticket, await self._answer(question, advice))
        del self._asking[ticket.uid]
        self._answered.append(answered)
        self._inbox.wake()

    async def _answer(self, question: Question, advice: ExtenderAdvice) -> ExtenderAdvice:
        try:
            return await self._extenders.answer(question, advice)
        except Exception as error:  # a bug: the pod must not be lost with it
            failed = ExtenderError(f"asking the extenders failed: {type(error).__name__}: {error}")
            is_about_nodes = isinstance(question, NodesQuestion)
            return replace(advice, nodes=failed) if is_about_nodes else replace(advice, victims=failed)

    def ask_about_members(self, ticket: GroupTicket, questions: Sequence[Question], tasks: asyncio.TaskGroup) -> None:
        """The same about members of a group, one after the other; the others of the group need no answer."""
        lines = (self._extenders.line_of(question.pod) for question in questions)
        self._busy[ticket.uid] = frozenset(number for line in lines for number in line)
        work = self._ask_all(ticket, questions)
        self._asking[ticket.uid] = ticket, tasks.create_task(work, name="questions to extenders")

    async def _ask_all(self, ticket: GroupTicket, questions: Sequence[Question]) -> None:
        advice = {question.pod.uid: await self._answer(question, ExtenderAdvice()) for question in questions}
        del self._asking[ticket.uid]
        self._answered.append(GroupAnswered(ticket, advice))
        self._inbox.wake()

    def next_answered(self) -> Answered | GroupAnswered | None:
        """The next pod whose cycle can go on. It is asked about no longer."""
        if not self._answered:
            return None
        found = self._answered.popleft()
        del self._busy[found.ticket.uid]
        return found

    def asked(self) -> dict[str, tuple[str, ...]]:
        """By UID of each pod that waits for an answer: the extenders that are asked."""
        found = {}
        for ticket, _ in self._asking.values():
            names = tuple(self._extenders.all[number].name for number in sorted(self._busy[ticket.uid]))
            for one in ticket.members if isinstance(ticket, GroupTicket) else [ticket]:
                found[one.uid] = names
        return found

    @property
    def has_answered(self) -> bool:
        return bool(self._answered)

    def abandon(self) -> list[Ticket]:
        """Stop asking; return the tickets of the pods that were asked about."""
        asked: list[Ticket] = [answered.ticket for answered in self._answered]
        for ticket, task in self._asking.values():
            task.cancel()
            asked.append(ticket)
        tickets = [one for ticket in asked for one in (ticket.members if isinstance(ticket, GroupTicket) else [ticket])]
        self._asking.clear()
        self._answered.clear()
        self._busy.clear()
        return tickets

    async def close(self) -> None:
        await self._extenders.close()
