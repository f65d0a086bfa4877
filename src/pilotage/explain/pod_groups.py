"""Builds the report of a pod group: what its members lack, tried out with the placement that schedules groups.

Everything is tried on the cluster itself, without a pause in which anybody else could see it, and taken back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec.structs import replace

from pilotage.api.budget import UNLIMITED, Budget
from pilotage.api.group_members import PodGroups
from pilotage.api.state import CycleState
from pilotage.api.table import Mask
from pilotage.cluster.state import Cluster
from pilotage.cycle.group_attempt import problem_of
from pilotage.cycle.placement import ProfileEngine, diagnose
from pilotage.explain.eviction import NAMED_VICTIMS
from pilotage.explain.explainer import nearest_nodes, rejection_groups, skipped_objects
from pilotage.explain.group_advice import GroupAdvisor
from pilotage.explain.group_text import with_group_answer
from pilotage.explain.group_trials import DomainTrial, GroupTrials, imagined
from pilotage.explain.report import Domain, Gate, GroupReport, MemberLack, MemberPlace, Victims
from pilotage.framework.errors import PluginError
from pilotage.model import Pod
from pilotage.model.pod_group import POD_GROUP_SCHEDULED, PodGroup
from pilotage.model.suggestions import suggestion

_EXAMPLES: Final = 3
_MOST_PLACES: Final = 50
_MOST_DOMAINS: Final = 100
_MOST_LACKS: Final = 10


def explain_group(
    engines: Mapping[str, ProfileEngine],
    cluster: Cluster,
    key: str,
    budget: Budget = UNLIMITED,
    *,
    has_own_policy: bool = False,
    may_add_nodes: bool = True,
) -> GroupReport:
    """Everything about where a group can go, as of now.

    BudgetExceeded if that takes too long; advice is only looked for as long as the budget lasts. `has_own_policy` if
    groups say by themselves whether they preempt. `may_add_nodes` if nobody else uses the cluster: then more nodes are
    tried out too.
    """
    groups = cluster.index(PodGroups)
    group = groups.objects.get(key)
    waiting, running = members_of(groups, key, engines), list(groups.scheduled(key).values())
    blank = GroupReport(
        pod_group=key,
        state="",
        answer="",
        fits=False,
        exist=len(waiting) + len(running),
        run=len(running),
        wait=len(waiting),
        nodes=len(cluster.nodes),
    )
    if group is None:
        own = key.partition("/")[0]
        near = suggestion(key, [known for known in groups.objects if known.startswith(f"{own}/")])
        return with_group_answer(replace(blank, state="Missing", similar=near))
    blank = replace(
        blank,
        min_count=group.min_count,
        policy="gang" if group.is_gang else "basic",
        priority=group.priority,
        topology_key=group.topology_key,
        condition=next((c.message for c in group.status.conditions if c.type == POD_GROUP_SCHEDULED), ""),
    )
    if not waiting:
        state = "Scheduled" if running else "NoPods"
        return with_group_answer(replace(blank, state=state, fits=bool(running)))
    engine = engines[waiting[0].spec.scheduler_name]
    blank = replace(
        blank,
        scheduler=waiting[0].spec.scheduler_name,
        skipped=skipped_objects(engine, waiting[0].namespace),
        kept=tuple(MemberPlace(pod.key, node) for pod in waiting if (node := cluster.nominations.node_of(pod.uid))),
    )
    problem = problem_of(group, [*waiting, *running], has_own_policy=has_own_policy)
    if problem:
        return with_group_answer(replace(blank, state="Invalid", error=problem))
    trials = GroupTrials(engine, cluster, budget)
    return with_group_answer(_Explainer(trials, group, waiting, len(running), may_add_nodes).report(blank))


def members_of(groups: PodGroups, key: str, scheduler_names: Mapping[str, object]) -> list[Pod]:
    """Those who wait and are to be placed by one of these schedulers, in the order in which they would be placed."""
    waiting = [pod for name in scheduler_names for pod in groups.unscheduled(key, name).values()]
    return sorted(waiting, key=lambda pod: (-pod.priority, pod.creation_timestamp or "", pod.name))


class _Explainer:
    """About a group with members that wait."""

    def __init__(
        self, trials: GroupTrials, group: PodGroup, waiting: Sequence[Pod], running: int, may_add_nodes: bool
    ) -> None:
        self._trials = trials
        self._group = group
        self._waiting = waiting
        self._running = running
        self._may_add_nodes = may_add_nodes

    def report(self, blank: GroupReport) -> GroupReport:
        gates = self._gates()
        missing = self._group.min_count - self._running - len(self._waiting) if self._group.is_gang else 0
        if gates and missing > 0:
            complete = [*self._waiting, *imagined(self._waiting[-1], missing)]
            found = self._tried(blank, complete)
            if found.error:
                return replace(found, state="Error")
            advice = GroupAdvisor(self._trials, self._group, self._waiting, self._running, self._may_add_nodes)
            would_fit_if = advice.for_missing_pods(missing) if found.fits else found.would_fit_if
            return replace(
                found,
                state="Gated",
                gates=gates,
                fits=False,
                fits_if_complete=found.fits,
                places=(),
                would_fit_if=would_fit_if,
            )
        found = self._tried(blank, self._waiting)
        if gates:
            return replace(found, state="Gated", gates=gates, fits=False, fits_if_complete=found.fits, places=())
        return found

    def _gates(self) -> tuple[Gate, ...]:
        """What PreEnqueue says of the members, equal answers once."""
        found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        for pod in self._waiting:
            try:
                rejected = self._trials.engine.runner.pre_enqueue(pod)
            except PluginError as error:
                found[error.plugin, "Error", str(error)].append(pod.key)
                continue
            if rejected is not None:
                for reason in rejected.rejection.reasons:
                    found[rejected.plugin, reason.code, reason.message].append(pod.key)
        return tuple(Gate(*what, len(keys), tuple(keys[:_EXAMPLES])) for what, keys in found.items())

    def _tried(self, blank: GroupReport, pods: Sequence[Pod]) -> GroupReport:
        """Where these pods would go together, or what keeps them from it."""
        trial = self._trials.place(self._group, pods)
        if trial.error:
            return replace(blank, state="Error", error=trial.error)
        domains = self._trials.domains(self._group, pods, self._lacks)
        blank = replace(blank, domains=tuple(_domain(one) for one in domains[:_MOST_DOMAINS] if one.name))
        if trial.fits:
            places = tuple(MemberPlace(pod.key, node) for pod, node in islice(trial.places, _MOST_PLACES))
            chosen = replace(blank, domain=trial.domain, places=places)
            lacks = next((one.lacks for one in domains if one.name == trial.domain), ())
            return replace(chosen, state="Fits", fits=True, fit_now=len(trial.places), lacks=lacks)
        nearest = domains[0] if domains else DomainTrial("", 0, 0, ())
        return replace(
            blank,
            state="Unschedulable",
            fit_now=nearest.fits,
            domain=nearest.name,
            lacks=nearest.lacks,
            preemption=self._victims(pods),
            would_fit_if=GroupAdvisor(self._trials, self._group, pods, self._running, self._may_add_nodes).advice(
                nearest.fits, nearest.name
            ),
        )

    def _victims(self, pods: Sequence[Pod]) -> Victims | None:
        engine, group = self._trials.engine, self._group
        if not engine.profile.pod_group_post_filter:
            return None
        if any(pod.spec.preemption_policy == "Never" for pod in pods):
            return Victims("NeverPreempts")
        found = self._trials.victims(group, pods)
        if found.message or not found.victims:
            return Victims("NothingHelps")
        return Victims("WouldEvict", len(found.victims), tuple(pod.key for pod in found.victims[:NAMED_VICTIMS]))

    def _lacks(self, without: Sequence[Pod], within: Mask | None) -> tuple[MemberLack, ...]:
        """Why these have no place beside those who have one; equal reasons once. Asked while the others hold theirs."""
        engine = self._trials.engine
        found: dict[object, tuple[MemberLack, list[str]]] = {}
        for pod in without:
            what = (id(pod.spec), pod.labels)
            if what not in found and len(found) < _MOST_LACKS:
                found[what] = (_lack(engine, pod, within), [])
            if what in found:
                found[what][1].append(pod.key)
        return tuple(replace(lack, pods=len(keys), examples=tuple(keys[:_EXAMPLES])) for lack, keys in found.values())


def _lack(engine: ProfileEngine, pod: Pod, within: Mask | None) -> MemberLack:
    state = CycleState()
    try:
        outcome = engine.runner.pre_filter(state, pod)
        diagnosis = diagnose(engine, state, pod, outcome)
        nearest = nearest_nodes(engine, pod, state, diagnosis, within=within)
    except PluginError as error:
        return MemberLack(0, (), message=str(error))
    if within is not None:
        diagnosis.limit_to(within)
    return MemberLack(0, (), rejection_groups(diagnosis), nearest, diagnosis.message())


def _domain(trial: DomainTrial) -> Domain:
    return Domain(trial.name, trial.nodes, trial.fits)
