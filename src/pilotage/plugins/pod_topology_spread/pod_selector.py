"""Selectors in a form that can be compared, and the question how many pods a selector matches.

The selectors of a constraint come from several places: its own, the pod's labels (matchLabelKeys), services and
controllers. They are brought to one form, so that pods which ask the same question share one maintained answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pilotage.api import PodClass
from pilotage.model import Pod
from pilotage.model.label_matcher import LabelMatcher
from pilotage.model.selectors import LabelSelector, LabelSelectorRequirement

Pairs = tuple[tuple[str, str], ...]

_WIDEST_KEPT = 256


class BadSelector(ValueError):
    """A selector that Kubernetes would not accept."""


@dataclass(frozen=True, slots=True)
class PodSelector:
    """All pairs and all expressions must hold. Without any it is empty and matches every pod."""

    pairs: Pairs = ()
    expressions: tuple[LabelSelectorRequirement, ...] = ()
    matcher: LabelMatcher = field(init=False, compare=False, repr=False)
    is_contradiction: bool = field(init=False, compare=False, repr=False)
    """It wants two values of one label."""

    def __post_init__(self) -> None:
        pairs = dict(self.pairs)
        object.__setattr__(self, "is_contradiction", len(pairs) < len(self.pairs))
        object.__setattr__(self, "matcher", LabelMatcher(pairs, self.expressions))

    def matches(self, labels: Mapping[str, str]) -> bool:
        return not self.is_contradiction and self.matcher.matches(labels)

    @property
    def is_empty(self) -> bool:
        return not self.pairs and not self.expressions

    @property
    def is_wide(self) -> bool:
        """Whether it has so many entries that it is not to be kept for longer than needed."""
        return self.matcher.width > _WIDEST_KEPT

    def narrowed(self, pairs: Iterable[tuple[str, str]]) -> PodSelector:
        """The same selector with more labels to match."""
        return PodSelector(sorted_pairs((*self.pairs, *pairs)), self.expressions)


def comparable(selector: LabelSelector) -> PodSelector:
    """The selector in comparable form; BadSelector if it is malformed."""
    problem = selector.problem()
    if problem is not None:
        raise BadSelector(problem)
    return PodSelector(sorted_pairs(selector.match_labels.items()), selector.match_expressions)


def sorted_pairs(pairs: Iterable[tuple[str, str]]) -> Pairs:
    return tuple(sorted(set(pairs)))


class Census:
    """Which pods count for a constraint: those of the namespace that match and are not being deleted.

    It is the question that `handle.count_pods` is asked, and its own key. It is looked up for every pod, so its hash
    is worked out once.
    """

    __slots__ = ("_hash", "namespace", "selector")

    def __init__(self, namespace: str, selector: PodSelector) -> None:
        self.namespace = namespace
        self.selector = selector
        self._hash = hash((Census, namespace, selector))

    def __call__(self, pods: PodClass) -> bool:
        return not pods.terminating and pods.namespace == self.namespace and self.selector.matches(pods.labels)

    def count(self, pods: Iterable[Pod]) -> int:
        """How many of these pods count."""
        mine = (pod for pod in pods if pod.namespace == self.namespace and not pod.is_terminating)
        return sum(self.selector.matches(pod.labels) for pod in mine)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Census) and self.namespace == other.namespace and self.selector == other.selector
