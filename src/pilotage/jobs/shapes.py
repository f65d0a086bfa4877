"""What a workload needs, apart from who it is: workloads of equal shape are judged once.

A `Shape` is made once per distinct content of the pod sets and of what the API server will add to their pods. Amounts
are whole numbers: cpu in thousandths, everything else in units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from pilotage.jobs import conditions as c
from pilotage.jobs.adapters.marks import PREFERRED_TOPOLOGY, REQUIRED_TOPOLOGY
from pilotage.jobs.counted_resources import CountingRules, counted
from pilotage.jobs.effective_pods import Surroundings, effective_spec, problems_of
from pilotage.jobs.rejections import Obstacle, QuotaRejection
from pilotage.jobs.room import Labels
from pilotage.model.interning import Shared
from pilotage.model.kueue import PodSet
from pilotage.model.pod import shared_spec
from pilotage.model.pod_resources import pod_requests
from pilotage.model.pod_spec import PodSpec, PodSpecFields, TemplateSpec, Toleration
from pilotage.model.pod_wire import unique_spec
from pilotage.model.selectors import NodeSelectorTerm

_LONGEST_REASON: Final = 200
NO_SPEC: Final = unique_spec(PodSpec())
PODS: Final = "pods"
"""Counted if a ClusterQueue covers it: one for each pod."""


@dataclass(frozen=True, eq=False, slots=True)
class PodSetNeed:
    """One pod set: how many pods, what each asks for, and where they may run. Compared by identity."""

    name: str
    count: int
    min_count: int | None
    per_pod: Mapping[str, int]
    node_selector: Mapping[str, str]
    affinity: tuple[NodeSelectorTerm, ...] | None
    """Alternatives of the required node affinity; None if there is none."""
    tolerations: tuple[Toleration, ...]
    spec: PodSpec = NO_SPEC
    """Of the pods to come, as far as the template knows it."""
    labels: Labels = ()
    """Theirs, if it matters to their places."""
    required_topology: str = ""
    preferred_topology: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class WorkloadShape:
    """Compared by identity: there is one per content."""

    pod_sets: tuple[PodSetNeed, ...]
    rejection: QuotaRejection | None = None
    """Why there is no quota for this: the API server would reject the pods."""

    @property
    def can_shrink(self) -> bool:
        return any(need.min_count is not None and need.min_count < need.count for need in self.pod_sets)


class _Content(msgspec.Struct, array_like=True):
    name: str
    count: int
    min_count: int | None
    spec: TemplateSpec
    labels: Labels = ()
    required_topology: str = ""
    preferred_topology: str = ""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[list[_Content], Surroundings]).decode


def shape_of(pod_sets: tuple[PodSet, ...], around: Surroundings) -> WorkloadShape:
    """The one shape of these pod sets there."""
    sets = [_content(one) for one in pod_sets]
    try:
        content = _encode((sets, around))
    except (OverflowError, ValueError) as error:  # numbers that do not fit into 64 bits
        needs = tuple(PodSetNeed(one.name, one.count, None, {}, {}, None, ()) for one in sets)
        problems = tuple(_unusable(one.name, error) for one in sets)
        return WorkloadShape(
            needs, QuotaRejection(c.MISCONFIGURED, problems, "; ".join(one.detail for one in problems))
        )
    return _shapes.get(content)


def _content(one: PodSet) -> _Content:
    template, request = one.template, one.topology_request
    annotations, spec = template.metadata.annotations, template.spec
    is_bound_to_pods = spec.topology_spread_constraints or (
        spec.affinity is not None and (spec.affinity.pod_affinity or spec.affinity.pod_anti_affinity)
    )
    labels = tuple(sorted(template.metadata.labels.items())) if is_bound_to_pods else ()
    required = annotations.get(REQUIRED_TOPOLOGY, "") or (request.required if request is not None else "") or ""
    preferred = annotations.get(PREFERRED_TOPOLOGY, "") or (request.preferred if request is not None else "") or ""
    return _Content(one.name, one.count, one.min_count, spec, labels, required, preferred)


def _made(content: bytes) -> WorkloadShape:
    sets, around = _decode(content)
    needs: list[PodSetNeed] = []
    problems: list[Obstacle] = []
    for one in sets:
        try:
            effective = effective_spec(one.spec, around)
            needs.append(_need(one, effective, around.counting))
            problems += problems_of(one.name, one.spec, effective, around)
        except (ValueError, ArithmeticError) as error:
            needs.append(PodSetNeed(one.name, one.count, None, {}, {}, None, ()))
            problems.append(_unusable(one.name, error))
    if not problems:
        return WorkloadShape(tuple(needs))
    text = "; ".join(one.detail for one in problems)
    return WorkloadShape(tuple(needs), QuotaRejection(c.MISCONFIGURED, tuple(problems), text))


def _unusable(pod_set: str, error: Exception) -> Obstacle:
    """It asks for something that cannot be counted, such as a quantity of thousands of digits."""
    text = f"pod set {pod_set}: its requests cannot be counted: {str(error)[:_LONGEST_REASON]}"
    return Obstacle(pod_set, "", "", c.MISCONFIGURED, text)


def _need(one: _Content, effective: PodSpecFields, counting: CountingRules) -> PodSetNeed:
    affinity = one.spec.affinity.node_affinity if one.spec.affinity is not None else None
    required = affinity.required if affinity is not None else None
    asked = {resource: max(0, amount) for resource, amount in pod_requests(shared_spec(effective)).items()}
    return PodSetNeed(
        name=one.name,
        count=one.count,
        min_count=one.min_count,
        per_pod=counted(asked, counting),
        node_selector=one.spec.node_selector,
        affinity=required.node_selector_terms if required is not None else None,
        tolerations=one.spec.tolerations,
        spec=_spec_to_come(one.spec, effective),
        labels=one.labels,
        required_topology=one.required_topology,
        preferred_topology=one.preferred_topology,
    )


def _spec_to_come(spec: TemplateSpec, effective: PodSpecFields) -> PodSpec:
    """Without what is made together with the pod: volumes and claims of its own, of which nothing can be known."""
    own = {name: getattr(spec, name) for name in PodSpecFields.__struct_fields__}
    own |= {name: getattr(effective, name) for name in ("containers", "init_containers", "resources", "overhead")}
    own["volumes"] = tuple(one for one in spec.volumes if one.matters and one.ephemeral is None)
    own["resource_claims"] = tuple(one for one in spec.resource_claims if not one.resource_claim_template_name)
    own["scheduling_gates"], own["scheduling_group"] = (), None
    return unique_spec(PodSpec(**own))


_shapes: Final = Shared(_made)
