"""The distinct terms of the pods on the nodes, and which of them mean a given pod.

A workload of a thousand replicas has one set of terms: a group of terms is kept once, with the number of its pods per
node. To find the groups that mean a pod, not all are tried. A group is filed under addresses, each a namespace together
with a label that a pod must have to be meant; a pod is then looked up at the few addresses that follow from its labels.

What was found for a pod is remembered. Groups that come later are tried when such a pod comes again, so that a pod that
adds terms leaves what is known of the others. Groups of topology keys that no node has mean nothing until one gets
the key: they are not filed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

from pilotage.api import Budget
from pilotage.model.label_matcher import Address as LabelAddress
from pilotage.plugins.inter_pod_affinity.tallies import Meant, TermEntry
from pilotage.plugins.inter_pod_affinity.term_groups import Subject, TermGroup
from pilotage.plugins.inter_pod_affinity.terms import AffinityTerm

Address = tuple[str | None, LabelAddress | None]
"""Namespace and label; None stands for any."""

_KEPT_ANSWERS = 4096
_MOST_LABELS = 256
"""Nothing is remembered for pods with more labels."""
_MOST_NAMESPACES = 8
_MOST_CHOICES = 8


Judge = Callable[[TermGroup, Subject, int], int | None]
"""What a pod weighs to a group, given the weight of required terms; None if it is not meant."""


_NO_TERMS = TermGroup(())


class _Answer:
    """The groups that mean a pod, among the first `judged` that were filed."""

    __slots__ = ("departures", "found", "judged", "pod")

    def __init__(self, pod: Subject, found: Meant, judged: int, departures: int) -> None:
        self.pod = pod
        self.found = found
        self.judged = judged
        self.departures = departures


class TermBook:
    """Groups of terms of one role, e.g. all required anti-affinity terms."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._entries: dict[str, dict[TermGroup, TermEntry]] = {}
        """By topology key."""
        self._addresses: dict[TermEntry, list[Address]] = {}
        self._filed: dict[Address, dict[TermEntry, None]] = {}
        self._in_order: list[TermEntry] = []
        """Those that were filed since answers were last given up, in the order of their coming."""
        self._departures = 0
        self._answers: dict[tuple[str, Mapping[str, str], int], _Answer] = {}

    def entry(self, topology_key: str, group: TermGroup, *, is_in_use: bool) -> TermEntry:
        """The entry of this group; made if there is none yet. `is_in_use`: some node has the topology key."""
        entries = self._entries.setdefault(topology_key, {})
        known = entries.get(group)
        if known is None:
            known = entries[group] = TermEntry(topology_key, group)
            if is_in_use:
                self._file(known)
        return known

    def entries(self) -> Iterator[TermEntry]:
        return (entry for entries in self._entries.values() for entry in entries.values())

    def remove(self, entry: TermEntry) -> None:
        """No pod has these terms any more."""
        entries = self._entries[entry.topology_key]
        del entries[entry.group]
        if not entries:
            del self._entries[entry.topology_key]
        self._unfile(entry)
        # Answers that were given may name the entry for a while; its terms need not live as long.
        entry.group = _NO_TERMS

    def key_appeared(self, topology_key: str) -> None:
        """A node has this key, the first one."""
        for entry in self._entries.get(topology_key, {}).values():
            self._file(entry)

    def key_vanished(self, topology_key: str) -> None:
        """No node has this key any more."""
        for entry in self._entries.get(topology_key, {}).values():
            self._unfile(entry)

    def matching(self, pod: Subject, required_weight: int, budget: Budget) -> Meant:
        """The groups that mean a pod, each with what the pod weighs to it."""
        if not self._filed:
            return ()
        key = (pod.namespace, pod.labels, required_weight)
        known = self._answers.get(key)
        if known is None or known.pod.namespace_labels is not pod.namespace_labels:
            found = dict(self._judged(self._candidates(pod, budget), pod, required_weight, budget))
            known = _Answer(pod, tuple(found.items()), len(self._in_order), self._departures)
            if len(pod.labels) <= _MOST_LABELS:
                self._remember(key, known)
        elif known.judged < len(self._in_order) or known.departures != self._departures:
            self._bring_up_to_date(known, required_weight, budget)
        return known.found

    def _bring_up_to_date(self, known: _Answer, required_weight: int, budget: Budget) -> None:
        found = {entry: weight for entry, weight in known.found if entry in self._addresses}
        news = (entry for entry in self._in_order[known.judged :] if entry in self._addresses)
        found.update(self._judged(news, known.pod, required_weight, budget))
        known.found = tuple(found.items())
        known.judged, known.departures = len(self._in_order), self._departures

    def _judged(
        self, entries: Iterable[TermEntry], pod: Subject, required_weight: int, budget: Budget
    ) -> Iterator[tuple[TermEntry, int]]:
        for entry in entries:
            budget.spend(len(entry.group.members))
            weight = self._judge(entry.group, pod, required_weight)
            if weight is not None:
                yield entry, weight

    def _remember(self, key: tuple[str, Mapping[str, str], int], answer: _Answer) -> None:
        if len(self._answers) >= _KEPT_ANSWERS:
            self._answers.clear()
        self._answers[key] = answer

    def _candidates(self, pod: Subject, budget: Budget) -> Iterator[TermEntry]:
        """Groups at the addresses of the pod."""
        filed = self._filed
        for where in (pod.namespace, None):
            yield from filed.get((where, None), ())
            for label in pod.labels.items():
                budget.spend()
                yield from filed.get((where, label), ())
                yield from filed.get((where, (label[0], None)), ())

    # --- addresses ---------------------------------------------------------------------------------------------

    def _file(self, entry: TermEntry) -> None:
        if len(self._in_order) > 2 * len(self._addresses) + _KEPT_ANSWERS:
            self._in_order.clear()
            self._answers.clear()
        self._in_order.append(entry)
        addresses = {address for each in entry.group.members for address in self._addresses_for(each.term)}
        self._addresses[entry] = list(addresses)
        for address in addresses:
            self._filed.setdefault(address, {})[entry] = None

    def _unfile(self, entry: TermEntry) -> None:
        for address in self._addresses.pop(entry, ()):
            filed = self._filed[address]
            del filed[entry]
            if not filed:
                del self._filed[address]
        self._departures += 1

    def _addresses_for(self, term: AffinityTerm) -> Iterable[Address]:
        if term.matcher is None:
            return ()
        is_anywhere = term.namespace_matcher is not None or len(term.namespaces) > _MOST_NAMESPACES
        namespaces = (None,) if is_anywhere else sorted(term.namespaces)
        choices = [
            [(where, label) for where in namespaces for label in labels]
            for labels in islice(term.matcher.choices(), _MOST_CHOICES)
        ]
        if not choices:
            return [(where, None) for where in namespaces]
        if len(choices) == 1:
            return choices[0]
        # Of several labels that a pod must have, the one that separates most terms.
        return min(choices, key=lambda addresses: sum(len(self._filed.get(a, ())) for a in addresses))

    def check(self) -> None:
        """Verify the invariants; for tests."""
        entries = set(self.entries())
        assert set(self._addresses) <= entries
        assert all(entry.on_node and min(entry.on_node.values()) > 0 for entry in entries)
        filed = {(address, entry) for address, entries in self._filed.items() for entry in entries}
        assert filed == {(address, entry) for entry, addresses in self._addresses.items() for address in addresses}
