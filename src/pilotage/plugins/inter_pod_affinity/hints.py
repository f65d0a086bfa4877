"""Which changes may help a pod that was rejected for its affinity or that of others.

Namespace selectors are judged by the labels of the namespaces, where kube-scheduler takes them for unlabelled: there, a
pod that is meant through its namespace alone requeues no pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pilotage.model import Node, Pod
from pilotage.model.policy import Namespace
from pilotage.plugins.inter_pod_affinity.term_groups import GroupedTerms, Subject, groups_of
from pilotage.plugins.inter_pod_affinity.terms import terms_of

_NO_LABELS: Mapping[str, str] = {}


class MalformedTerms(ValueError):
    """The terms of the waiting pod cannot be read."""


def pod_change_helps(pod: Pod, old: Pod | None, new: Pod | None, subject_of: Callable[[Pod], Subject]) -> bool:
    """A pod came (old is None), changed or went (new is None); one that has no node, not even a nominated one, does
    not count."""
    before, after = _if_on_node(old), _if_on_node(new)
    terms = _terms(pod)
    if before is None:
        return after is not None and terms.wants_near(subject_of(after))
    was = subject_of(before)
    if after is None:
        return terms.apart.means(was) or _terms(before).apart.means(subject_of(pod))
    now = subject_of(after)
    if terms.wants_near(now) and not terms.wants_near(was):
        return True
    return terms.apart.means(was) and not terms.apart.means(now)


def leaves_domain(keys: Iterable[str], old: Node | None, new: Node) -> bool:
    """A new node, or one that is not where it was by one of these keys: what keeps pods out may not reach there."""
    if old is None:
        return any(True for _ in keys)
    return any(old.labels[key] != new.labels.get(key) for key in _common(keys, old.labels))


def node_change_helps(pod: Pod, old: Node | None, new: Node) -> bool:
    """It has come into a domain that the pod may want, or out of one that it may not enter."""
    terms = _terms(pod)
    if old is None:
        return bool(terms.apart_keys) or not terms.near_keys.isdisjoint(new.labels)
    if any(old.labels.get(key) != new.labels[key] for key in _common(terms.near_keys, new.labels)):
        return True
    return leaves_domain(terms.apart_keys, old, new)


def namespace_change_helps(pod: Pod, old: Namespace | None, new: Namespace | None) -> bool:
    """Other pods may be meant by the pod's terms now; or the pod by theirs, if it is the namespace of the pod."""
    known = old if new is None else new
    before, after = (_NO_LABELS if one is None else one.labels for one in (old, new))
    if known is None or before == after:
        return False
    if known.name == pod.namespace:
        return True
    terms = terms_of(pod)
    return any(
        t.selects_namespace(before) != t.selects_namespace(after) for t in (*terms.required, *terms.required_anti)
    )


def _common(keys: Iterable[str], labels: Mapping[str, str]) -> Iterable[str]:
    """Those keys that are among the labels; of a long list of keys and a few labels, the labels are walked."""
    if isinstance(keys, frozenset) and len(keys) > len(labels):
        return (key for key in labels if key in keys)
    return (key for key in keys if key in labels)


def _terms(pod: Pod) -> GroupedTerms:
    problem = terms_of(pod).problem
    if problem:
        raise MalformedTerms(problem)
    return groups_of(pod)


def _if_on_node(pod: Pod | None) -> Pod | None:
    return pod if pod is not None and (pod.node_name or pod.status.nominated_node_name) else None
