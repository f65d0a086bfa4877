"""The (anti-)affinity terms of a pod, ready for use.

A term names pods by namespaces and labels, and a topology key: nodes with the same value of that label are one domain.
Terms are read once per spec and namespace. Equal terms of different pods compare equal, so that counts can
group them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec
from msgspec import Struct

from pilotage.model import Pod
from pilotage.model.label_matcher import LabelMatcher, matcher_of
from pilotage.model.pod_spec import PodAffinity, PodAffinityTerm
from pilotage.model.requirements import EXISTENCE_OPERATORS, SET_OPERATORS
from pilotage.model.selectors import LabelSelector

_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Pods, named by namespace and labels, in the domains of a topology key. Compared by content."""

    topology_key: str
    selection: bytes
    """Which pods are meant: equal for terms that differ in their topology key only."""
    namespaces: frozenset[str] = field(compare=False)
    namespace_selector: LabelSelector | None = field(compare=False)
    """Selects further namespaces; None selects none, an empty selector all."""
    selector: LabelSelector | None = field(compare=False)
    """None matches no pod at all."""
    matcher: LabelMatcher | None = field(compare=False)
    namespace_matcher: LabelMatcher | None = field(compare=False)
    """Both selectors, ready to be asked."""

    def selects(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Whether a pod in this namespace with these labels is meant."""
        if self.matcher is None:
            return False
        if namespace not in self.namespaces and not self.selects_namespace(namespace_labels):
            return False
        return self.matcher.matches(labels)

    def selects_namespace(self, labels: Mapping[str, str]) -> bool:
        """Whether a namespace with these labels is among those that are selected, not named."""
        return self.namespace_matcher is not None and self.namespace_matcher.matches(labels)

    @property
    def width(self) -> int:
        """How many entries it has: what it costs to keep."""
        matchers = (matcher.width for matcher in (self.matcher, self.namespace_matcher) if matcher is not None)
        return 1 + len(self.namespaces) + sum(matchers)


def make_term(
    topology_key: str,
    namespaces: Iterable[str],
    namespace_selector: LabelSelector | None,
    selector: LabelSelector | None,
) -> AffinityTerm:
    names = frozenset(namespaces)
    return AffinityTerm(
        topology_key,
        _encode((sorted(names), namespace_selector, selector)),
        names,
        namespace_selector,
        selector,
        None if selector is None else matcher_of(selector),
        None if namespace_selector is None else matcher_of(namespace_selector),
    )


WeightedTerm = tuple[AffinityTerm, int]


class PodTerms(Struct, frozen=True):
    """All terms of a pod."""

    required: tuple[AffinityTerm, ...] = ()
    required_anti: tuple[AffinityTerm, ...] = ()
    preferred: tuple[WeightedTerm, ...] = ()
    preferred_anti: tuple[WeightedTerm, ...] = ()
    problem: str = ""
    """What is malformed. A list of terms that contains a malformed one counts as empty."""


NO_TERMS = PodTerms()


def terms_of(pod: Pod) -> PodTerms:
    """The pod's terms; read once per spec and namespace."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    key = ("pod affinity terms", pod.namespace)
    known: PodTerms | None = pod.spec.memo.get(key)
    if known is None:
        known = pod.spec.memo[key] = _read(affinity.pod_affinity, affinity.pod_anti_affinity, pod.namespace)
    return known


def _read(affinity: PodAffinity | None, anti_affinity: PodAffinity | None, namespace: str) -> PodTerms:
    near, apart = affinity or PodAffinity(), anti_affinity or PodAffinity()
    lists = {
        "requiredAffinityTerms": [(term, 1) for term in near.required],
        "requiredAntiAffinityTerms": [(term, 1) for term in apart.required],
        "preferredAffinityTerms": [(weighted.pod_affinity_term, weighted.weight) for weighted in near.preferred],
        "preferredAntiAffinityTerms": [(weighted.pod_affinity_term, weighted.weight) for weighted in apart.preferred],
    }
    problems: list[str] = []
    read: dict[str, tuple[WeightedTerm, ...]] = {}
    for name, terms in lists.items():
        problem = next(filter(None, (_problem(term) for term, _ in terms)), None)
        if problem is not None:
            problems.append(f"{name}: {problem}")
        read[name] = () if problem else tuple((_term(term, namespace), weight) for term, weight in terms)
    return PodTerms(
        tuple(term for term, _ in read["requiredAffinityTerms"]),
        tuple(term for term, _ in read["requiredAntiAffinityTerms"]),
        read["preferredAffinityTerms"],
        read["preferredAntiAffinityTerms"],
        problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]" if problems else "",
    )


def _term(term: PodAffinityTerm, namespace: str) -> AffinityTerm:
    names_none = not term.namespaces and term.namespace_selector is None
    namespaces = (namespace,) if names_none else term.namespaces
    return make_term(term.topology_key, namespaces, term.namespace_selector, term.label_selector)


def _problem(term: PodAffinityTerm) -> str | None:
    problems = (_selector_problem(selector) for selector in (term.label_selector, term.namespace_selector))
    return next(filter(None, problems), None)


def _selector_problem(selector: LabelSelector | None) -> str | None:
    if selector is None:
        return None
    for expression in selector.match_expressions:
        # Gt and Lt are for nodes; the selectors of pods and namespaces do not have them.
        if expression.operator not in SET_OPERATORS + EXISTENCE_OPERATORS:
            return f'"{expression.operator}" is not a valid label selector operator'
    return selector.problem()
