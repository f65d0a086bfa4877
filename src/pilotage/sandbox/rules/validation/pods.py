"""Rules for pods and the pod specs inside templates."""

from __future__ import annotations

from typing import Final

from pilotage.sandbox.rules.json_fields import Json, dict_or_empty
from pilotage.sandbox.rules.validation.containers import containers, volumes
from pilotage.sandbox.rules.validation.field_rules import KindRules, at_least, each, fields, one_of, optional, syntax
from pilotage.sandbox.rules.validation.metadata import template_metadata
from pilotage.sandbox.rules.validation.names import label, subdomain, sysctl_problem
from pilotage.sandbox.rules.validation.placement import placement
from pilotage.sandbox.rules.validation.pod_update import pod_update_errors
from pilotage.sandbox.rules.validation.problems import Errors, forbidden, invalid
from pilotage.sandbox.rules.validation.quantities import container_amounts, pod_level_resources

_LONGEST_DEADLINE: Final = 2**31 - 1


def _deadline(seconds: int, path: str) -> Errors:
    if 1 <= seconds <= _LONGEST_DEADLINE:
        return []
    return [invalid(path, seconds, f"must be between 1 and {_LONGEST_DEADLINE}, inclusive")]


def _claim_or_template(claim: Json, path: str) -> Errors:
    given = [claim.get(name) for name in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(name)]
    if len(given) == 1:
        return []
    problem = (
        "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        if given
        else "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
    )
    return [invalid(path, claim.get("name") or "", problem)]


def _creation_errors(pod: Json, _path: str) -> Errors:
    spec = dict_or_empty(pod.get("spec"))
    errors: Errors = []
    if spec.get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("schedulingGates") and spec.get("nodeName"):
        errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors


def _update_errors(old: Json, new: Json) -> Errors:
    return pod_update_errors(dict_or_empty(old.get("spec")), dict_or_empty(new.get("spec")))


_RESOURCE_CLAIM: Final = fields(("name!", label), ("", _claim_or_template))
_SECURITY: Final = fields(("sysctls", each(fields(("name!", syntax(sysctl_problem))), unique="name")))
pod_spec: Final = fields(
    ("", containers),
    ("securityContext", _SECURITY),
    ("volumes", volumes),
    ("restartPolicy", one_of("Always", "OnFailure", "Never")),
    ("dnsPolicy", one_of("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")),
    ("preemptionPolicy", one_of("PreemptLowerPriority", "Never")),
    ("terminationGracePeriodSeconds", at_least(0)),
    ("activeDeadlineSeconds", _deadline),
    ("", placement),
    ("nodeName", optional(subdomain)),
    ("serviceAccountName", optional(subdomain)),
    ("schedulerName", optional(subdomain)),
    ("priorityClassName", optional(subdomain)),
    ("runtimeClassName", optional(subdomain)),
    ("hostname", optional(label)),
    ("subdomain", optional(label)),
    ("overhead", container_amounts),
    ("resources", pod_level_resources),
    ("resourceClaims", each(_RESOURCE_CLAIM, unique="name")),
)
pod_template: Final = fields(("metadata", template_metadata), ("spec", pod_spec, {}))
"""The template of a workload."""

POD_RULES: Final = KindRules(fields(("spec", pod_spec, {})), _creation_errors, _update_errors)
