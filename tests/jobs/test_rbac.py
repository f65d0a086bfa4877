"""deploy/workload-queueing grants what the process checks for at its start, and what it watches."""

from __future__ import annotations

from pathlib import Path

import yaml

from pilotage.jobs.adapters.kinds.registry import JobKinds
from pilotage.model import KINDS
from pilotage.model.custom_jobs import plural_of
from pilotage.model.kinds import WATCHED, WATCHED_FOR_QUEUEING
from pilotage.model.queue_admission import LABELLED, REFUSED, SUSPENDED
from pilotage.serve.start_checks import QUEUEING_WRITES

RBAC = Path(__file__).parents[2] / "deploy" / "workload-queueing" / "rbac.yaml"


def granted() -> set[tuple[str, str, str]]:
    role = next(yaml.safe_load_all(RBAC.read_text()))
    return {
        (verb, group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_everything_that_is_written_is_granted() -> None:
    wanted = {(one.verb, one.group, one.qualified) for one in QUEUEING_WRITES}
    assert wanted - granted() == set()


def test_everything_that_is_watched_is_granted_here_or_for_scheduling() -> None:
    kinds = [KINDS[resource] for resource in WATCHED_FOR_QUEUEING if resource not in WATCHED]
    kinds += [one.resource for one in JobKinds()]
    assert {(verb, kind.group, kind.plural) for kind in kinds for verb in ("list", "watch")} - granted() == set()


def test_every_kind_of_jobs_can_be_suspended_and_deleted_and_own_workloads() -> None:
    for kind in (one.resource for one in JobKinds()):
        wanted = {(verb, kind.group, kind.plural) for verb in ("patch", "delete")}
        assert wanted | {("update", kind.group, f"{kind.plural}/finalizers")} <= granted(), kind.kind


def test_policies_and_webhook_know_the_kinds_that_admission_knows() -> None:
    wanted = {(group, plural_of(kind)) for group, kind in [("", "Pod"), *SUSPENDED, *LABELLED, *REFUSED]}
    folder = RBAC.parent
    policies = list(yaml.safe_load_all((folder / "queue-admission.yaml").read_text()))
    constraints = [one["spec"]["matchConstraints"] for one in policies if not one["kind"].endswith("Binding")]
    [webhook] = yaml.safe_load((folder / "webhook.yaml").read_text())["webhooks"]
    for rules in ([rule for one in constraints for rule in one["resourceRules"]], webhook["rules"]):
        known = {(group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"]}
        assert known == wanted
