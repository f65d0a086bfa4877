"""Would fit if: single changes after which the pod fits, each tried out before it is given.

Candidates come from what the nearest nodes lack: a little less of a resource, one toleration, one label on a node, one
node made schedulable, one more node like an existing one. A change is tried with the real filters: on the pod by
placing it again, on a node by asking the filters about the node as it would be.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import asdict

from pilotage.api.budget import UNLIMITED, Budget, BudgetExceeded
from pilotage.api.state import CycleState
from pilotage.api.views import NodeView
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.cluster.node_view import DerivedNode, RowView
from pilotage.cycle.placement import ProfileEngine
from pilotage.explain.amounts import readable
from pilotage.explain.eviction import candidate_for
from pilotage.explain.report import Advice, NearNode
from pilotage.framework.errors import PluginError
from pilotage.model import Node, Pod, shared_spec
from pilotage.model.node import NodeSpec, Taint
from pilotage.model.pod_resources import pod_requests
from pilotage.model.pod_spec import Container, PodSpecFields, ResourceRequirements, Toleration
from pilotage.model.quantity import quantity_milli, quantity_value

_TRIED_NODES = 50
_TOLD = 5
_TRIED_PRIORITIES = 5


class Advisor:
    """Finds changes for one pod that fits nowhere."""

    def __init__(self, engine: ProfileEngine, pod: Pod, budget: Budget = UNLIMITED) -> None:
        self._engine = engine
        self._pod = pod
        self._budget = budget

    def advice(self, nearest: Sequence[NearNode]) -> tuple[Advice, ...]:
        """The smallest changes first; if there are too many, the smallest of each kind come before others."""
        kinds = (
            self._less_of_a_resource(),
            self._one_toleration(),
            self._one_node_change(nearest),
            self._one_more_node(),
            self._another_priority(),
        )
        ordered = [
            sorted({_what(advice): advice for advice in while_it_lasts(kind)}.values(), key=_size) for kind in kinds
        ]
        preferred = [advice for turn in zip_longest(*ordered) for advice in turn if advice is not None]
        return tuple(sorted(preferred[:_TOLD], key=lambda advice: advice.size))

    def _fits_somewhere(self, pod: Pod) -> str | None:
        """A node on which the (changed) pod fits."""
        state = CycleState(self._budget)
        try:
            outcome = self._engine.runner.pre_filter(state, pod)
            if outcome.rejected is not None:
                return None
            feasible = self._engine.evaluator.feasible(state, pod, outcome.allowed)
        except PluginError:
            return None
        rows = np.flatnonzero(feasible)
        return self._engine.nodes.names[int(rows[0])] if len(rows) else None

    def _fits_on(self, node: AlteredNode) -> bool:
        """Whether the pod would fit on a node that looks like this."""
        state = CycleState(self._budget)
        try:
            outcome = self._engine.runner.pre_filter(state, self._pod)
            if outcome.rejected is not None:
                return False
            return self._engine.evaluator.dry_run.filters_of(state, self._pod).rejection_on(node, state) is None
        except PluginError:
            return False

    # --- changes of the pod ------------------------------------------------------------------------------------

    def _less_of_a_resource(self) -> Iterator[Advice]:
        nodes = self._engine.nodes
        for resource, wanted in pod_requests(self._pod.spec).items():
            self._budget.check()
            free = nodes.free(resource)
            for amount in sorted({int(a) for a in free if 0 < a < wanted}, reverse=True)[:_TRIED_NODES]:
                smaller = asking_less(self._pod, resource, wanted - amount)
                node = None if smaller is None else self._fits_somewhere(smaller)
                if node is not None:
                    asks, gets = readable(resource, wanted), readable(resource, amount)
                    change = f"it asked for {gets} {resource} instead of {asks}"
                    size = (wanted - amount) / wanted
                    yield Advice(
                        "SmallerRequest", change, size, node=node, resource=resource, asked=wanted, enough=amount
                    )
                    break

    def _one_toleration(self) -> Iterator[Advice]:
        _, taint_sets = self._engine.nodes.taint_sets()
        for taint in dict.fromkeys(taint for taints in taint_sets for taint in taints):
            if taint.effect == "PreferNoSchedule":
                continue
            node = self._fits_somewhere(tolerating(self._pod, taint))
            if node is not None:
                text = taint_text(taint)
                yield Advice("Toleration", f"it tolerated the taint {text}", 1.0, node=node, taint=text)

    def _another_priority(self) -> Iterator[Advice]:
        """The lowest priority above its own with which preemption would make room."""
        nodes = self._engine.nodes
        # Pods of one template share their spec, so that few are left to be asked.
        by_spec = {id(pod.spec): pod for row in range(len(nodes)) for pod in nodes.pods_on(row).values()}
        others = {pod.priority for pod in by_spec.values()}
        for priority in sorted(p for p in others if p >= self._pod.priority)[:_TRIED_PRIORITIES]:
            candidate = candidate_for(self._engine, with_spec(self._pod, priority=priority + 1), self._budget)
            if candidate is not None:
                change = f"its priority were above {priority} instead of {self._pod.priority} (by preemption)"
                yield Advice("HigherPriority", change, 3.0, node=candidate.node_name, above_priority=priority)
                return

    # --- changes of the cluster --------------------------------------------------------------------------------

    def _one_node_change(self, nearest: Sequence[NearNode]) -> Iterator[Advice]:
        for near in nearest[:_TRIED_NODES]:
            row = self._engine.nodes.row(near.node)
            if row is None:
                continue
            view = RowView(self._engine.nodes, row)
            node = view.node
            if node.spec.unschedulable and self._fits_on(AlteredNode(view, uncordoned(node))):
                yield Advice("NodeUncordoned", f"node {near.node} were uncordoned", 1.0, node=near.node)
            for labels in self._missing_labels(node):
                if self._fits_on(AlteredNode(view, labelled(node, labels))):
                    text = ", ".join(f"{key}={value}" for key, value in labels.items())
                    change = f"node {near.node} had the label {text}"
                    yield Advice("NodeLabel", change, 1.5, node=near.node, labels=labels)

    def _missing_labels(self, node: Node) -> Iterator[dict[str, str]]:
        """Single labels that the pod's node selector or affinity asks for and the node does not have."""
        missing = {k: v for k, v in self._pod.spec.node_selector.items() if node.labels.get(k) != v}
        if len(missing) == 1:
            yield missing
        affinity = self._pod.spec.affinity
        if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
            return
        for term in affinity.node_affinity.required.node_selector_terms:
            for requirement in term.match_expressions:
                if requirement.operator == "In" and not requirement.matches(node.labels):
                    yield {requirement.key: requirement.values[0]}

    def _one_more_node(self) -> Iterator[Advice]:
        """A new, empty node of a kind that exists; one of each kind is tried."""
        for row in one_row_per_kind(nodes := self._engine.nodes, pod_requests(self._pod.spec)):
            view = RowView(nodes, row)
            fresh = AlteredNode(view, uncordoned(renamed(view.node, f"another-{view.name}")), is_empty=True)
            if self._fits_on(fresh):
                yield Advice("MoreNodes", f"there were one more node like {view.name}", 2.0, like=view.name, count=1)


