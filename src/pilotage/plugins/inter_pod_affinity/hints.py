"""Which changes may help a pod that was refused for its affinity or that of others.

Namespace selectors are judged without knowing the labels of namespaces, as kube-scheduler does: a pod that is meant
through a selector of namespaces alone does not count here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pilotage.model import Node, Pod
from pilotage.plugins.inter_pod_affinity.terms import PodTerms, Term, terms_of


class MalformedTerms(ValueError):
    """The terms of the waiting pod cannot be read."""


def pod_change_helps(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """A pod came (old is None), changed or went (new is None); one that has no node, not even a promised one, does
    not count."""
    before, after = _if_on_node(old), _if_on_node(new)
    terms = _terms(pod)
    if before is None:
        return after is not None and _is_meant_by_all(terms.required, after)
    if after is None:
        return _is_meant_by_any(terms.required_anti, before) or _is_meant_by_any(_terms(before).required_anti, pod)
    if _is_meant_by_all(terms.required, after) and not _is_meant_by_all(terms.required, before):
        return True
    return _is_meant_by_any(terms.required_anti, before) and not _is_meant_by_any(terms.required_anti, after)


def leaves_domain(keys: Iterable[str], old: Node | None, new: Node) -> bool:
    """A new node, or one that is not where it was by one of these keys: what keeps pods out may not reach there."""
    if old is None:
        return any(True for _ in keys)
    return any(key in old.labels and old.labels[key] != new.labels.get(key) for key in keys)


def node_change_helps(pod: Pod, old: Node | None, new: Node) -> bool:
    """It has come into a domain that the pod may want, or out of one that it may not enter."""
    terms = _terms(pod)
    if old is None:
        return bool(terms.required_anti) or any(term.topology_key in new.labels for term in terms.required)
    for key in _keys(terms.required):
        if key in new.labels and old.labels.get(key) != new.labels[key]:
            return True
    return leaves_domain(_keys(terms.required_anti), old, new)


def _terms(pod: Pod) -> PodTerms:
    terms = terms_of(pod)
    if terms.problem:
        raise MalformedTerms(terms.problem)
    return terms


def _if_on_node(pod: Pod | None) -> Pod | None:
    return pod if pod is not None and (pod.node_name or pod.status.nominated_node_name) else None


def _is_meant_by_all(terms: Sequence[Term], pod: Pod) -> bool:
    """As affinity asks it: one pod must be what all terms mean."""
    return bool(terms) and all(term.selects_pod(pod) for term in terms)


def _is_meant_by_any(terms: Sequence[Term], pod: Pod) -> bool:
    """As anti-affinity asks it: one term is enough to keep pods apart."""
    return any(term.selects_pod(pod) for term in terms)


def _keys(terms: Iterable[Term]) -> list[str]:
    return list(dict.fromkeys(term.topology_key for term in terms))
