"""What the terms of the pod that is to be placed ask of the pods on the nodes.

Each term becomes a question about pod classes (`handle.count_pods`). Pods of one workload ask the same questions, so
the counts are maintained between them. Namespace selectors are resolved to names first: a pod class knows its
namespace but not the labels of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pilotage.api import PodClass
from pilotage.model import Pod
from pilotage.plugins.inter_pod_affinity.namespaces import Namespaces
from pilotage.plugins.inter_pod_affinity.terms import NO_TERMS, PodTerms, Term, make_term, terms_of

_ANY_VERSION = 0


class Question:
    """Which pods are meant by all, or by at least one, of some terms. It is its own key for `count_pods`."""

    __slots__ = ("_hash", "_needs_all", "_terms")

    def __init__(self, terms: Iterable[Term], *, needs_all: bool) -> None:
        self._terms = tuple(terms)
        self._needs_all = needs_all
        self._hash = hash((Question, self._terms, needs_all))

    def __call__(self, pods: PodClass | Pod) -> bool:
        combine = all if self._needs_all else any
        return combine(term.selects(pods.namespace, pods.labels, {}) for term in self._terms)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Question) and (self._needs_all, self._terms) == (other._needs_all, other._terms)


@dataclass(frozen=True, slots=True)
class Wish:
    """A preferred term: pods that are wanted close by, or (negative weight) far away."""

    topology_key: str
    weight: int
    pods: Question


@dataclass(frozen=True, slots=True)
class Incoming:
    """The questions of a pod."""

    near: Question | None = None
    """Pods that are meant by all required affinity terms."""
    near_keys: tuple[str, ...] = ()
    apart: tuple[tuple[str, Question], ...] = ()
    """By topology key, pods that are meant by a required anti-affinity term with that key."""
    wishes: tuple[Wish, ...] = ()

    @property
    def requires_nothing(self) -> bool:
        return self.near is None and not self.apart


_NOTHING = Incoming()


def incoming(pod: Pod, namespaces: Namespaces) -> Incoming:
    """What the pod asks; worked out once per spec, and again when namespaces matter and have changed."""
    terms = terms_of(pod)
    if terms is NO_TERMS:
        return _NOTHING
    key = ("pod affinity questions", pod.namespace)
    known: tuple[int, Incoming] | None = pod.spec.memo.get(key)
    if known is not None and known[0] in (_ANY_VERSION, namespaces.version):
        return known[1]
    asked = _questions(terms, namespaces)
    pod.spec.memo[key] = (namespaces.version if _depends_on_namespaces(terms) else _ANY_VERSION, asked)
    return asked


def _questions(terms: PodTerms, namespaces: Namespaces) -> Incoming:
    near = [_resolved(term, namespaces) for term in terms.required]
    apart = [_resolved(term, namespaces) for term in terms.required_anti]
    weighted = [*terms.preferred, *((term, -weight) for term, weight in terms.preferred_anti)]
    return Incoming(
        Question(near, needs_all=True) if near else None,
        _keys(near),
        tuple((key, Question((t for t in apart if t.topology_key == key), needs_all=False)) for key in _keys(apart)),
        tuple(
            Wish(term.topology_key, weight, Question([_resolved(term, namespaces)], needs_all=True))
            for term, weight in weighted
        ),
    )


def _keys(terms: Iterable[Term]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(term.topology_key for term in terms))


def _resolved(term: Term, namespaces: Namespaces) -> Term:
    """The term with the namespaces by name that its selector selects now; selecting all needs no names."""
    selector = term.namespace_selector
    if selector is None or selector.is_empty:
        return term
    names = term.namespaces | namespaces.selected_by(selector)
    return make_term(term.topology_key, names, None, term.selector)


def _depends_on_namespaces(terms: PodTerms) -> bool:
    preferred = (term for term, _ in (*terms.preferred, *terms.preferred_anti))
    selectors = (term.namespace_selector for term in (*terms.required, *terms.required_anti, *preferred))
    return any(selector is not None and not selector.is_empty for selector in selectors)