def one_row_per_kind(nodes: ClusterNodeTable, resources: Iterable[str], first: Iterable[int] = ()) -> list[int]:
    """Of each kind of node the first: nodes of a kind have the same taints, and as much of these resources.

    Those that are to come `first` stand for their kind.
    """
    codes, _ = nodes.taint_sets()
    kinds = np.stack([codes, *(nodes.allocatable(resource) for resource in resources)], axis=1)
    rows = np.concatenate([np.fromiter(first, dtype=np.int64), np.arange(len(nodes))])
    _, found = np.unique(kinds[rows], axis=0, return_index=True)
    return [int(row) for row in rows[np.sort(found)[:_TRIED_NODES]]]


def while_it_lasts(kind: Iterator[Advice]) -> Iterator[Advice]:
    """What is found before the budget is used up."""
    try:
        yield from kind
    except BudgetExceeded:
        return


def _what(advice: Advice) -> Hashable:
    """What the advice is about: the same change may help on several nodes."""
    changed_node = advice.node if advice.code in ("NodeUncordoned", "NodeLabel") else ""
    labels = tuple(advice.labels.items())
    return advice.code, advice.resource, advice.taint, labels, changed_node, advice.like, advice.above_priority


def _size(advice: Advice) -> tuple[float, str, str, str, str]:
    return advice.size, advice.code, advice.resource, advice.node, advice.like


