"""Rules for pods and the pod specs inside templates."""

from __future__ import annotations

from typing import Final

from pilotage.sandbox.rules.json_fields import dict_or_empty
from pilotage.sandbox.rules.validation.containers import containers_errors, volumes_errors
from pilotage.sandbox.rules.validation.kind_rules import KindRules, ObjectUpdate
from pilotage.sandbox.rules.validation.metadata import common_errors
from pilotage.sandbox.rules.validation.names import label_problem, labels_errors, subdomain_problem
from pilotage.sandbox.rules.validation.placement import affinity_errors, gates_errors, spread_errors, tolerations_errors
from pilotage.sandbox.rules.validation.pod_shapes import Pod, PodResourceClaim, PodSpec, PodTemplateSpec
from pilotage.sandbox.rules.validation.pod_update import pod_update_errors
from pilotage.sandbox.rules.validation.problems import Errors, at_least, duplicate, forbidden, invalid, one_of, required
from pilotage.sandbox.rules.validation.quantities import (
    amounts_errors,
    container_resource_problem,
    pod_level_resource_problem,
    resources_errors,
)

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_LONGEST_DEADLINE: Final = 2**31 - 1


def template_errors(template: PodTemplateSpec | None, path: str) -> Errors:
    """The pod template of a workload."""
    if template is None:
        return [required(path)]
    errors = common_errors(template.metadata, f"{path}.metadata") if template.metadata else []
    if template.spec is None:
        return [*errors, required(f"{path}.spec.containers")]
    return errors + pod_spec_errors(template.spec, f"{path}.spec")


def pod_spec_errors(spec: PodSpec, path: str) -> Errors:
    errors = containers_errors(spec, path)
    if spec.volumes:
        errors += volumes_errors(spec.volumes, f"{path}.volumes")
    errors += one_of(f"{path}.restartPolicy", spec.restart_policy, _RESTART_POLICIES)
    errors += one_of(f"{path}.dnsPolicy", spec.dns_policy, _DNS_POLICIES)
    errors += one_of(f"{path}.preemptionPolicy", spec.preemption_policy, _PREEMPTION_POLICIES)
    errors += at_least(f"{path}.terminationGracePeriodSeconds", spec.termination_grace_period_seconds, 0)
    deadline = spec.active_deadline_seconds
    if deadline is not None and not 1 <= deadline <= _LONGEST_DEADLINE:
        problem = f"must be between 1 and {_LONGEST_DEADLINE}, inclusive"
        errors.append(invalid(f"{path}.activeDeadlineSeconds", deadline, problem))
    return errors + _placement_errors(spec, path) + _name_errors(spec, path) + _amount_errors(spec, path)


def _placement_errors(spec: PodSpec, path: str) -> Errors:
    errors: Errors = []
    if spec.node_selector:
        errors += labels_errors(f"{path}.nodeSelector", spec.node_selector)
    if spec.tolerations:
        errors += tolerations_errors(spec.tolerations, f"{path}.tolerations")
    if spec.affinity is not None:
        errors += affinity_errors(spec.affinity, f"{path}.affinity")
    if spec.topology_spread_constraints:
        errors += spread_errors(spec.topology_spread_constraints, f"{path}.topologySpreadConstraints")
    if spec.scheduling_gates:
        errors += gates_errors(spec.scheduling_gates, f"{path}.schedulingGates")
    return errors


def _name_errors(spec: PodSpec, path: str) -> Errors:
    errors: Errors = []
    for field, name, rule in (
        ("nodeName", spec.node_name, subdomain_problem),
        ("serviceAccountName", spec.service_account_name, subdomain_problem),
        ("schedulerName", spec.scheduler_name, subdomain_problem),
        ("priorityClassName", spec.priority_class_name, subdomain_problem),
        ("runtimeClassName", spec.runtime_class_name, subdomain_problem),
        ("hostname", spec.hostname, label_problem),
        ("subdomain", spec.subdomain, label_problem),
    ):
        if name and (problem := rule(name)):
            errors.append(invalid(f"{path}.{field}", name, problem))
    return errors


def _amount_errors(spec: PodSpec, path: str) -> Errors:
    errors: Errors = []
    if spec.overhead:
        errors += amounts_errors(spec.overhead, f"{path}.overhead", container_resource_problem)
    if spec.resources is not None:
        errors += resources_errors(spec.resources, f"{path}.resources", pod_level_resource_problem)
    seen: set[str] = set()
    for index, claim in enumerate(spec.resource_claims or ()):
        place = f"{path}.resourceClaims[{index}]"
        errors += _claim_errors(claim, place)
        if claim.name in seen:
            errors.append(duplicate(f"{place}.name", claim.name))
        seen.add(claim.name or "")
    return errors


def _claim_errors(claim: PodResourceClaim, path: str) -> Errors:
    errors: Errors = []
    if not claim.name:
        errors.append(required(f"{path}.name"))
    elif problem := label_problem(claim.name):
        errors.append(invalid(f"{path}.name", claim.name, problem))
    given = [name for name in (claim.resource_claim_name, claim.resource_claim_template_name) if name]
    if len(given) > 1:
        problem = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        errors.append(invalid(path, claim.name or "", problem))
    elif not given:
        problem = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        errors.append(invalid(path, claim.name or "", problem))
    return errors


def _state_errors(pod: Pod) -> Errors:
    return [required("spec.containers")] if pod.spec is None else pod_spec_errors(pod.spec, "spec")


def _creation_errors(pod: Pod) -> Errors:
    errors: Errors = []
    if pod.spec is not None and pod.spec.ephemeral_containers:
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if pod.spec is not None and pod.spec.scheduling_gates and pod.spec.node_name:
        errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors


def _update_errors(change: ObjectUpdate) -> Errors:
    return pod_update_errors(dict_or_empty(change.old.get("spec")), dict_or_empty(change.new.get("spec")))


POD_RULES: Final = KindRules(Pod, _state_errors, _creation_errors, _update_errors)
