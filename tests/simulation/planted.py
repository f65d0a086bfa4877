"""Bugs that were put in on purpose: what the simulation would say if somebody made them.

`python -m tests.simulation.planted` looks for the first seed that finds each; the seeds in the table are such seeds.
When worlds or faults are drawn in another way, other seeds find them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from pilotage.calls import fenced_writer
from pilotage.cluster.state import Cluster, Nominations
from pilotage.cycle.group_conditions import KeptNodes
from pilotage.cycle.group_placement import GroupPlacer, Quorum
from pilotage.cycle.intake import Intake
from pilotage.jobs.controller.release_order import ReleaseOrder
from pilotage.jobs.controller.status_writes import StatusWrites
from pilotage.kube.election import Election
from pilotage.kube.reflector import Reflector
from pilotage.plugins.dynamic_resources.claim_book import DeviceLedger
from pilotage.queue.scheduling_queue import SchedulingQueue
from tests.simulation.history import Outcome
from tests.simulation.simulation import simulate


@dataclass(frozen=True, slots=True)
class Bug:
    """`owner.name` behaves like `behaviour` instead."""

    what: str
    owner: Any
    name: str
    behaviour: Callable[..., Any]
    found_by: int
    """A seed."""

    @contextmanager
    def planted(self) -> Iterator[None]:
        with mock.patch.object(self.owner, self.name, self.behaviour):
            yield

    def outcome(self, seed: int) -> Outcome:
        with self.planted():
            return simulate(seed)


def _list_without_deletions(intake: Any, kind: str, objects: list[Any]) -> None:
    for obj in objects:
        intake._upsert(kind, obj)


def _group_is_over(queue: Any, ticket: Any, *_: Any, **__: Any) -> None:
    ticket.is_open = False
    queue._groups.in_cycle = ""


def _group_is_noted(queue: Any, group: Any) -> None:
    queue._groups.known[group.key] = group


BUGS = (
    Bug("writes are not fenced", fenced_writer, "fence", lambda is_leading: lambda: None, 10),
    Bug(
        "a leader never notices its deadline",
        Election,
        "is_leading",
        lambda self, now: self._renewed_at is not None,
        10,
    ),
    Bug("pods that are being bound take no room", Cluster, "assume", lambda *_: None, 0),
    Bug("a failed binding is not forgotten", Cluster, "forget", lambda self, uid: None, 5),
    Bug("a new list does not delete", Intake, "_replace", _list_without_deletions, 15),
    Bug("an expired watch does not list again", Reflector, "_must_relist", lambda *_: False, 7),
    Bug("quota is given away before it is back", ReleaseOrder, "may_go", lambda *_: True, 9),
    Bug("allocated devices are not counted", DeviceLedger, "_count", lambda *_: None, 0),
    Bug("nominations are not cleared", Nominations, "remove", lambda *_: None, 0),
    Bug("backoff never ends", SchedulingQueue, "release_backoff", lambda self: 0, 1),
    Bug("a gang starts with too few", Quorum, "is_reached", property(lambda self: True), 5),
    Bug("a group keeps what is not enough", GroupPlacer, "give_back", lambda *_: [], 5),
    Bug("members that were not placed are lost", SchedulingQueue, "return_group", _group_is_over, 1),
    Bug("a group that comes wakes nobody", SchedulingQueue, "put_group", _group_is_noted, 13),
    Bug("nodes are kept for a group for ever", KeptNodes, "take_back", lambda *_: None, 15),
    Bug("what was written is written again until it is seen", StatusWrites, "_is_unseen", lambda *_: False, 227),
)


def main() -> int:
    """Print the first seed that finds each bug."""
    missed = 0
    for bug in BUGS:
        for seed in range(150):
            outcome = bug.outcome(seed)
            if outcome.violations:
                first = outcome.violations[0]
                print(f"{bug.what}: found by seed {seed}: {first.invariant}: {first.details[:100]}", flush=True)
                break
        else:
            missed += 1
            print(f"{bug.what}: NOT FOUND", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