def taint_text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


# --- a pod as it would be after one change ---------------------------------------------------------------------------


def with_spec(pod: Pod, **changes: Any) -> Pod:
    """The pod with some fields of its spec exchanged."""
    fields = asdict(pod.spec)
    return msgspec.structs.replace(pod, spec=shared_spec(PodSpecFields(**{**fields, **changes})))


def tolerating(pod: Pod, taint: Taint) -> Pod:
    toleration = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
    return with_spec(pod, tolerations=(*pod.spec.tolerations, toleration))


def asking_less(pod: Pod, resource: str, by: int) -> Pod | None:
    """The container that asks for most gives up `by` of a resource; None if no container asks for that much."""
    amounts = [_amount(container, resource) for container in pod.spec.containers]
    if not amounts or max(amounts) < by:
        return None
    at = amounts.index(max(amounts))
    left = amounts[at] - by
    text = f"{left}m" if resource == "cpu" else str(left)
    container = pod.spec.containers[at]
    requests = {**container.resources.requests, resource: text}
    changed = msgspec.structs.replace(
        container, resources=ResourceRequirements(requests=requests, limits=container.resources.limits)
    )
    return with_spec(pod, containers=(*pod.spec.containers[:at], changed, *pod.spec.containers[at + 1 :]))


def _amount(container: Container, resource: str) -> int:
    text = container.resources.requests.get(resource, "0")
    return quantity_milli(text) if resource == "cpu" else quantity_value(text)


class AlteredNode(DerivedNode):
    """Implements `pilotage.api.NodeView`: a node whose object is exchanged, with its pods or without."""

    def __init__(self, base: NodeView, node: Node, *, is_empty: bool = False) -> None:
        super().__init__(base)
        self._node = node
        self._is_empty = is_empty

    @property
    def node(self) -> Node:
        return self._node

    @property
    def pods(self) -> Sequence[Pod]:
        return () if self._is_empty else self._base.pods

    @property
    def pod_count(self) -> int:
        return 0 if self._is_empty else self._base.pod_count

    def requested(self, resource: str) -> int:
        return 0 if self._is_empty else self._base.requested(resource)

    def non_zero_requested(self, resource: str) -> int:
        return 0 if self._is_empty else self._base.non_zero_requested(resource)


def uncordoned(node: Node) -> Node:
    return msgspec.structs.replace(node, spec=_spec(node, unschedulable=False))


def labelled(node: Node, labels: Mapping[str, str]) -> Node:
    metadata = msgspec.structs.replace(node.metadata, labels={**node.labels, **labels})
    return msgspec.structs.replace(node, metadata=metadata)


def renamed(node: Node, name: str) -> Node:
    """A new node of the same kind: its hostname label follows its name."""
    labels = {**node.labels, "kubernetes.io/hostname": name}
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, name=name, labels=labels))


def _spec(node: Node, **changes: object) -> NodeSpec:
    changed: NodeSpec = msgspec.structs.replace(node.spec, **changes)
    return changed
