"""Many terms asked at once: is a pod meant by one of them, by all of them, and what do those that mean it weigh.

Terms that mean the same pods are one. Of the others only those are tried that want a label which the pod has, so that
a pod with thousands of terms costs those who are compared with it about as much as one with a few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from pilotage.model import Pod
from pilotage.model.label_matcher import SelectorIndex
from pilotage.plugins.inter_pod_affinity.terms import NO_TERMS, AffinityTerm, PodTerms, terms_of

_WORTH_AN_INDEX = 8
_NO_LABELS: Mapping[str, str] = {}


class Subject(NamedTuple):
    """A pod as terms see it."""

    namespace: str
    labels: Mapping[str, str]
    namespace_labels: Mapping[str, str] = _NO_LABELS


class WeighedTerm(Struct, frozen=True):
    """What a pod that is meant by the term weighs."""

    term: AffinityTerm
    weight: int = 0
    required: int = 0
    """How many times it weighs what the configuration gives to required terms, besides its own weight."""
    is_preferred: bool = False
    """It has a weight of its own, even if several have cancelled each other."""

    def total(self, required_weight: int) -> int:
        return self.weight + self.required * required_weight

    def is_idle(self, required_weight: int) -> bool:
        return not self.is_preferred and not (self.required and required_weight)

    def and_also(self, other: WeighedTerm) -> WeighedTerm:
        """Both in one, for terms that mean the same pods."""
        return WeighedTerm(
            self.term,
            self.weight + other.weight,
            self.required + other.required,
            self.is_preferred or other.is_preferred,
        )


class TermGroup:
    """Terms of one pod. Compared by content; the hash is worked out once."""

    __slots__ = ("_hash", "_identity", "_index", "members")

    def __init__(self, terms: Iterable[WeighedTerm]) -> None:
        folded: dict[bytes, WeighedTerm] = {}
        for each in terms:
            known = folded.get(each.term.selection)
            folded[each.term.selection] = each if known is None else known.and_also(each)
        self.members = tuple(folded.values())
        self._identity = tuple((selection, each.weight, each.required) for selection, each in folded.items())
        self._hash = hash(self._identity)
        self._index: SelectorIndex[WeighedTerm] | None = None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TermGroup) and self._hash == other._hash and self._identity == other._identity

    @property
    def width(self) -> int:
        return sum(each.term.width for each in self.members)

    def means(self, pod: Subject) -> bool:
        """Whether the pod is meant by one of the terms."""
        return any(each.term.selects(*pod) for each in self._candidates(pod.labels))

    def weight(self, pod: Subject, required_weight: int = 0) -> int | None:
        """What the terms that mean the pod weigh together; None if none does that weighs anything."""
        found = [
            each.total(required_weight)
            for each in self._candidates(pod.labels)
            if not each.is_idle(required_weight) and each.term.selects(*pod)
        ]
        return sum(found) if found else None

    def _candidates(self, labels: Mapping[str, str]) -> Iterable[WeighedTerm]:
        if len(self.members) <= _WORTH_AN_INDEX:
            return self.members
        if self._index is None:
            self._index = SelectorIndex(
                (each.term.matcher, each) for each in self.members if each.term.matcher is not None
            )
        return self._index.candidates(labels)


class GroupedTerms:
    """The terms of a pod, in the groups in which others ask them."""

    def __init__(self, terms: PodTerms) -> None:
        self._terms = terms
        self.near_keys = frozenset(term.topology_key for term in terms.required)
        self.apart_keys = frozenset(term.topology_key for term in terms.required_anti)

    @cached_property
    def repelling(self) -> tuple[tuple[str, TermGroup], ...]:
        """By topology key, the required anti-affinity: the pod keeps whom it means out of its domain."""
        return tuple(by_key(WeighedTerm(term, required=1) for term in self._terms.required_anti))

    @cached_property
    def attracting(self) -> tuple[tuple[str, TermGroup], ...]:
        """By topology key, everything else: what draws others to the pod or pushes them away."""
        return tuple(by_key(_attracting(self._terms)))

    @cached_property
    def near(self) -> tuple[AffinityTerm, ...]:
        """The required affinity, whatever the topology key; terms that mean the same pods once."""
        return distinct(self._terms.required)

    @cached_property
    def apart(self) -> TermGroup:
        """The required anti-affinity, whatever the topology key."""
        if len(self.apart_keys) == 1:
            return self.repelling[0][1]
        return TermGroup(WeighedTerm(term, required=1) for term in distinct(self._terms.required_anti))

    def wants_near(self, pod: Subject) -> bool:
        """As affinity asks it: one pod must be what all terms mean."""
        return bool(self.near) and all(term.selects(*pod) for term in self.near)


_NO_GROUPS = GroupedTerms(NO_TERMS)


def groups_of(pod: Pod) -> GroupedTerms:
    """The pod's terms in groups; grouped once per spec and namespace."""
    terms = terms_of(pod)
    if terms is NO_TERMS:
        return _NO_GROUPS
    key = ("pod affinity groups", pod.namespace)
    known: GroupedTerms | None = pod.spec.memo.get(key)
    if known is None:
        known = pod.spec.memo[key] = GroupedTerms(terms)
    return known


def _attracting(terms: PodTerms) -> Iterator[WeighedTerm]:
    for term in terms.required:
        yield WeighedTerm(term, required=1)
    for term, weight in terms.preferred:
        yield WeighedTerm(term, weight, is_preferred=True)
    for term, weight in terms.preferred_anti:
        yield WeighedTerm(term, -weight, is_preferred=True)


def distinct(terms: Iterable[AffinityTerm]) -> tuple[AffinityTerm, ...]:
    """One of those that mean the same pods."""
    return tuple({term.selection: term for term in terms}.values())


def by_key(terms: Iterable[WeighedTerm]) -> Iterator[tuple[str, TermGroup]]:
    """The terms in a group for each topology key; keys with the same terms share theirs."""
    found: dict[str, list[WeighedTerm]] = {}
    for each in terms:
        found.setdefault(each.term.topology_key, []).append(each)
    known: dict[TermGroup, TermGroup] = {}
    singles: dict[tuple[bytes, int, int], TermGroup] = {}
    for key, members in found.items():
        if len(members) > 1:
            group = TermGroup(members)
            yield key, known.setdefault(group, group)
            continue
        only = members[0]
        identity = (only.term.selection, only.weight, only.required)
        if identity not in singles:
            singles[identity] = TermGroup(members)
        yield key, singles[identity]
