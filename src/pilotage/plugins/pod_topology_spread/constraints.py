"""The constraints of a pod, ready for use: its own, or else the defaults with a selector deduced for the pod.

Constraints are worked out once per kind of pod (equal spec, namespace and labels) and remembered.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Final

from msgspec import Struct

from pilotage.api import Budget, Handle
from pilotage.api.budget import UNLIMITED
from pilotage.model import Pod
from pilotage.model.pod_spec import TopologySpreadConstraint
from pilotage.plugins.args import PodTopologySpreadArgs
from pilotage.plugins.pod_topology_spread.deduced_selectors import DeducedSelectors
from pilotage.plugins.pod_topology_spread.pod_selector import BadSelector, Census, PodSelector, comparable
from pilotage.plugins.pod_topology_spread.rules import Rule, Rules

HARD: Final = "DoNotSchedule"
SOFT: Final = "ScheduleAnyway"
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"

_SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=SOFT, max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable=SOFT, max_skew=5),
)
_KEPT_CONSTRAINTS = 8192
"""So many are kept, of all kinds of pods together."""
_STEPS = 8
"""About what it takes to make one."""


class SpreadConstraint(Struct, frozen=True):
    """One constraint of one kind of pod."""

    topology_key: str
    max_skew: int
    min_domains: int
    honors_affinity: bool
    """Only nodes that the pod's node selector and affinity allow are counted."""
    honors_taints: bool
    """Only nodes whose taints the pod tolerates are counted."""
    selector: PodSelector | None
    """None matches no pod at all."""
    census: Census | None
    """The pods on the nodes that count; None if there cannot be any."""
    self_match: int
    """1 if the pod itself would count, else 0."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.selector is not None and self.selector.matches(labels)


class Constraints(tuple[SpreadConstraint, ...]):
    """The constraints of one kind of pod, in their order."""

    @cached_property
    def keys(self) -> frozenset[str]:
        return frozenset(constraint.topology_key for constraint in self)


_NO_CONSTRAINTS = Constraints()


class ConstraintSource:
    """Finds the constraints of pods."""

    def __init__(self, handle: Handle, args: PodTopologySpreadArgs) -> None:
        self._is_system_defaulted = args.defaulting_type == "System"
        templates = _SYSTEM_DEFAULTS if self._is_system_defaulted else args.default_constraints
        self._defaults = {
            action: tuple(template for template in templates if template.when_unsatisfiable == action)
            for action in (HARD, SOFT)
        }
        self._deduced = DeducedSelectors(handle)
        self._known: dict[Hashable, Constraints] = {}
        self._kept = 0

    @property
    def has_defaults(self) -> bool:
        return any(self._defaults.values())

    @property
    def has_hard_defaults(self) -> bool:
        return bool(self._defaults[HARD])

    def of(self, pod: Pod, action: str, budget: Budget) -> Constraints:
        """The pod's constraints of this kind (HARD or SOFT); BadSelector if one of them is malformed."""
        if pod.spec.topology_spread_constraints:
            return self._own(pod, action, budget)
        templates = self._defaults[action]
        if not templates:
            return _NO_CONSTRAINTS
        selector = self._deduced.selector_of(pod)
        return _NO_CONSTRAINTS if selector.is_empty else self._default(pod, action, selector)

    def rules(self, pod: Pod, action: str) -> Rules:
        """The same for hints; BadSelector if one of them is malformed."""
        spec = pod.spec
        if not spec.topology_spread_constraints:
            return Rules(_rule(constraint) for constraint in self.of(pod, action, UNLIMITED))
        key = ("topology spread rules", action)
        known: Rules | None = spec.memo.get(key)
        if known is None:
            wanted = [c for c in spec.topology_spread_constraints if c.when_unsatisfiable == action]
            known = spec.memo[key] = Rules(_own_rule(template) for template in wanted)
        return known

    def requires_all_keys(self, pod: Pod) -> bool:
        """Whether nodes that lack one of the topology keys are left out of scoring. By default they are not."""
        return bool(pod.spec.topology_spread_constraints) or not self._is_system_defaulted

    def _own(self, pod: Pod, action: str, budget: Budget) -> Constraints:
        key = (action, pod.spec, pod.namespace, pod.labels)
        known = self._known.get(key)
        if known is None:
            wanted = [c for c in pod.spec.topology_spread_constraints if c.when_unsatisfiable == action]
            known = Constraints(_own_constraint(template, pod, budget) for template in wanted)
            self._remember(key, known)
        return known

    def _default(self, pod: Pod, action: str, selector: PodSelector) -> Constraints:
        key = (action, selector, pod.namespace, pod.labels)
        known = self._known.get(key)
        if known is None:
            known = Constraints(_constraint(template, pod, selector) for template in self._defaults[action])
            self._remember(key, known)
        return known

    def _remember(self, key: Hashable, constraints: Constraints) -> None:
        if self._kept >= _KEPT_CONSTRAINTS:
            self._known.clear()
            self._kept = 0
        self._known[key] = constraints
        self._kept += 1 + len(constraints)


def _constraint(template: TopologySpreadConstraint, pod: Pod, selector: PodSelector | None) -> SpreadConstraint:
    # An empty selector matches the pod itself, but by a rule of its own no pod on a node is counted for it.
    counts_pods = selector is not None and not selector.is_empty
    return SpreadConstraint(
        topology_key=template.topology_key,
        max_skew=template.max_skew,
        min_domains=1 if template.min_domains is None else template.min_domains,
        honors_affinity=(template.node_affinity_policy or "Honor") == "Honor",
        honors_taints=template.node_taints_policy == "Honor",
        selector=selector,
        census=Census(pod.namespace, selector) if selector is not None and counts_pods else None,
        self_match=int(selector is not None and selector.matches(pod.labels)),
    )


def _own_constraint(template: TopologySpreadConstraint, pod: Pod, budget: Budget) -> SpreadConstraint:
    selector, labels = _own_selector(template), pod.labels
    if selector is not None and template.match_label_keys:
        selector = selector.narrowed((key, labels[key]) for key in template.match_label_keys if key in labels)
    budget.spend(_STEPS if selector is None else _STEPS + selector.matcher.width)
    return _constraint(template, pod, selector)


def _own_selector(template: TopologySpreadConstraint) -> PodSelector | None:
    """Without what matchLabelKeys add to it."""
    if template.label_selector is None:
        return None
    try:
        return comparable(template.label_selector)
    except BadSelector as error:
        action = "hard" if template.when_unsatisfiable == HARD else "soft"
        raise BadSelector(f"obtaining pod's {action} topology spread constraints: {error}") from error


def _own_rule(template: TopologySpreadConstraint) -> Rule:
    return Rule(
        template.topology_key,
        _own_selector(template),
        template.match_label_keys,
        (template.node_affinity_policy or "Honor") == "Honor",
        template.node_taints_policy == "Honor",
    )


def _rule(constraint: SpreadConstraint) -> Rule:
    return Rule(
        constraint.topology_key,
        constraint.selector,
        honors_affinity=constraint.honors_affinity,
        honors_taints=constraint.honors_taints,
    )
