"""Preemptions whose victims are still being evicted.

    start -- evict all but the last --> evict the last --> over
                     |                        |
                     +--- one failed ---------+--> over, the preemptor is tried again after a growing backoff

While a preemption is under way its preemptor is held back: other pods that leave would wake it too early. The last
victim is kept for the end, because its leaving is what wakes the preemptor: from then on it may come in. It goes before
the victims of preemptors that came later; no place would be free else until the victims of all of them have gone. An
eviction has ended when the victim is seen leaving, so that no one chooses again by a view in which it is still there.

A victim that was being bound may give up its place before it is deleted: its binding fails, because the deletion takes
the place of the binding in the call queue. That is its leaving; when it is deleted nothing changes on the node, and
no pod would be requeued.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from pilotage.api.group_members import PodGroups
from pilotage.api.pod_groups import GroupVictims
from pilotage.api.preemption import Candidate, Evicted, Eviction
from pilotage.api.views import Handle
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup


class _Preemption(Struct, eq=False):
    preemptor: Pod
    node_name: str
    others_left: int
    last: Pod
    started: float
    has_others: bool = False
    """Whether the last victim is not the only one."""
    is_last_leaving: bool = False
    has_failed: bool = False
    group: PodGroup | None = None
    """For whose sake it is, if not the preemptor's alone."""

    @property
    def uid(self) -> str:
        return self.preemptor.uid if self.group is None else self.group.uid


