"""Requirements for plugins about pod groups: the placements that they offer and score, and what they do for a group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from pilotage.api import points
from pilotage.api.pod_groups import GroupVictims, NominateMembers, Placement, ProposedPlacement
from pilotage.api.results import Pending, Reject
from pilotage.api.state import CycleState
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup
from pilotage.testing.plugin_check.answers import OddAnswer
from pilotage.testing.plugin_check.read_only import ReadOnlyTable, contents, read_only
from pilotage.testing.plugin_check.world import RandomCluster

_LOWEST, _HIGHEST = 0, 100
_MOST_PLACEMENTS: Final = 4
Offer = dict[str, tuple[str, ...]]
"""Placements by name, with the names of their nodes."""


class FakeGroupAttempt(Struct, frozen=True):
    """Implements `pilotage.api.GroupAttempt`: a group that does not fit, and whom preemption would take."""

    group: PodGroup
    pods: Sequence[Pod]
    found: GroupVictims

    @property
    def states(self) -> Sequence[CycleState]:
        return [CycleState() for _ in self.pods]

    def search_victims(self) -> GroupVictims:
        return self.found


def usable_placements(world: RandomCluster) -> Iterator[list[str]]:
    """Each has a name of its own and at least one node, and they are the same when asked again."""
    for group, _ in world.pod_groups():
        offered = _offered(world, group)
        empty = next((name for name, nodes in offered.items() if not nodes), None)
        if empty is not None:
            yield [f'placement "{empty}" of group {group.key} has no node']
        if (again := _offered(world, group)) != offered:
            yield [f"at first: {offered}", f"again   : {again}", _about(group)]


def placement_scores_in_range(world: RandomCluster) -> Iterator[list[str]]:
    for group, proposed in _proposals(world):
        for scores in (_each(world, group, proposed), _at_once(world, group, proposed)):
            for one, score in zip(proposed, scores or (), strict=False):
                if not _LOWEST <= score <= _HIGHEST:
                    yield [f'placement "{one.placement.name}" got {score}', _about(group), "use min() and max()"]


def same_placement_scores(world: RandomCluster) -> Iterator[list[str]]:
    """Per placement and at once, and again."""
    for group, proposed in _proposals(world):
        each, at_once = _each(world, group, proposed), _at_once(world, group, proposed)
        if each is not None and at_once is not None and each != at_once:
            yield [f"per placement: {each}", f"at once      : {at_once}", _about(group)]
        again = _each(world, group, proposed), _at_once(world, group, proposed)
        if again != (each, at_once):
            yield [f"at first: {at_once or each}", f"again   : {again[1] or again[0]}", _about(group)]


def unchanged_by_placements(world: RandomCluster) -> Iterator[list[str]]:
    before = contents(world.cluster.nodes)
    for group, proposed in _proposals(world):
        if isinstance(world.plugin, points.PlacementGenerate):
            _offered(world, group)
        _each(world, group, proposed)
        _at_once(world, group, proposed)
    after = contents(world.cluster.nodes)
    for name, text in before.items():
        if after[name] != text:
            yield [f"node {name} was {text.decode()}", f"and is {after[name].decode()}"]


def members_on_nodes(world: RandomCluster) -> Iterator[list[str]]:
    """PodGroupPostFilter nominates members of the group to nodes that there are; "" takes a nomination back."""
    plugin: Any = world.plugin
    names = world.cluster.nodes.names
    for group, members in world.pod_groups():
        placed = tuple(pod for row in range(len(names)) for pod in world.cluster.nodes.pods_on(row).values())
        lower = tuple(pod for pod in placed if pod.priority < group.priority)
        places = tuple((pod, names[0]) for pod in members)
        for found in (GroupVictims(message="No preemption victims found"), GroupVictims(lower, places)):
            answer: object = plugin.pod_group_post_filter(FakeGroupAttempt(group, members, found))
            if not isinstance(answer, NominateMembers | Reject | Pending):
                raise OddAnswer(f"pod_group_post_filter answered {answer!r}; it may be NominateMembers or a rejection")
            if not isinstance(answer, NominateMembers):
                continue
            strangers = set(answer.nodes) - {pod.uid for pod in members}
            unknown = {node for node in answer.nodes.values() if node and node not in names}
            if strangers or unknown:
                yield [f"it nominated {dict(answer.nodes)!r}", "keys are UIDs of members, values names of nodes"]


def _offered(world: RandomCluster, group: PodGroup) -> Offer:
    plugin: Any = world.plugin
    nodes = world.cluster.nodes
    answer: object = plugin.generate_placements(CycleState(), group, ReadOnlyTable(nodes))
    if not isinstance(answer, Sequence):
        raise OddAnswer(f"generate_placements answered {answer!r}; it must be a list of Placements")
    found: Offer = {}
    for one in answer:
        if not isinstance(one, Placement):
            raise OddAnswer(f"generate_placements answered with {one!r}, which is no Placement")
        rows = np.asarray(one.rows)
        if rows.shape != (len(nodes),) or rows.dtype != np.bool_:
            raise OddAnswer(
                f'the rows of placement "{one.name}" are an array of {rows.dtype} of shape {rows.shape}; it must be '
                f"one of bool, with a place for each of the {len(nodes)} nodes"
            )
        if one.name in found:
            raise OddAnswer(f'generate_placements answered with two placements named "{one.name}"')
        found[one.name] = tuple(nodes.names[row] for row in np.flatnonzero(rows).tolist())
    return found


def _proposals(world: RandomCluster) -> Iterator[tuple[PodGroup, list[ProposedPlacement]]]:
    """Some placements, in each of which every member has a place."""
    nodes = world.cluster.nodes
    for group, members in world.pod_groups():
        proposed = []
        for number in range(min(_MOST_PLACEMENTS, len(nodes))):
            rows = np.zeros(len(nodes), dtype=np.bool_)
            chosen = world.sample(range(len(nodes)), max(1, len(nodes) // 2))
            rows[chosen] = True
            places: dict[str, tuple[Pod, ...]] = {}
            for at, pod in enumerate(members):
                name = nodes.names[chosen[at % len(chosen)]]
                places[name] = (*places.get(name, ()), pod)
            proposed.append(ProposedPlacement(Placement(f"p{number}", read_only(rows)), places))
        yield group, proposed


def _each(world: RandomCluster, group: PodGroup, proposed: Sequence[ProposedPlacement]) -> list[int] | None:
    plugin = world.plugin
    if not isinstance(plugin, points.PlacementScore):
        return None
    state, table = CycleState(), ReadOnlyTable(world.cluster.nodes)
    return [_whole("score_placement", plugin.score_placement(state, group, one, table)) for one in proposed]


def _at_once(world: RandomCluster, group: PodGroup, proposed: Sequence[ProposedPlacement]) -> list[int] | None:
    plugin = world.plugin
    if not isinstance(plugin, points.VectorPlacementScore):
        return None
    found = np.asarray(plugin.score_placements(CycleState(), group, proposed, ReadOnlyTable(world.cluster.nodes)))
    if found.shape != (len(proposed),) or not np.issubdtype(found.dtype, np.integer):
        raise OddAnswer(
            f"score_placements answered an array of {found.dtype} of shape {found.shape} when it was asked about "
            f"{len(proposed)} placements; it must be one of int64"
        )
    scores: list[int] = found.tolist()
    return scores


def _whole(method: str, score: object) -> int:
    if isinstance(score, bool) or not isinstance(score, int | np.integer):
        raise OddAnswer(f"{method} answered {score!r}; it must be an int")
    return int(score)


def _about(group: PodGroup) -> str:
    topology = f", topology {group.topology_key}" if group.topology_key else ""
    return f"group {group.key}: minCount {group.min_count}, priority {group.priority}{topology}"
