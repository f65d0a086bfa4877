"""Capacity scheduling with ElasticQuotas: a port of the plugin CapacityScheduling of kubernetes-sigs/scheduler-plugins.

    pilotage sandbox --plugin examples/plugins/elastic_quotas.py --config examples/plugins/elastic_quotas.config.yaml \\
        -f examples/plugins/crds/elasticquotas.yaml -f examples/plugins/elastic_quotas.yaml
    kubectl get pods -A -o wide        # team-a runs four pods, two of them in what team-b does not use

An ElasticQuota (elasticquotas.scheduling.x-k8s.io) gives its namespace a `min`, which it can always have, and a `max`,
which it never exceeds. What others do not use of their min may be borrowed: the namespaces together may use the sum of
all mins. Whoever is below its min gets it back from those who are above theirs, whatever their priority.

- PreFilter, Filter: max of the namespace, and the sum of all mins. The filter looks at quotas only, but it is a filter,
  so that the search for victims (which imagines pods away) knows what their quota gains.
- PostFilter: a pod that stays within its min takes from namespaces above theirs; one that borrows only from pods of
  lower priority in its own namespace.

Pods of namespaces without a quota are neither counted nor taken from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from pilotage.api import (
    Action,
    ApiObject,
    ClusterIndex,
    CycleState,
    Evicted,
    Eviction,
    Filter,
    Handle,
    Hint,
    Kind,
    NodeTable,
    NodeView,
    Nominate,
    Plugin,
    Pod,
    PostFilter,
    PreFilter,
    PreFilterExtensions,
    Quantity,
    Reason,
    Rejection,
    Reject,
    RejectedNodes,
    Resource,
    Shape,
    Skip,
    StateKey,
    on_event,
    pod_requests,
    quantity_milli,
    quantity_value,
)

Amounts = Mapping[str, int]
"""By resource: cpu in thousandths, everything else in units."""


class ElasticQuotaSpec(Shape, frozen=True):
    min: dict[str, Quantity] = msgspec.field(default_factory=dict)
    max: dict[str, Quantity] = msgspec.field(default_factory=dict)


class ElasticQuota(ApiObject, frozen=True):
    spec: ElasticQuotaSpec = ElasticQuotaSpec()


QUOTAS = Kind("elasticquotas.scheduling.x-k8s.io", "v1alpha1", ElasticQuota)


class Usage(ClusterIndex):
    """What the pods of each namespace ask for that have a node, and which of them are on their way out."""

    def __init__(self) -> None:
        self.used: dict[str, dict[str, int]] = {}
        self.leaving: dict[str, Pod] = {}

    def pod_added(self, pod: Pod, node_name: str) -> None:
        _add(self.used.setdefault(pod.namespace, {}), pod_requests(pod.spec), 1)
        if pod.is_terminating:
            self.leaving[pod.uid] = pod

    def pod_removed(self, pod: Pod, node_name: str) -> None:
        _add(self.used.setdefault(pod.namespace, {}), pod_requests(pod.spec), -1)
        self.leaving.pop(pod.uid, None)


@dataclass(frozen=True, slots=True)
class Quota:
    """The quota of one namespace as amounts."""

    min: Amounts
    max: Amounts


@dataclass(slots=True)
class Account:
    """What is used as of this attempt, and in its dry runs."""

    quotas: Mapping[str, Quota]
    used: dict[str, dict[str, int]]
    """By namespace, of those that have a quota."""

    def clone(self) -> Account:
        return Account(self.quotas, {namespace: dict(used) for namespace, used in self.used.items()})

    def count(self, pod: Pod, sign: int) -> None:
        if pod.namespace in self.quotas:
            _add(self.used.setdefault(pod.namespace, {}), pod_requests(pod.spec), sign)

    def exceeds_max(self, pod: Pod) -> str:
        """A resource of which the namespace would use more than its max; "" if there is none."""
        return self._over(pod, self.used.get(pod.namespace, {}), self.quotas[pod.namespace].max)

    def exceeds_total(self, pod: Pod) -> str:
        """A resource of which all namespaces together would use more than the sum of their mins."""
        return self._over(pod, _sum(self.used.values()), _sum(quota.min for quota in self.quotas.values()))

    def exceeds_min(self, pod: Pod) -> bool:
        """Whether the namespace would borrow."""
        return bool(self._over(pod, self.used.get(pod.namespace, {}), self.quotas[pod.namespace].min))

    def borrows(self, namespace: str) -> bool:
        quota = self.quotas.get(namespace)
        used = self.used.get(namespace, {})
        return quota is not None and any(amount > quota.min.get(name, 0) for name, amount in used.items())

    @staticmethod
    def _over(pod: Pod, used: Amounts, bound: Amounts) -> str:
        """A quota bounds the resources that it names."""
        wanted = pod_requests(pod.spec)
        return next((name for name, most in bound.items() if wanted.get(name, 0) + used.get(name, 0) > most
                     and wanted.get(name, 0)), "")  # fmt: skip


ACCOUNT = StateKey[Account]("CapacityScheduling/account")


class CapacityScheduling(Plugin, PreFilter, PreFilterExtensions, Filter, PostFilter):
    """Namespaces borrow from each other what they do not use, and get it back."""

    watches = (QUOTAS,)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._objects = handle.objects(QUOTAS)
        self._usage = handle.index(Usage)
        self._taking: dict[str, Pod] = {}
        """Pods that were nominated a node here, by UID: they will use what is not counted yet."""
        self._evicted: dict[str, Pod] = {}
        """Their victims, until they are seen leaving."""

    # --- may it run at all -------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | Rejection | None:
        quotas = {quota.namespace: _quota(quota) for quota in self._objects.values()}
        own = quotas.get(pod.namespace)
        if own is None:
            return Skip()
        used = {namespace: dict(self._usage.used.get(namespace, {})) for namespace in quotas}
        state[ACCOUNT] = Account(quotas, used)
        alone = Account(quotas, {})
        if resource := alone.exceeds_max(pod):
            message = f"the pod alone asks for more {resource} than the max of its ElasticQuota"
            return Reject(Reason("MoreThanMax", message, unresolvable=True))
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        account = state[ACCOUNT]
        if resource := account.exceeds_max(pod):
            return Reject(Reason("ElasticQuotaMax", f"ElasticQuota would use more {resource} than its max"))
        if resource := account.exceeds_total(pod):
            return Reject(Reason("ElasticQuotaMin", f"ElasticQuotas would use more {resource} than the sum of mins"))
        return None

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> None:
        if (account := state.get(ACCOUNT)) is not None:
            account.count(added, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> None:
        if (account := state.get(ACCOUNT)) is not None:
            account.count(removed, -1)

    # --- who gives back ----------------------------------------------------------------------------------------

    def post_filter(self, state: CycleState, pod: Pod, rejected: RejectedNodes) -> Nominate | Rejection:
        account = state.get(ACCOUNT)
        if account is None or pod.spec.preemption_policy == "Never":
            return Reject()
        leaving = self._leaving()
        nominated = self._handle.node(self._handle.nominated_node(pod))
        if nominated is not None and any(other.uid in leaving for other in nominated.pods):
            return Reject(Reason("VictimTerminating", "waiting for victims that are on their way out"))
        account = self._expected(account.clone(), pod, leaving)
        found = self._of_lower_priority(state, pod, account, rejected)
        if found is None and not account.exceeds_min(pod):
            found = self._of_borrowers(state, pod, account, rejected, leaving)
        if found is None:
            return Reject(Reason("NothingToReclaim", "no ElasticQuota has to give anything back"))
        node_name, victims = found
        self._taking[pod.uid] = pod
        for victim in victims:
            self._evicted[victim.uid] = victim
            self._handle.evict(Eviction(victim, pod, node_name, self.plugin_name()), partial(self._after, victim))
        return Nominate(node_name, f"reclaiming from {len(victims)} pod(s)")

    def _leaving(self) -> dict[str, Pod]:
        """Pods that will soon use nothing any more, whether or not they have begun to terminate."""
        pods = self._handle.objects("Pod")
        for victim in list(self._evicted.values()):
            known: Pod | None = pods.get(victim.key)
            if known is None or known.uid != victim.uid or known.is_terminating:
                del self._evicted[victim.uid]
        return {**self._usage.leaving, **self._evicted}

    def _expected(self, account: Account, pod: Pod, leaving: Mapping[str, Pod]) -> Account:
        """What will be used when all that was decided has happened: without victims, with those that they made way."""
        for victim in leaving.values():
            account.count(victim, -1)
        for other in list(self._taking.values()):
            if not self._handle.nominated_node(other):
                del self._taking[other.uid]
            elif other.uid != pod.uid:
                account.count(other, 1)
        return account

    def _of_lower_priority(
        self, state: CycleState, pod: Pod, account: Account, rejected: RejectedNodes
    ) -> tuple[str, Sequence[Pod]] | None:
        """The scheduler's own search, as far as the quotas allow its victims."""
        rows = rejected.resolvable_rows()
        borrows = account.exceeds_min(pod)
        search = self._handle.search_victims(state, pod, rows, len(rows))
        allowed = [one for one in search.candidates if _is_fair(one.victims, pod, account.clone(), borrows)]
        best = min(allowed, key=lambda one: one.cost, default=None)
        return None if best is None else (best.node_name, [one for one in best.victims if not one.is_terminating])

    def _of_borrowers(
        self, state: CycleState, pod: Pod, account: Account, rejected: RejectedNodes, leaving: Mapping[str, Pod]
    ) -> tuple[str, Sequence[Pod]] | None:
        """Pods of any priority: the node with the fewest victims, on which all other filters let the pod in then."""
        found = []
        for name in rejected.resolvable():
            state.budget.spend()
            node = self._handle.node(name)
            if node is None:
                continue
            rivals = [other for other in self._handle.nominated_pods(name) if other.uid != pod.uid]
            gone = [other for other in node.pods if other.uid in leaving]
            victims = _victims(pod, node, _room(pod, node, gone, rivals), account.clone(), leaving)
            if victims is not None:
                found.append((name, victims, gone))
        what_if = self._handle.what_if(pod)
        for name, victims, gone in sorted(found, key=lambda one: len(one[1])):
            hypothetical = what_if.on(name)
            for other in (*victims, *gone):
                hypothetical.remove(other)
            rejection = hypothetical.rejection()
            # The quotas are settled already, with all that is under way on other nodes.
            if rejection is None or rejection[0] == self.plugin_name():
                return name, victims
        return None

    def _after(self, victim: Pod, outcome: Evicted) -> None:
        """An eviction that failed is none: the victim stays, and may be asked again."""
        if outcome.error is not None:
            self._evicted.pop(victim.uid, None)

    # --- what helps --------------------------------------------------------------------------------------------

    @on_event(QUOTAS, Action.ALL)
    def after_quota(self, pod: Pod, old: ElasticQuota | None, new: ElasticQuota | None) -> Hint:
        return Hint.QUEUE

    @on_event(Resource.ASSIGNED_POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN)
    def after_less_is_used(self, pod: Pod, old: Pod, new: Pod | None) -> Hint:
        """Pods without a quota do not count."""
        has_quota = any(quota.namespace == old.namespace for quota in self._objects.values())
        return Hint.QUEUE if has_quota else Hint.SKIP

    @on_event(Resource.TARGET_POD, Action.UPDATE_POD_SCALE_DOWN)
    def after_less_is_asked(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        return Hint.QUEUE


def _room(pod: Pod, node: NodeView, gone: Iterable[Pod], rivals: Iterable[Pod]) -> dict[str, int]:
    """What the node has of all that the pod asks for, when some pods are gone and others have come."""
    room = {name: node.allocatable(name) - node.requested(name) for name in pod_requests(pod.spec)}
    for sign, pods in ((1, gone), (-1, rivals)):
        for other in pods:
            _add(room, pod_requests(other.spec), sign)
    return room


def _victims(
    pod: Pod, node: NodeView, room: dict[str, int], account: Account, leaving: Mapping[str, Pod]
) -> list[Pod] | None:
    """Pods of borrowers on the node, the least important first, until the pod fits there and within the quotas.

    None if that cannot be.
    """
    victims: list[Pod] = []
    for other in sorted(node.pods, key=lambda one: one.priority):
        if _fits(pod, room, account):
            return victims
        if other.namespace != pod.namespace and other.uid not in leaving and account.borrows(other.namespace):
            victims.append(other)
            account.count(other, -1)
            _add(room, pod_requests(other.spec), 1)
    return victims if _fits(pod, room, account) else None


def _is_fair(victims: Iterable[Pod], pod: Pod, account: Account, borrows: bool) -> bool:
    """Whether all are of the pod's own namespace, or of others for as long as these borrow and the pod does not."""
    for victim in victims:
        if victim.namespace != pod.namespace:
            if borrows or not account.borrows(victim.namespace):
                return False
            account.count(victim, -1)
    return True


def _fits(pod: Pod, room: Amounts, account: Account) -> bool:
    has_room = all(amount <= room[name] for name, amount in pod_requests(pod.spec).items())
    return has_room and not account.exceeds_max(pod) and not account.exceeds_total(pod)


def _quota(obj: ElasticQuota) -> Quota:
    return Quota(_amounts(obj.spec.min), _amounts(obj.spec.max))


def _amounts(quantities: Mapping[str, Quantity]) -> Amounts:
    return {name: quantity_milli(text) if name == "cpu" else quantity_value(text) for name, text in quantities.items()}


def _add(total: dict[str, int], amounts: Amounts, sign: int) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + sign * amount


def _sum(all_amounts: Iterable[Amounts]) -> dict[str, int]:
    total: dict[str, int] = {}
    for amounts in all_amounts:
        _add(total, amounts, 1)
    return total
