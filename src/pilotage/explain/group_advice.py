"""Would fit if, for a group: single changes after which enough members fit together, each tried out beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final

from pilotage.cluster.node_view import RowView
from pilotage.explain.advice import (
    asking_less,
    one_row_per_kind,
    renamed,
    taint_text,
    tolerating,
    uncordoned,
    while_it_lasts,
    with_spec,
)
from pilotage.explain.amounts import readable
from pilotage.explain.eviction import NAMED_VICTIMS
from pilotage.explain.group_trials import GroupTrials, anywhere, with_min_count, with_priority
from pilotage.explain.report import Advice
from pilotage.model import Node, Pod
from pilotage.model.pod_group import PodGroup
from pilotage.model.pod_resources import pod_requests

_TOLD: Final = 8
_TRIED_TAINTS: Final = 20
_TRIED_KINDS: Final = 5
_TRIED_PRIORITIES: Final = 3
_TRIED_CORDONED: Final = 10
_MOST_NEW_NODES: Final = 256


class GroupAdvisor:
    """Finds changes for one group that does not fit."""

    def __init__(
        self, trials: GroupTrials, group: PodGroup, pods: Sequence[Pod], running: int, may_add_nodes: bool
    ) -> None:
        self._trials = trials
        self._group = group
        self._pods = pods
        self._running = running
        self._may_add_nodes = may_add_nodes

    def advice(self, fit_now: int, domain: str) -> tuple[Advice, ...]:
        """The smallest changes first; if there are too many, the smallest of each kind rather than others.

        So many would fit now, in this domain if the group has to be in one.
        """
        kinds = (
            self._fewer_members(fit_now),
            self._less_of_a_resource(),
            self._one_toleration(),
            self._anywhere(),
            self._another_priority(),
            *((self._one_node_uncordoned(), self._more_nodes(domain)) if self._may_add_nodes else ()),
        )
        ordered = [sorted(while_it_lasts(kind), key=lambda one: (one.size, one.like, one.resource)) for kind in kinds]
        preferred = [one for turn in zip_longest(*ordered) for one in turn if one is not None]
        return tuple(sorted(preferred[:_TOLD], key=lambda one: one.size))

    def for_missing_pods(self, missing: int) -> tuple[Advice, ...]:
        """Of a gang that waits for pods and would fit with them."""
        name = self._pods[-1].name
        pods = "pod" if missing == 1 else "pods"
        come = Advice("MorePods", f"{missing} more {pods} like {name} came", 1.0, like=name, count=missing)
        return (come, *while_it_lasts(self._fewer_members(len(self._pods))))

    def _fits(self, pods: Sequence[Pod] | None = None, group: PodGroup | None = None) -> bool:
        return self._trials.place(group or self._group, self._pods if pods is None else pods).fits

    # --- changes of the group ----------------------------------------------------------------------------------

    def _fewer_members(self, fit_now: int) -> Iterator[Advice]:
        wanted, enough = self._group.min_count, self._running + fit_now
        if (
            self._group.is_gang
            and fit_now
            and enough < wanted
            and self._fits(group=with_min_count(self._group, enough))
        ):
            change = f"its minCount were {enough} instead of {wanted}"
            yield Advice("SmallerMinCount", change, (wanted - enough) / wanted, min_count=enough)

    def _anywhere(self) -> Iterator[Advice]:
        key = self._group.topology_key
        if key and self._fits(group=anywhere(self._group)):
            yield Advice("WithoutTopology", f"its pods might be on nodes with different values of {key}", 1.0)

    def _another_priority(self) -> Iterator[Advice]:
        """The lowest priority above its own with which preemption would make room."""
        nodes = self._trials.engine.nodes
        if not self._trials.engine.profile.pod_group_post_filter:
            return
        others = {pod.priority for row in range(len(nodes)) for pod in nodes.pods_on(row).values()}
        for priority in sorted(p for p in others if p >= self._group.priority)[:_TRIED_PRIORITIES]:
            pods = [with_spec(pod, priority=priority + 1, preemption_policy=None) for pod in self._pods]
            found = self._trials.victims(with_priority(self._group, priority + 1), pods)
            if found.victims and not found.message:
                names = tuple(pod.key for pod in found.victims[:NAMED_VICTIMS])
                more = len(found.victims) - len(names)
                gone = ", ".join(names) + (f" and {more} more" if more else "")
                change = f"its priority were above {priority} instead of {self._group.priority}, or {gone} were gone"
                yield Advice("HigherPriority", change, 3.0, above_priority=priority, victims=names)
                return

    # --- changes of the pods -----------------------------------------------------------------------------------

    def _less_of_a_resource(self) -> Iterator[Advice]:
        """The largest request with which the group fits: the less each pod asks for, the more of them fit."""
        nodes = self._trials.engine.nodes
        resources = {resource for pod in self._pods for resource in pod_requests(pod.spec)}
        for resource in sorted(resources):
            wanted = max(pod_requests(pod.spec).get(resource, 0) for pod in self._pods)
            free = {int(amount) for amount in nodes.free(resource) if amount > 0}
            shares = {amount // count for amount in free for count in range(1, len(self._pods) + 1)}
            amounts = sorted(amount for amount in shares if 0 < amount < wanted)
            enough = self._largest(resource, amounts)
            if enough:
                asks, gets = readable(resource, wanted), readable(resource, enough)
                change = f"each of its pods asked for {gets} {resource} instead of {asks}"
                size = (wanted - enough) / wanted
                yield Advice("SmallerRequest", change, size, resource=resource, asked=wanted, enough=enough)

    def _largest(self, resource: str, amounts: Sequence[int]) -> int:
        """The largest of these amounts, which are in order, with which the group fits; 0 if none will do."""
        low, high = 0, len(amounts)
        while low < high:
            middle = (low + high + 1) // 2
            if self._fits_asking(resource, amounts[middle - 1]):
                low = middle
            else:
                high = middle - 1
        return amounts[low - 1] if low else 0

    def _fits_asking(self, resource: str, amount: int) -> bool:
        smaller = []
        for pod in self._pods:
            over = pod_requests(pod.spec).get(resource, 0) - amount
            changed = asking_less(pod, resource, over) if over > 0 else pod
            if changed is None:
                return False
            smaller.append(changed)
        return self._fits(smaller)

    def _one_toleration(self) -> Iterator[Advice]:
        _, taint_sets = self._trials.engine.nodes.taint_sets()
        taints = dict.fromkeys(taint for taints in taint_sets for taint in taints)
        for taint in list(taints)[:_TRIED_TAINTS]:
            if taint.effect != "PreferNoSchedule" and self._fits([tolerating(pod, taint) for pod in self._pods]):
                text = taint_text(taint)
                yield Advice("Toleration", f"its pods tolerated the taint {text}", 1.0, taint=text)

    # --- changes of the cluster --------------------------------------------------------------------------------

    def _one_node_uncordoned(self) -> Iterator[Advice]:
        nodes = self._trials.engine.nodes
        cordoned = [node for row in range(len(nodes)) if (node := nodes.node(row)).spec.unschedulable]
        for node in cordoned[:_TRIED_CORDONED]:
            with self._trials.nodes(uncordoned(node)):
                fits = self._fits()
            if fits:
                yield Advice("NodeUncordoned", f"node {node.name} were uncordoned", 1.0, node=node.name)

    def _more_nodes(self, domain: str) -> Iterator[Advice]:
        """How many new, empty nodes of a kind that exists would do, rather in the domain where the most fit now."""
        engine = self._trials.engine
        resources = {resource for pod in self._pods for resource in pod_requests(pod.spec)}
        near = self._rows_of(domain) if domain else ()
        for row in one_row_per_kind(engine.nodes, sorted(resources), near)[:_TRIED_KINDS]:
            like = RowView(engine.nodes, row).node
            count = self._fewest(like, min(len(self._pods), _MOST_NEW_NODES))
            if count:
                nodes = "one more node" if count == 1 else f"{count} more nodes"
                change = f"there were {nodes} like {like.name}"
                yield Advice("MoreNodes", change, 1.0 + count, like=like.name, count=count)

    def _rows_of(self, domain: str) -> list[int]:
        nodes = self._trials.engine.nodes
        return [row for row in range(len(nodes)) if nodes.node(row).labels.get(self._group.topology_key) == domain]

    def _fewest(self, like: Node, most: int) -> int:
        """How many nodes like this the group needs; 0 if not even `most` will do, a node for each pod."""
        if not self._fits_with(like, most):
            return 0
        low, high = 1, most
        while low < high:
            middle = (low + high) // 2
            if self._fits_with(like, middle):
                high = middle
            else:
                low = middle + 1
        return low

    def _fits_with(self, like: Node, count: int) -> bool:
        fresh = [uncordoned(renamed(like, f"another-{number}-{like.name}")) for number in range(1, count + 1)]
        with self._trials.nodes(*fresh):
            return self._fits()