class PreemptionsUnderWay:
    """By UID of the preemptor; for PostFilter plugins that preempt.

    `post_filter` calls `start` and nominates the node; `pre_enqueue` rejects pods that it `holds_back`; and of the
    event (ASSIGNED_POD, DELETE), for which the hint answers SKIP, a method under `@narrows` names the pods `waking`.
    """

    def __init__(self, handle: Handle, plugin: str) -> None:
        self._handle = handle
        self._plugin = plugin
        self._by_preemptor: dict[str, _Preemption] = {}
        self._by_last_victim: dict[str, dict[str, _Preemption]] = {}

    def start(self, preemptor: Pod, candidate: Candidate) -> None:
        """Evict the victims; if all of them are on their way out already, there is nothing to do."""
        victims = [victim for victim in candidate.victims if not victim.is_terminating]
        if not victims:
            return
        # Some may be on other nodes, with their group. The last to go is one whose place the preemptor takes.
        victims.sort(key=lambda victim: victim.node_name == candidate.node_name)
        *others, last = victims
        now = self._handle.clock.monotonic()
        preemption = _Preemption(preemptor, candidate.node_name, len(others), last, now, bool(others))
        self._by_preemptor[preemptor.uid] = preemption
        nominated = self._handle.nominated_pods(candidate.node_name)
        self._handle.withdraw_nominations([pod for pod in nominated if pod.priority < preemptor.priority])
        for victim in others:
            self._evict(preemption, victim)
        if not others:
            self._evict_last(preemption)

    def start_for_group(self, group: PodGroup, members: Sequence[Pod], found: GroupVictims) -> None:
        """The same for the sake of a whole group, of which these members wait."""
        victims = found.victims
        staying = [victim for victim in victims if not victim.is_terminating]
        if not staying:
            return
        *others, last = staying
        now = self._handle.clock.monotonic()
        preemption = _Preemption(members[0], last.node_name, len(others), last, now, bool(others), group=group)
        self._by_preemptor[group.uid] = preemption
        for node_name in dict.fromkeys(node for _, node in found.places):
            nominated = self._handle.nominated_pods(node_name)
            self._handle.withdraw_nominations([pod for pod in nominated if pod.priority < group.priority])
        for victim in others:
            self._evict(preemption, victim)
        if not others:
            self._evict_last(preemption)

    def holds_back_group(self, uid: str) -> bool:
        """Whether it is too early to try the group of this UID again."""
        return self._holds_back(uid)

    def holds_back(self, pod: Pod) -> bool:
        """Whether it is too early to try this preemptor again."""
        return self._holds_back(pod.uid)

    def _holds_back(self, uid: str) -> bool:
        preemption = self._by_preemptor.get(uid)
        if preemption is None:
            return False
        return not (preemption.is_last_leaving and self._has_left(preemption))

    def waking(self, gone: Pod) -> list[str]:
        """Keys of the preemptors that the leaving of this pod lets in."""
        leaving = self._by_last_victim.get(gone.uid, {})
        return [pod.key for preemption in leaving.values() for pod in self._preemptors(preemption)]

    def _preemptors(self, preemption: _Preemption) -> list[Pod]:
        """The pods that wait for the preemption: of a group all members that wait now."""
        if preemption.group is None:
            return [preemption.preemptor]
        return list(self._handle.index(PodGroups).waiting(preemption.group.key).values())

    def _has_left(self, preemption: _Preemption) -> bool:
        """Whether the last victim is terminating, or gone from its node."""
        victim = preemption.last
        known: Pod | None = self._handle.objects("Pod").get(victim.key)
        if known is not None and known.uid == victim.uid and known.is_terminating:
            return True
        return not self._has_place(preemption)

    def _has_place(self, preemption: _Preemption) -> bool:
        """Whether the last victim still takes up room on the node, bound or being bound."""
        node = self._handle.node(preemption.node_name)
        return node is not None and any(pod.uid == preemption.last.uid for pod in node.pods)

    def _evict(self, preemption: _Preemption, victim: Pod) -> None:
        eviction = Eviction(
            victim,
            preemption.preemptor,
            preemption.node_name,
            self._plugin,
            preemption.group,
            completes=preemption.is_last_leaving and preemption.has_others,
        )
        on_evicted = self._last_evicted if preemption.is_last_leaving else self._other_evicted
        self._handle.evict(eviction, partial(on_evicted, preemption))

    def _evict_last(self, preemption: _Preemption) -> None:
        preemption.is_last_leaving = True
        self._by_last_victim.setdefault(preemption.last.uid, {})[preemption.uid] = preemption
        self._evict(preemption, preemption.last)

    def _other_evicted(self, preemption: _Preemption, evicted: Evicted) -> None:
        preemption.others_left -= 1
        preemption.has_failed |= evicted.error is not None
        if preemption.others_left:
            return
        if preemption.has_failed:
            self._end(preemption)
        elif self._has_place(preemption):
            self._evict_last(preemption)
        else:
            # It has left while the others were evicted: that let no pod in.
            self._end(preemption, wake=True)

    def _last_evicted(self, preemption: _Preemption, evicted: Evicted) -> None:
        preemption.has_failed |= evicted.error is not None
        # Nothing that is still to come would wake the preemptor of a victim that never ran, or was gone before.
        self._end(preemption, wake=evicted.is_in_memory or evicted.was_gone)

    def _end(self, preemption: _Preemption, *, wake: bool = False) -> None:
        self._measure(preemption)
        preemptors = self._preemptors(preemption)
        if self._by_preemptor.get(preemption.uid) is preemption:
            del self._by_preemptor[preemption.uid]
        leaving = self._by_last_victim.get(preemption.last.uid, {})
        leaving.pop(preemption.uid, None)
        if not leaving:
            self._by_last_victim.pop(preemption.last.uid, None)
        if preemption.has_failed:
            self._handle.back_off(preemptors)
        elif wake:
            self._handle.activate(preemptors)
        else:
            self._handle.recheck_gates(preemptors)

    def _measure(self, preemption: _Preemption) -> None:
        result = "error" if preemption.has_failed else "success"
        seconds = self._handle.clock.monotonic() - preemption.started
        self._handle.count("scheduler_preemption_goroutines_execution_total", result)
        self._handle.observe("scheduler_preemption_goroutines_duration_seconds", seconds, result)
        preemptor = "pod" if preemption.group is None else "podgroup"
        self._handle.observe("scheduler_preemption_execution_duration_seconds", seconds, preemptor, result)
