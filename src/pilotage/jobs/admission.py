"""The admission cycle: one head of every ClusterQueue is nominated, and those that win get quota.

All heads are nominated under the same usage first. Then they are served in order (inside their own quota first, then by
priority and age; or by fair sharing), each checked again against what was given away before it. What a head is owed
but cannot have yet is booked for the rest of the cycle, so that those behind it do not take it; at the end of the
cycle such bookings are taken back.

Quota trees are independent: a cycle looks only at trees that something happened to, and a tree in which a cycle
changed nothing is left alone until something happens again.
"""

from __future__ import annotations

from collections.abc import Iterable

from pilotage.jobs import conditions as c
from pilotage.jobs.assignment import Assigner, Assignment, Mode
from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.fair_sharing import FairSharingPreemption, drawn
from pilotage.jobs.nomination import AdmissionEntry, Nominator, owed, wake_for
from pilotage.jobs.pending import NEVER, KnownRejection, WakeCondition
from pilotage.jobs.preemption import ClassicalPreemption, PreemptionRequest, removed
from pilotage.jobs.quota import Amounts, FlavorResource, QuotaNode
from pilotage.jobs.quota_tree import Inspection
from pilotage.jobs.quota_upper_bound import QuotaUpperBound
from pilotage.jobs.record import AFRESH, REJECTED, RETRY, Chosen, WorkloadRecord
from pilotage.jobs.rejections import Obstacle, QuotaRejection
from pilotage.jobs.workloads import Workloads


