"""What hints need to know of the constraints of a waiting pod.

Thousands of pods may wait, with a set of labels each, and every event is compared with each of them. So this is read
once per spec: what depends on the pod's own labels (matchLabelKeys) is looked at when a pod is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from pilotage.model.label_matcher import SelectorIndex
from pilotage.plugins.pod_topology_spread.pod_selector import PodSelector


class Rule(Struct, frozen=True):
    """One constraint, without the labels of the pod."""

    topology_key: str
    selector: PodSelector | None
    """None matches no pod at all."""
    match_label_keys: tuple[str, ...] = ()
    """Pods count only if they have the same values of these labels as the pod, as far as the pod has them."""
    honors_affinity: bool = True
    honors_taints: bool = False


_Choice = tuple[PodSelector, tuple[str, ...]]


class Rules:
    """The constraints of a spec."""

    __slots__ = ("_choices", "honors_affinity", "honors_taints", "keys")

    def __init__(self, rules: Iterable[Rule]) -> None:
        listed = tuple(rules)
        self.keys = frozenset(rule.topology_key for rule in listed)
        self.honors_affinity = any(rule.honors_affinity for rule in listed)
        self.honors_taints = any(rule.honors_taints for rule in listed)
        distinct = {(r.selector, r.match_label_keys): r.selector.matcher for r in listed if r.selector is not None}
        self._choices = SelectorIndex((matcher, choice) for choice, matcher in distinct.items())

    def matching(self, own: Mapping[str, str], labels: Mapping[str, str]) -> set[_Choice]:
        """By which of its constraints a pod with the labels `own` counts one that has `labels`."""
        return {
            choice
            for choice in self._choices.candidates(labels)
            if choice[0].matches(labels) and all(own[key] == labels.get(key) for key in choice[1] if key in own)
        }
