"""Which changes may help a pod that was refused for its affinity or that of others.

Namespace selectors are judged without knowing the labels of namespaces, as kube-scheduler does: a pod that is meant
through a selector of namespaces alone does not count here.
"""

from __future__ import annotations

from collections.abc import Iterable

from pilotage.model import Node, Pod
from pilotage.plugins.inter_pod_affinity.terms import PodTerms, Term, terms_of


class MalformedTerms(ValueError):
    """The terms of the waiting pod cannot be read."""


def pod_arrival_helps(pod: Pod, added: Pod) -> bool:
    """It is what the pod wants to be near to."""
    return bool(added.node_name) and _is_meant_by_all(_terms(pod).required, added)


def pod_change_helps(pod: Pod, old: Pod, new: Pod) -> bool:
    """It has become what the pod wants to be near to, or is no longer what the pod stays away from."""
    if not old.node_name or not new.node_name:
        return False
    terms = _terms(pod)
    if _is_meant_by_all(terms.required, new) and not _is_meant_by_all(terms.required, old):
        return True
    return _is_meant_by_all(terms.required_anti, old) and not _is_meant_by_all(terms.required_anti, new)


def pod_departure_helps(pod: Pod, removed: Pod) -> bool:
    """It was what the pod stays away from, or kept the pod away itself."""
    if not removed.node_name:
        return False
    if _is_meant_by_all(_terms(pod).required_anti, removed):
        return True
    return _is_meant_by_all(_terms(removed).required_anti, pod)


def node_change_helps(pod: Pod, old: Node | None, new: Node) -> bool:
    """It has come into a domain that the pod may want, or out of one that it may not enter."""
    terms = _terms(pod)
    if old is None:
        return bool(terms.required_anti) or any(term.topology_key in new.labels for term in terms.required)
    for key in _keys(terms.required):
        if key in new.labels and old.labels.get(key) != new.labels[key]:
            return True
    return any(key in old.labels and old.labels[key] != new.labels.get(key) for key in _keys(terms.required_anti))


def _terms(pod: Pod) -> PodTerms:
    terms = terms_of(pod)
    if terms.problem:
        raise MalformedTerms(terms.problem)
    return terms


def _is_meant_by_all(terms: tuple[Term, ...], pod: Pod) -> bool:
    return bool(terms) and all(term.selects_pod(pod) for term in terms)


def _keys(terms: Iterable[Term]) -> list[str]:
    return list(dict.fromkeys(term.topology_key for term in terms))