class AdmissionCycle:
    """One cycle, with everything that is known for its time only: made for it and thrown away after it."""

    def __init__(self, workloads: Workloads, inspection: Inspection, number: int) -> None:
        sharing = workloads.configuration.fair_sharing
        self._workloads = workloads
        self._tree = tree = workloads.tree
        self._queues = queues = workloads.queues
        self._outbox = workloads.outbox
        self._inspection = inspection
        self._number = number
        self._is_fair = sharing is not None
        self._upper_bound = bound = QuotaUpperBound(tree, is_fair=self._is_fair)
        self._preemption = (
            ClassicalPreemption(tree, queues.order, bound)
            if sharing is None
            else FairSharingPreemption(tree, queues.order, bound, sharing.preemption_strategies)
        )
        self._fit = workloads.node_fit
        self._assigner = Assigner(tree.flavors, self._preemption, self._fit, is_fair=self._is_fair)
        self._nominator = Nominator(tree, self._assigner, self._preemption)
        self._booked: list[tuple[QuotaNode, Amounts]] = []
        self._leaving: dict[str, tuple[QueueState, WorkloadRecord]] = {}
        """Victims, by UID."""
        self._skipped: list[QueueState] = []
        self._preemption_skips: dict[str, int] = {}
        self._changed: set[int] = set()
        """Trees in which a workload got quota or became inadmissible: the others have to be ranked anew then."""
        self._was_admitted = False
        """Whether a workload got quota."""

    def run(self) -> bool:
        """Whether another cycle may change something."""
        timers = self._workloads.timers
        started = timers.monotonic()
        entries: list[AdmissionEntry] = []
        heads = self._heads()
        for record, queue in heads:
            self._preemption_skips[queue.name] = 0
            self._inspection.obj = record
            entry = self._nominate(record, queue)
            if entry is not None:
                entries.append(entry)
        self._inspection.obj = None
        self._upper_bound.forget()
        for entry in self._in_order(entries):
            self._inspection.obj = entry.record
            self._serve(entry)
        self._inspection.obj = None
        for node, amounts in reversed(self._booked):
            node.remove(amounts)
        for queue in self._skipped:
            if id(queue.node.root) in self._changed:
                self._queues.mark_dirty(queue)
        self._queues.set_preemption_skips(self._preemption_skips)
        if heads:
            self._count_attempt(timers.monotonic() - started)
        return bool(self._queues.dirty)

    def _count_attempt(self, seconds: float) -> None:
        labels = (("result", "success" if self._was_admitted else "inadmissible"),)
        self._outbox.count("admission_attempts_total", *labels)
        self._outbox.observe("admission_attempt_duration_seconds", seconds, labels)

    # --- heads --------------------------------------------------------------------------------------------------------

    def _heads(self) -> list[tuple[WorkloadRecord, QueueState]]:
        """One of every usable queue of the trees with dirty queues."""
        trees = {id(root): root for queue in self._queues.take_dirty() for root in [queue.node.root]}
        found = []
        for root in trees.values():
            for leaf in root.leaves:
                queue = self._tree.queues[leaf.name]
                self._inspection.obj = queue.obj
                head = self._head(queue) if queue.is_active else None
                if head is not None:
                    found.append((head, queue))
        self._inspection.obj = None
        return found

    def _head(self, queue: QueueState) -> WorkloadRecord | None:
        """The first of those that are to be tried, or of the inadmissible ones for which there might be enough now."""
        pending = self._queues.pending(queue)

        def upper_bound(pair: FlavorResource, priority: int) -> int:
            return self._upper_bound.within(queue, pair, priority)

        while True:
            pending.wake_first_within(queue.generation, upper_bound)
            head = pending.head()
            if head is None:
                return None
            pending.begin(head, queue.generation)
            self._inspection.obj = head
            known = self._out_of_reach(head, queue)
            if known is None:
                return head
            pending.mark_inadmissible(head, known)
            self._report_to_group(head, queue, known.rejection)

    def _out_of_reach(self, head: WorkloadRecord, queue: QueueState) -> KnownRejection | None:
        """What is known of a head that need not be nominated again: what it lacked is still not free."""
        group = head.group
        known = group.known if group is not None else None
        if known is None or not known.wake.lacks or queue.is_strict:
            return None
        if head.attempt.waits_for or head.attempt.resumption.tried:
            return None
        if any(amount <= self._upper_bound.within(queue, pair, head.priority) for pair, amount in known.wake.lacks):
            return None
        return KnownRejection(known.rejection.now(queue.node), known.wake)

    def _nominate(self, record: WorkloadRecord, queue: QueueState) -> AdmissionEntry | None:
        if not self._queues.selects(queue, record.namespace):
            text = f"The namespace doesn't match the namespace selector of ClusterQueue {queue.name}"
            self._mark_inadmissible(record, queue, QuotaRejection(c.MISCONFIGURED, detail=text), NEVER)
            return None
        if record.shape.rejection is not None:
            self._turn_away(record, queue, record.shape.rejection)
            return None
        if record.is_barred:
            self._bar(record, queue)
            return None
        resumption = record.attempt.resumption
        if resumption is not AFRESH and resumption.is_outdated(queue.generation, self._number):
            record.set_resumption(AFRESH)
        assignment, victims = self._nominator.nominate(record, queue)
        return AdmissionEntry(record, queue, self._queues.order.head_key(record), assignment, victims)

    def _bar(self, record: WorkloadRecord, queue: QueueState) -> None:
        text = f"Admission check(s) stand in the way: {', '.join(record.checks_in(RETRY, REJECTED))}"
        self._turn_away(record, queue, QuotaRejection(c.PENDING_EVALUATION, detail=text))

    def _turn_away(self, record: WorkloadRecord, queue: QueueState, rejection: QuotaRejection) -> None:
        """Not nominated at all; no release of quota helps."""
        record.give_up_victims()
        if queue.is_strict:
            self._say(record, rejection)
        else:
            self._mark_inadmissible(record, queue, rejection, NEVER)

    def _in_order(self, entries: list[AdmissionEntry]) -> Iterable[AdmissionEntry]:
        if self._is_fair:
            return drawn(entries)
        return sorted(entries, key=AdmissionEntry.standing)

    # --- serving one head ---------------------------------------------------------------------------------------------

    def _serve(self, entry: AdmissionEntry) -> None:
        assignment = entry.assignment
        if assignment.mode is Mode.NO_FIT:
            self._reject(entry)
            return
        if assignment.mode is not Mode.FIT and not entry.victims:
            self._reject(entry)
            if entry.queue.obj.spec.preemption.reclaim_within_cohort != "Any":
                self._book(entry.queue, owed(entry))
            return
        if any(victim.record.uid in self._leaving for victim in entry.victims) and not self._choose_again(entry):
            return
        if not self._still_fits(entry) or not (entry.victims or not self._leaving or self._fits_now(entry)):
            self._skip(entry)
            return
        if entry.victims:
            self._preempt_if_that_helps(entry)
        elif (blocking := self._workloads.blocking) is not None:
            self._hold_back(entry, blocking)
        else:
            self._reserve(entry)

    def _choose_again(self, entry: AdmissionEntry) -> bool:
        """An earlier one chose the same victims: look again with those gone. False if it is dealt with."""
        with removed(list(self._leaving.values())):
            fits = entry.queue.node.fits(entry.usage)
            lacking = frozenset(entry.assignment.preempting)
            want = PreemptionRequest(entry.record, entry.queue, lacking, entry.usage, self._leaving)
            victims = [] if fits else self._preemption.victims(want)
        if fits:
            self._book(entry.queue, entry.usage)
            self._wait_for(entry, list(self._leaving))
            return False
        if not victims:
            self._skip(entry)
            return False
        entry.victims = victims
        return True

    def _still_fits(self, entry: AdmissionEntry) -> bool:
        """Once the victims of this cycle are gone and those before this one have what they are to get."""
        if not self._leaving and not entry.victims:
            return entry.queue.node.fits(entry.usage)
        gone = dict(self._leaving)
        gone |= {victim.record.uid: (victim.queue, victim.record) for victim in entry.victims}
        with removed(list(gone.values())):
            return entry.queue.node.fits(entry.usage)

    def _fits_now(self, entry: AdmissionEntry) -> bool:
        """While the victims of this cycle still hold their quota: what they leave cannot be given away yet."""
        for node, amounts in self._booked:
            node.remove(amounts)
        fits = entry.queue.node.fits(entry.usage)
        for node, amounts in self._booked:
            node.add(amounts)
        return fits

    def _book(self, queue: QueueState, amounts: Amounts) -> None:
        """For the rest of the cycle."""
        queue.node.add(amounts)
        self._booked.append((queue.node, amounts))

    # --- outcomes -----------------------------------------------------------------------------------------------------

    def _reserve(self, entry: AdmissionEntry) -> None:
        domains = self._fit.take(entry.record, entry.queue, entry.assignment)
        if isinstance(domains, Obstacle):
            self._no_room(entry, domains)
            return
        self._was_admitted = True
        self._changed.add(id(entry.queue.node.root))
        self._workloads.reserve(entry.record, entry.queue, entry.assignment, domains)
        self._upper_bound.forget()
        if self._queues.pending(entry.queue).may_have_more(entry.queue.generation):
            self._queues.mark_dirty(entry.queue)

    def _hold_back(self, entry: AdmissionEntry, blocking: WorkloadRecord) -> None:
        """blockAdmission: no quota while pods of another workload are not ready. Nominated afresh when that changes."""
        text = f"Waiting for all admitted workloads to be ready; {blocking.key} is not"
        resumption = entry.record.attempt.resumption
        entry.record.set_resumption(resumption.after({}, entry.queue.generation, self._number))
        self._book(entry.queue, entry.usage)
        self._say(entry.record, QuotaRejection(c.WAITING_FOR_PODS_READY, detail=text))

    def _no_room(self, entry: AdmissionEntry, obstacle: Obstacle) -> None:
        """There is quota, and no room for the pods."""
        record, queue = entry.record, entry.queue
        rejection = QuotaRejection(c.WAITING_FOR_NODES, (obstacle,))
        record.give_up_victims()
        if len(entry.flavors) == 1 and len(entry.assignment.pod_sets) == 1 and not entry.victims:
            # Others took it in this cycle: in the next one it is asked before a flavor is chosen.
            self._queues.mark_dirty(queue)
            self._say(record, rejection)
        elif queue.is_strict:
            self._say(record, rejection)
        else:
            nodes = () if obstacle.nodes is None else (obstacle.nodes,)
            self._mark_inadmissible(record, queue, rejection, WakeCondition(any_release=True, nodes=nodes))

    def _preempt_if_that_helps(self, entry: AdmissionEntry) -> None:
        if not entry.record.attempt.waits_for:
            leaving = [victim.record for victim in entry.victims]
            obstacle = self._fit.obstacle_after(entry.record, entry.queue, entry.assignment, leaving)
            if obstacle is not None:
                self._no_room(entry, obstacle)
                return
        self._preempt(entry)

    def _preempt(self, entry: AdmissionEntry) -> None:
        self._book(entry.queue, entry.usage)
        preemptor, outbox = entry.record, self._outbox
        for victim in entry.victims:
            record = victim.record
            self._leaving[record.uid] = (victim.queue, record)
            if record.is_evicted:
                continue
            now = self._workloads.timers.now()
            text = f"Preempted to accommodate workload {preemptor.key} due to {victim.reason}"
            record.set_condition(c.PREEMPTED, True, victim.reason, text, now)
            outbox.event(record, "Normal", "Preempted", text)
            self._workloads.evict(record, c.PREEMPTED, text)
            outbox.event(preemptor, "Normal", "PreemptedWorkload", f"Preempted {record.key} due to {victim.reason}")
            labels = (("preempting_cluster_queue", entry.queue.name), ("reason", victim.reason))
            outbox.count("preempted_workloads_total", *labels)
        self._wait_for(entry, [victim.record.uid for victim in entry.victims])

    def _wait_for(self, entry: AdmissionEntry, uids: list[str]) -> None:
        """Stays at the head until its victims are gone."""
        record, queue = entry.record, entry.queue
        begun, chosen = record.attempt.resumption, record.attempt.chosen
        if chosen is not None and not begun.tried:
            begun = chosen.resumption  # it waits still
        counts = tuple(one.count for one in entry.assignment.pod_sets)
        record.wait_for_victims(frozenset(uids), Chosen(counts, begun))
        if not queue.is_strict:
            self._queues.pending(queue).stick(record)
        self._say(
            record, QuotaRejection(c.WAITING_FOR_PREEMPTED, detail=f"Waiting for {len(uids)} preempted workload(s)")
        )

    def _skip(self, entry: AdmissionEntry) -> None:
        """Lost the race inside the cycle: tried again, with the next flavor if there is one."""
        text = "The workload no longer fits after others were admitted in the same cycle"
        self._remember(entry)
        self._skipped.append(entry.queue)
        self._preemption_skips[entry.queue.name] += bool(entry.victims)
        if entry.record.attempt.waits_for:
            # Its victims have made room, only not enough any more: what is left of that is not for those behind it.
            self._book(entry.queue, entry.usage)
        if entry.record.attempt.resumption.tried:
            self._queues.mark_dirty(entry.queue)
        self._say(entry.record, QuotaRejection(c.WAITING_FOR_QUOTA, tuple(entry.assignment.obstacles), text))

    def _reject(self, entry: AdmissionEntry) -> None:
        record, queue = entry.record, entry.queue
        self._remember(entry)
        whole = self._whole(entry) if not record.attempt.resumption.tried else entry.assignment
        if whole.mode is Mode.FIT:
            # With flavors that it had lost to others before: they are to be had again, so it is not inadmissible.
            self._skipped.append(queue)
            self._say(record, QuotaRejection(c.WAITING_FOR_QUOTA, tuple(entry.assignment.obstacles)))
            return
        if whole is not entry.assignment:
            # Under the present usage another search may go on elsewhere than the one that has just ended.
            record.set_resumption(record.attempt.resumption.after(whole.tried, queue.generation, self._number))
        rejection = QuotaRejection(whole.reason, tuple(whole.obstacles))
        record.give_up_victims()
        if record.attempt.resumption.tried:
            self._queues.mark_dirty(queue)
            self._say(record, rejection)
        elif queue.is_strict:
            self._say(record, rejection)
        else:
            self._mark_inadmissible(record, queue, rejection, wake_for(entry))

    def _whole(self, entry: AdmissionEntry) -> Assignment:
        """What is said of a search that went on behind some flavors must speak of those too."""
        assignment = entry.assignment
        if not assignment.resumed:
            return assignment
        return self._assigner.assign(entry.record, entry.queue, [one.count for one in assignment.pod_sets])

    def _remember(self, entry: AdmissionEntry) -> None:
        """Where the search ended."""
        record, tried = entry.record, entry.assignment.tried
        record.set_resumption(record.attempt.resumption.after(tried, entry.queue.generation, self._number))

    def _mark_inadmissible(
        self, record: WorkloadRecord, queue: QueueState, rejection: QuotaRejection, wake: WakeCondition
    ) -> None:
        group = record.group
        assert group is not None
        self._say(record, rejection)
        if record is not group.first:
            # A preemptor that no longer fits: those before it have not been nominated yet.
            self._queues.pending(queue).unstick()
            self._queues.mark_dirty(queue)
            return
        self._queues.pending(queue).mark_inadmissible(record, KnownRejection(rejection, wake))
        self._changed.add(id(queue.node.root))
        self._report_to_group(record, queue, rejection)
        if self._queues.pending(queue).may_have_more(queue.generation):
            self._queues.mark_dirty(queue)

    def _say(self, record: WorkloadRecord, rejection: QuotaRejection) -> None:
        record.reject(rejection)
        before = record.pending_reason[0]
        if self._queues.report_rejection(record, rejection) and rejection.reason != before:
            self._outbox.event(record, "Warning", rejection.reason, rejection.message)

    def _report_to_group(self, record: WorkloadRecord, queue: QueueState, rejection: QuotaRejection) -> None:
        """Those who joined since the last rejection wait for the same."""
        group = record.group
        assert group is not None
        for other in group.take_unreported():
            if other.rejection is not rejection:
                other.reject(rejection)
                self._queues.report_rejection(other, rejection)
        self._outbox.cluster_queue_changed(queue.name)
