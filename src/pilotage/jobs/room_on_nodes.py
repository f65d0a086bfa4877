"""Room for workloads, tried out with the scheduler's filters and scores on a mirror of its cluster.

Pods that are to come are placed one after the other, where the scheduler would place them, and stay there as
*stand-ins* until they are on nodes themselves: one goes for each pod that comes, and comes back if that pod leaves
while its workload has quota. So what was given to one workload is never given to another.

What was found not to fit is remembered until a node changes or something leaves one. Of equal pods it is also known how
many did fit: more is worth a try only if those nodes could take the rest.

Of a pod that does not exist yet nothing is known but its template: volumes and claims that are made with the pod
are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Final

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pilotage.api.state import CycleState
from pilotage.api.table import Mask
from pilotage.change_log import ChangeLog
from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import Placed, ProfileEngine, place
from pilotage.jobs.adapters import marks
from pilotage.jobs.mirrored_cluster import MirroredCluster, mirror_of, workload_of
from pilotage.jobs.room import NoRoom, PodsToPlace, PodTrouble, TopologyDomain, TopologyDomains
from pilotage.model import Pod
from pilotage.model.frozen_map import FrozenMap
from pilotage.model.pod import PodSpec
from pilotage.model.pod_resources import assigned_requests, pod_requests

_MOST_REMEMBERED: Final = 8192
_MOST_CAPACITIES: Final = 256
_NONE: Final[frozenset[str]] = frozenset()
_MANY_NODES: Final = 64
"""If more have changed, what is free is counted on all of them."""

EnginesOver = Callable[[Cluster], Mapping[str, ProfileEngine]]
"""The profiles of the scheduler over another cluster, by its names."""


class KeptPlaces(Struct, eq=False):
    """What is kept for the pods of one pod set."""

    wanted: PodsToPlace
    stand_ins: list[Pod] = msgspec.field(default_factory=list)


class _Capacity(Struct, eq=False):
    """How many pods of a kind fit on each node."""

    structure: int
    mark: int
    """Of the nodes, when it was counted."""
    by_row: NDArray[np.int64]
    unchanged_until: int
    on_unchanged: NDArray[np.int64]
    """The same, without the nodes that have changed since."""


class _Trial(Struct):
    """How an attempt to place the pods of one pod set ended."""

    pods: list[Pod] = msgspec.field(default_factory=list)
    """With their nodes."""
    domain: TopologyDomain | None = None
    placed: int = 0
    message: str = ""
    """Why not all have a node."""


class NodeRoom:
    """Implements `pilotage.jobs.room.Room`."""

    def __init__(self, cluster: Cluster, engines_over: EnginesOver) -> None:
        self._original = cluster
        self._engines_over = engines_over
        self._kept: dict[str, dict[str, KeptPlaces]] = {}
        """By workload and pod set."""
        self._rejected: dict[tuple[PodsToPlace, ...], NoRoom] = {}
        self._freed: ChangeLog[str] = ChangeLog()
        """Names of the nodes that have changed, or that something has left."""
        self._most: dict[str, dict[PodSpec, int]] = {}
        """By node: an upper bound of how many pods of a kind fit there."""
        self._capacities: dict[object, _Capacity] = {}
        """By kind of pod."""
        self._short: dict[str, None] = {}
        """Workloads for which fewer places are kept than they have pods to come."""
        self._made_up_at = 0
        self._names = 0
        self._news = False
        self._troubled: dict[str, None] = {}
        self.on_change: Callable[[], None] = lambda: None
        """Called once when something has become free, or a pod was found to fit nowhere, until `take_changes`."""

    @cached_property
    def _mirror(self) -> MirroredCluster:
        mirror = mirror_of(self._original)
        mirror.placed, mirror.left, mirror.node_changed = self._pod_placed, self._pod_left, self._note_freed
        mirror.node_came_or_went, mirror.trouble_changed = self._node_came_or_went, self._note_trouble
        return mirror

    @cached_property
    def _engines(self) -> Mapping[str, ProfileEngine]:
        return self._engines_over(self._mirror.cluster)

    @property
    def is_known(self) -> bool:
        return len(self._original.nodes) > 0

    @property
    def version(self) -> int:
        return self._freed.mark

    @property
    def mirrored(self) -> Cluster:
        """With everything that is kept; to be looked at."""
        return self._mirror.cluster

    def kept_for(self, key: str) -> Sequence[KeptPlaces]:
        return list(self._kept.get(key, {}).values())

    # --- news ----------------------------------------------------------------------------------------------------

    def take_changes(self) -> tuple[bool, Sequence[str]]:
        """Whether something has become free since the last time; workloads whose pods fit nowhere, or do again, or have
        all left their nodes."""
        has_room, troubled = self._news, list(self._troubled)
        self._news = False
        self._troubled.clear()
        return has_room, troubled

    def _note_freed(self, node_name: str) -> None:
        self._freed.touch(node_name)
        self._most.pop(node_name, None)
        if not self._news:
            self._news = True
            self.on_change()

    def _note_trouble(self, key: str) -> None:
        self._troubled[key] = None
        self.on_change()

    def free(self, nodes: Iterable[str]) -> None:
        for name in sorted(nodes):
            self._note_freed(name)

    # --- questions -----------------------------------------------------------------------------------------------

    def rejection(self, key: str, wanted: Sequence[PodsToPlace]) -> NoRoom | None:
        asked = self._asked(wanted)
        if (known := self._remembered(asked)) is not None:
            return known
        if self._counted(asked):
            return None
        found = self._tried(key, asked)
        if isinstance(found, NoRoom):
            return self._remember(asked, found)
        self._forget(pod for trial in found for pod in trial.pods)
        return None

    def fits_now(self, key: str, wanted: Sequence[PodsToPlace]) -> bool:
        asked = self._asked(wanted)
        if self._counted(asked):
            return True
        found = self._tried(key, asked)
        if isinstance(found, NoRoom):
            return False
        self._forget(pod for trial in found for pod in trial.pods)
        return True

    def may_fit_without(self, keys: Iterable[str], wanted: Sequence[PodsToPlace]) -> bool:
        asked = self._asked(wanted)
        if len(asked) != 1 or not _amounts_decide(asked[0]) or self._may_preempt(asked[0].spec):
            return True
        [one], nodes = asked, self._mirror.cluster.nodes
        most, freed = self._most_by_amounts(one.spec, one.avoid), dict[int, list[Pod]]()
        for key in keys:
            for pod in self._held_by(key):
                if pod.node_name not in one.avoid and (row := nodes.row(pod.node_name)) is not None:
                    freed.setdefault(row, []).append(pod)
        selector = one.spec.node_selector
        for row, pods in freed.items():
            if all(nodes.node(row).labels.get(label) == value for label, value in selector.items()):
                most[row] = self._most_on_row(row, one.spec, pods)
        return int(most.sum()) >= one.count

    def _held_by(self, key: str) -> Iterator[Pod]:
        """The pods of a workload that are on nodes, and those to come."""
        yield from self._mirror.on_nodes(key).values()
        for own in self._kept.get(key, {}).values():
            yield from own.stand_ins

    def nodes_to_keep(self, wanted: Sequence[PodsToPlace]) -> frozenset[str]:
        asked, table = self._asked(wanted), self._mirror.cluster.nodes
        everyone = dict.fromkeys([*self._kept, *self._mirror.workloads_on_nodes()])
        before = table.pod_count.copy()
        with self.without(everyone):
            rows = np.argsort(before - table.pod_count, kind="stable")
            size = max(1, sum(one.count for one in asked))
            while True:
                others = frozenset(table.names[row] for row in rows[size:].tolist())
                found = self._tried("", [msgspec.structs.replace(one, avoid=others) for one in asked])
                if not isinstance(found, NoRoom):
                    pods = [pod for trial in found for pod in trial.pods]
                    self._forget(pods)
                    return frozenset(pod.node_name for pod in pods)
                if size >= len(rows):
                    return frozenset()
                size *= 2

    def may_fit(self, rejection: NoRoom, kept: frozenset[str] = _NONE) -> bool:
        nodes = self._freed.changed_since(rejection.version)
        if len(rejection.wanted) != 1 or not _amounts_decide(rejection.wanted[0]):
            return nodes is None or bool(nodes)
        one = rejection.wanted[0]
        rejection.version = self._freed.mark
        if nodes is not None and len(nodes) <= _MANY_NODES:
            rejection.possible += sum(self._most_on(name, one.spec) for name in nodes if name not in kept)
            if rejection.possible < one.count:
                return False
        if self._may_preempt(one.spec):
            return True
        # Of what has become free others may have taken: count what is left.
        rejection.possible = int(self._most_by_amounts(one.spec, kept).sum())
        return rejection.possible >= one.count

    def follow_pods(self) -> None:
        assert self._mirror is not None

    def is_on_nodes(self, key: str) -> bool:
        return bool(self._mirror.on_nodes(key))

    def trouble(self, key: str) -> PodTrouble | None:
        pods = self._mirror.troubled(key)
        if not pods:
            return None
        first = min(pods.values(), key=lambda pod: pod.name)
        said = first.status.condition("PodScheduled")
        return PodTrouble(len(pods), "" if said is None else said.message)

    # --- keeping -------------------------------------------------------------------------------------------------

    def begin_anew(self) -> None:
        for key in list(self._kept):
            self.release(key)
        self._rejected.clear()

    def take(self, key: str, wanted: Sequence[PodsToPlace]) -> TopologyDomains | NoRoom:
        self.release(key)
        asked = self._asked(wanted)
        if (known := self._remembered(asked)) is not None:
            return known
        found = self._tried(key, asked)
        if isinstance(found, NoRoom):
            return self._remember(asked, found)
        self._kept[key] = {one.pod_set: KeptPlaces(one, trial.pods) for one, trial in zip(asked, found, strict=True)}
        for pod in self._mirror.on_nodes(key).values():
            self._pod_placed(pod)  # of an earlier admission, on its way out
        return {one.pod_set: trial.domain for one, trial in zip(asked, found, strict=True) if trial.domain is not None}

    def keep(self, key: str, wanted: Sequence[PodsToPlace], *, insists: bool = True) -> None:
        kept = self._kept.setdefault(key, {})
        for one in wanted:
            if one.spec.scheduler_name not in self._engines:
                continue
            own = kept.get(one.pod_set)
            if own is None:
                own = kept[one.pod_set] = KeptPlaces(one)
            own.wanted = one
            owed = self._owed(key, own)
            while len(own.stand_ins) > owed:
                self._drop(own.stand_ins.pop())
            if len(own.stand_ins) < owed:
                missing = msgspec.structs.replace(one, count=owed - len(own.stand_ins))
                own.stand_ins += self._placed_within(key, missing, None).pods
                if insists and len(own.stand_ins) < owed:
                    self._short[key] = None

    def _make_up(self) -> None:
        """What has become free is first for those that have quota already, and too few places."""
        if self._short and self._made_up_at != self._freed.mark:
            short, self._short = self._short, {}
            for key in short:
                self.keep(key, [own.wanted for own in self._kept[key].values()])
            self._made_up_at = self._freed.mark

    def release(self, key: str) -> None:
        self._short.pop(key, None)
        for own in self._kept.pop(key, {}).values():
            for pod in own.stand_ins:
                self._drop(pod)

    @contextmanager
    def without(self, keys: Iterable[str]) -> Iterator[None]:
        table = self._mirror.cluster.nodes
        gone: list[Pod] = []
        for key in keys:
            gone += self._held_by(key)
        gone = [pod for pod in gone if (row := table.row(pod.node_name)) is not None and pod.uid in table.pods_on(row)]
        for pod in gone:
            table.remove_pod(pod.node_name, pod)
        try:
            yield
        finally:
            for pod in gone:
                table.add_pod(pod.node_name, pod)

    def _owed(self, key: str, own: KeptPlaces) -> int:
        """Pods that are not on nodes yet."""
        row, name = self._mirror.cluster.nodes.row, own.wanted.pod_set
        there = sum(_pod_set(pod) == name and row(pod.node_name) is not None for pod in self._pods(key))
        return max(0, own.wanted.count - there)

    def _pods(self, key: str) -> Iterable[Pod]:
        return self._mirror.on_nodes(key).values()

    def _pod_placed(self, pod: Pod) -> None:
        """The pod of a workload is on a node: a stand-in goes, the one on that node if there is one."""
        key = workload_of(pod)
        own = self._kept.get(key, {}).get(_pod_set(pod))
        if own is None or len(own.stand_ins) <= self._owed(key, own):
            return
        same = (at for at, one in enumerate(own.stand_ins) if one.node_name == pod.node_name)
        self._drop(own.stand_ins.pop(next(same, -1)))

    def _pod_left(self, pod: Pod) -> None:
        """If its workload still has quota another pod will take its place, which is kept for that."""
        key = workload_of(pod)
        if key and not self._mirror.on_nodes(key):
            self._note_trouble(key)
        own = self._kept.get(key, {}).get(_pod_set(pod)) if key else None
        if own is not None and len(own.stand_ins) < self._owed(key, own):
            if self._mirror.cluster.nodes.row(pod.node_name) is not None:
                own.stand_ins.append(self._assume(self._stand_in(key, own.wanted), pod.node_name))
        else:
            self._note_freed(pod.node_name)

    def _node_came_or_went(self, name: str) -> None:
        """What was kept there is kept elsewhere, as is room for those who will follow the pods that were there."""
        for key, sets in list(self._kept.items()):
            lost = [pod for own in sets.values() for pod in own.stand_ins if pod.node_name == name]
            if lost or any(pod.node_name == name for pod in self._pods(key)):
                self._forget(lost)
                for own in sets.values():
                    own.stand_ins = [pod for pod in own.stand_ins if pod.node_name != name]
                self.keep(key, [own.wanted for own in sets.values()])

    def _drop(self, pod: Pod) -> None:
        self._mirror.cluster.forget(pod.uid)
        self._note_freed(pod.node_name)

    def _forget(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            self._mirror.cluster.forget(pod.uid)

    # --- what is known -------------------------------------------------------------------------------------------

    def _asked(self, wanted: Sequence[PodsToPlace]) -> tuple[PodsToPlace, ...]:
        """Those that the scheduler would place."""
        self._make_up()
        return tuple(one for one in wanted if one.count > 0 and one.spec.scheduler_name in self._engines)

    def _remembered(self, asked: tuple[PodsToPlace, ...]) -> NoRoom | None:
        known = self._rejected.get(asked)
        return known if known is not None and not self.may_fit(known, _kept_from(asked)) else None

    def _remember(self, asked: tuple[PodsToPlace, ...], found: NoRoom) -> NoRoom:
        if len(self._rejected) >= _MOST_REMEMBERED:
            self._rejected.clear()
        self._rejected[asked] = found
        return found

    def _most_on(self, node_name: str, spec: PodSpec) -> int:
        """At most so many such pods fit on the node; counted once until something leaves it."""
        known = self._most.setdefault(node_name, {})
        most = known.get(spec)
        if most is None:
            most = known[spec] = self._count_most_on(node_name, spec)
        return most

    def _count_most_on(self, node_name: str, spec: PodSpec) -> int:
        row = self._mirror.cluster.nodes.row(node_name)
        return 0 if row is None else self._most_on_row(row, spec, ())

    def _most_on_row(self, row: int, spec: PodSpec, gone: Sequence[Pod]) -> int:
        """The same once these pods are gone."""
        table = self._mirror.cluster.nodes
        left = [assigned_requests(pod) for pod in gone]
        most = table.allocatable_at(row, "pods") - len(table.pods_on(row)) + len(gone)
        for resource, amount in pod_requests(spec).items():
            if amount:
                free = table.allocatable_at(row, resource) - table.requested_at(row, resource)
                most = min(most, (free + sum(one.get(resource, 0) for one in left)) // amount)
        return max(0, most)

    def _counted(self, asked: Sequence[PodsToPlace]) -> bool:
        """Whether they fit for sure, without placing them one by one."""
        return len(asked) == 1 and _amounts_decide(asked[0]) and self._has_capacity(asked[0])

    def _has_capacity(self, one: PodsToPlace) -> bool:
        if not one.required and self._surely_has(one):
            return True
        if int(self._most_by_amounts(one.spec, one.avoid).sum()) < one.count:
            return False
        capacity = self._capacity(one)
        if not one.required:
            return int(capacity.sum()) >= one.count
        return any(total >= one.count for total, _, _ in self._domains(one.required, capacity))

    def _surely_has(self, one: PodsToPlace) -> bool:
        """Whether they fit on the nodes that have not changed since that was counted."""
        nodes = self._mirror.cluster.nodes
        known = self._capacities.get((one.spec, one.labels, one.avoid))
        if known is None or known.structure != nodes.structure:
            return False
        if (changed := nodes.changed_since(known.unchanged_until)) is None:
            return False
        known.unchanged_until = nodes.mark
        if changed:
            known.on_unchanged[changed] = 0
        return int(known.on_unchanged.sum()) >= one.count

    def _capacity(self, one: PodsToPlace) -> NDArray[np.int64]:
        """By row, how many of the pods fit; counted once for all of a kind as long as nothing changes."""
        self._mirror.cluster.settle()
        nodes, kind = self._mirror.cluster.nodes, (one.spec, one.labels, one.avoid)
        known = self._capacities.get(kind)
        if known is None or (known.structure, known.mark) != (nodes.structure, nodes.mark):
            if len(self._capacities) >= _MOST_CAPACITIES:
                self._capacities.clear()
            counted, mark = self._count_capacity(one), nodes.mark
            known = self._capacities[kind] = _Capacity(nodes.structure, mark, counted, mark, counted.copy())
        return known.by_row

    def _count_capacity(self, one: PodsToPlace) -> NDArray[np.int64]:
        engine, state = self._engines[one.spec.scheduler_name], CycleState()
        allowed = self._allowed(one, None)
        pod, nodes = self._stand_in("", one), engine.nodes
        outcome = engine.runner.pre_filter(state, pod)
        outcome.keep_within(allowed)
        if outcome.rejected is not None:
            return np.zeros(len(nodes), dtype=np.int64)
        feasible = engine.evaluator.feasible(state, pod, outcome.allowed)
        if outcome.allowed is not None:
            feasible = feasible & outcome.allowed
        most = nodes.allocatable("pods") - nodes.pod_count
        for resource, amount in pod_requests(one.spec).items():
            if amount:
                most = np.minimum(most, nodes.free(resource) // amount)
        # What the configuration makes the filter ignore may be short where it fits.
        capacity: NDArray[np.int64] = np.where(feasible, np.maximum(most, 1), 0)
        return capacity

    def _most_by_amounts(self, spec: PodSpec, avoid: frozenset[str]) -> NDArray[np.int64]:
        """By row, an upper bound of how many such pods fit: what is free, on the nodes that the pods select."""
        nodes = self._mirror.cluster.nodes
        most = nodes.allocatable("pods") - nodes.pod_count
        for resource, amount in pod_requests(spec).items():
            if amount:
                most = np.minimum(most, nodes.free(resource) // amount)
        for key, value in spec.node_selector.items():
            codes, values = nodes.labels(key)
            most = np.where(codes == _place_of(value, values), most, 0)
        bound: NDArray[np.int64] = np.maximum(most, 0)
        if avoid:
            bound[nodes.rows_of(avoid)] = 0
        return bound

    def _domains(self, key: str, capacity: NDArray[np.int64]) -> list[tuple[int, str, Mask]]:
        """Capacity, value and rows of each value of a label of nodes; those with least first."""
        codes, values = self._mirror.cluster.nodes.labels(key)
        present = [code for code in np.unique(codes).tolist() if code >= 0]
        return sorted(
            ((int(capacity[codes == code].sum()), values[code], codes == code) for code in present),
            key=lambda one: one[:2],
        )

    # --- trying --------------------------------------------------------------------------------------------------

    def _tried(self, key: str, asked: Sequence[PodsToPlace]) -> list[_Trial] | NoRoom:
        """One trial for each, whose pods hold their places; or nothing is held."""
        self._mirror.cluster.settle()
        trials: list[_Trial] = []
        try:
            for one in asked:
                trial = self._placed(key, one)
                trials.append(trial)
                if trial.message:
                    self._forget(pod for other in trials for pod in other.pods)
                    where = f"pod set {one.pod_set}: " if len(asked) > 1 else ""
                    return NoRoom(f"{where}{trial.message}", self._freed.mark, tuple(asked), possible=trial.placed)
        except BaseException:
            self._forget(pod for other in trials for pod in other.pods)
            raise
        return trials

    def _placed(self, key: str, one: PodsToPlace) -> _Trial:
        label = one.required or one.preferred
        if label:
            found = self._in_one_domain(key, one, label)
            if not found.message or one.required:
                return found
        return self._placed_anywhere(key, one)

    def _in_one_domain(self, key: str, one: PodsToPlace, label: str) -> _Trial:
        domains = self._domains(label, self._capacity(one))
        if not domains:
            return _Trial(message=f"no node has the label {label}, one value of which is to hold all {one.count} pods")
        by_amounts = _amounts_decide(one)
        for most, value, rows in domains:
            if most >= one.count or (not by_amounts and most):
                found = self._placed_within(key, one, rows)
                if not found.message:
                    found.domain = TopologyDomain(label, value)
                    return found
                self._forget(found.pods)
        most, value, _ = domains[-1]
        text = f"no value of the node label {label} has room for all {one.count} pods, {value} for {most} of them"
        return _Trial(message=text, placed=most)

    def _placed_anywhere(self, key: str, one: PodsToPlace) -> _Trial:
        found = self._placed_within(key, one, None)
        if not found.message or not self._may_preempt(one.spec):
            return found
        self._forget(found.pods)
        with self._mirror.cluster.nodes.without_lower(one.spec.priority or 0):
            instead = self._placed_within(key, one, None)
            self._forget(instead.pods)
        if instead.message:
            return found
        instead.pods = [self._assume(pod, pod.node_name) for pod in instead.pods]
        return instead

    def _may_preempt(self, spec: PodSpec) -> bool:
        """Whether the scheduler would make room for such pods."""
        nodes = self._mirror.cluster.nodes
        if spec.priority is None or spec.preemption_policy == "Never":
            return False
        return bool(nodes.below(spec.priority).count.values(len(nodes)).any())

    def _placed_within(self, key: str, one: PodsToPlace, rows: Mask | None) -> _Trial:
        """As many as fit; they hold their places."""
        if not len(self._mirror.cluster.nodes):
            return _Trial(message="there are no nodes")
        engine, trial, rows = self._engines[one.spec.scheduler_name], _Trial(), self._allowed(one, rows)
        if rows is not None and not rows.any():
            return _Trial(message="no other node is left")
        try:
            for _ in range(one.count):
                pod = self._stand_in(key, one)
                found = place(engine, CycleState(), pod, within=rows, asks_post_filter=False)
                if not isinstance(found, Placed):
                    trial.placed = len(trial.pods)
                    why = found.diagnosis.message()
                    some = f"room for {trial.placed} of {one.count} pods, not for more: "
                    trial.message = f"{some}{why}" if trial.placed else why
                    break
                trial.pods.append(self._assume(pod, found.node_name))
        except BaseException:
            self._forget(trial.pods)
            raise
        return trial

    def _allowed(self, one: PodsToPlace, rows: Mask | None) -> Mask | None:
        """These rows (None: all) but for those that are kept for others."""
        if not one.avoid:
            return rows
        others = ~self._mirror.cluster.nodes.rows_of(one.avoid)
        return others if rows is None else rows & others

    def _assume(self, pod: Pod, node_name: str) -> Pod:
        placed = pod.with_node(node_name)
        self._mirror.cluster.assume(placed)
        return placed

    def _stand_in(self, key: str, one: PodsToPlace) -> Pod:
        self._names += 1
        labels = FrozenMap({**dict(one.labels), marks.POD_SET: one.pod_set})
        name = f"{key.rpartition('/')[2]}-{one.pod_set}-to-come-{self._names}"
        return Pod(name=name, namespace=one.namespace, uid=f"to-come/{self._names}", labels=labels, spec=one.spec)


def _kept_from(asked: Sequence[PodsToPlace]) -> frozenset[str]:
    return asked[0].avoid if asked else _NONE


def _place_of(value: str, values: Sequence[str]) -> int:
    """Its code; one that no row has if it is none of them."""
    try:
        return values.index(value)
    except ValueError:
        return len(values)


def _pod_set(pod: Pod) -> str:
    return pod.labels.get(marks.POD_SET, "")


def _amounts_decide(one: PodsToPlace) -> bool:
    """Whether how many fit on a node does not depend on which pods are there, nor on other nodes."""
    spec = one.spec
    affinity = spec.affinity
    is_bound_to_pods = affinity is not None and (affinity.pod_affinity, affinity.pod_anti_affinity) != (None, None)
    ports = any(port.host_port for container in spec.containers for port in container.ports)
    return not (is_bound_to_pods or spec.topology_spread_constraints or ports or spec.volumes or spec.resource_claims)
