"""What the terms of the pod that is to be placed ask of the pods on the nodes.

Terms become questions about pod classes. Pods of one workload ask the same questions, so the counts are maintained
between them (`handle.count_pods`); a question with very many terms is answered anew each time it is asked
(`handle.weigh_pods`), so that no other pod bears its cost. Namespace selectors are resolved to names first: a pod class
knows its namespace but not the labels of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from pilotage.api import Budget, PodClass
from pilotage.model import Pod
from pilotage.plugins.inter_pod_affinity.namespaces import Namespaces
from pilotage.plugins.inter_pod_affinity.term_groups import Subject, TermGroup, WeighedTerm, by_key
from pilotage.plugins.inter_pod_affinity.terms import NO_TERMS, AffinityTerm, PodTerms, make_term, terms_of

_ANY_VERSION = 0
_WIDEST_KEPT = 256
"""Questions with more entries are not kept up to date."""


class PodSelection:
    """Which pods are meant by all, or by at least one, of some terms. It is its own key for `count_pods`."""

    __slots__ = ("_hash", "_needs_all", "_terms", "is_wide")

    def __init__(self, terms: TermGroup, *, needs_all: bool = False) -> None:
        self._terms = terms
        self._needs_all = needs_all
        self._hash = hash((terms, needs_all))
        self.is_wide = terms.width > _WIDEST_KEPT

    def __call__(self, pods: PodClass | Pod) -> bool:
        subject = Subject(pods.namespace, pods.labels)
        if self._needs_all:
            return all(each.term.selects(*subject) for each in self._terms.members)
        return self._terms.means(subject)

    def __len__(self) -> int:
        return len(self._terms.members)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PodSelection) and (self._needs_all, self._terms) == (other._needs_all, other._terms)


class PreferredTerm(Struct, frozen=True):
    """A preferred term: pods that are wanted close by, or (negative weight) far away."""

    weight: int
    pods: PodSelection


class WidePreferredTerms(Struct, frozen=True):
    """Very many preferred terms with one topology key."""

    terms: TermGroup

    def __call__(self, pods: PodClass) -> int:
        return self.terms.weight(Subject(pods.namespace, pods.labels)) or 0

    def __len__(self) -> int:
        return len(self.terms.members)


class Incoming(Struct, frozen=True):
    """The questions of a pod."""

    near: PodSelection | None = None
    """Pods that are meant by all required affinity terms."""
    near_keys: tuple[str, ...] = ()
    apart: tuple[tuple[str, PodSelection], ...] = ()
    """By topology key, pods that are meant by a required anti-affinity term with that key."""
    preferred: tuple[tuple[str, PreferredTerm | WidePreferredTerms], ...] = ()
    """By topology key; a key may occur several times."""

    @property
    def requires_nothing(self) -> bool:
        return self.near is None and not self.apart


_NOTHING = Incoming()


def incoming(pod: Pod, namespaces: Namespaces, budget: Budget) -> Incoming:
    """What the pod asks; worked out once per spec, and again when namespaces matter and have changed."""
    terms = terms_of(pod)
    if terms is NO_TERMS:
        return _NOTHING
    key = ("pod affinity questions", pod.namespace)
    known: tuple[int, Incoming] | None = pod.spec.memo.get(key)
    if known is not None and known[0] in (_ANY_VERSION, namespaces.version):
        return known[1]
    asked = _questions(terms, _Resolver(namespaces, budget))
    pod.spec.memo[key] = (namespaces.version if _depends_on_namespaces(terms) else _ANY_VERSION, asked)
    return asked


class _Resolver:
    """Finds the namespaces that selectors select now."""

    def __init__(self, namespaces: Namespaces, budget: Budget) -> None:
        self._namespaces = namespaces
        self._budget = budget

    def resolved(self, term: AffinityTerm) -> AffinityTerm:
        """The term with the namespaces by name that its selector selects; selecting all needs no names."""
        self._budget.spend(term.width)
        selector, matcher = term.namespace_selector, term.namespace_matcher
        if selector is None or matcher is None or selector.is_empty:
            return term
        self._budget.spend(len(self._namespaces))
        names = term.namespaces | self._namespaces.selected_by(matcher)
        return make_term(term.topology_key, names, None, term.selector)


def _questions(terms: PodTerms, resolver: _Resolver) -> Incoming:
    near = [resolver.resolved(term) for term in terms.required]
    apart = by_key(WeighedTerm(resolver.resolved(term), 1) for term in terms.required_anti)
    weighted = [*terms.preferred, *((term, -weight) for term, weight in terms.preferred_anti)]
    groups = by_key(WeighedTerm(resolver.resolved(term), weight, is_preferred=True) for term, weight in weighted)
    made: dict[TermGroup, PodSelection] = {}
    return Incoming(
        PodSelection(TermGroup(WeighedTerm(term, 1) for term in near), needs_all=True) if near else None,
        tuple(dict.fromkeys(term.topology_key for term in near)),
        tuple((key, made.get(group) or made.setdefault(group, PodSelection(group))) for key, group in apart),
        tuple((key, term) for key, group in groups for term in _preferred(group)),
    )


def _preferred(group: TermGroup) -> Iterator[PreferredTerm | WidePreferredTerms]:
    if group.width > _WIDEST_KEPT:
        yield WidePreferredTerms(group)
    else:
        yield from (
            PreferredTerm(each.weight, PodSelection(TermGroup([WeighedTerm(each.term, 1)]))) for each in group.members
        )


def _depends_on_namespaces(terms: PodTerms) -> bool:
    preferred = (term for term, _ in (*terms.preferred, *terms.preferred_anti))
    selectors = (term.namespace_selector for term in (*terms.required, *terms.required_anti, *preferred))
    return any(selector is not None and not selector.is_empty for selector in selectors)
