"""Kueue's queues: what its webhooks would refuse."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.rules.validation import validate_create

Json = dict[str, Any]


def queue(kind: str = "ClusterQueue", quota: Json | None = None, **spec: Any) -> Json:
    resources = [{"name": "cpu", "nominalQuota": 4, **(quota or {})}]
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "std", "resources": resources}]}]
    body = {"resourceGroups": groups, **spec}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": "q"}, "spec": body}


def messages(obj: Json) -> list[str]:
    return [str(error) for error in validate_create(obj["kind"], obj)]


@pytest.mark.parametrize("field", ["borrowingLimit", "lendingLimit"])
@pytest.mark.parametrize(("kind", "above"), [("ClusterQueue", "cohort"), ("Cohort", "parent")])
def test_limits_need_somebody_to_share_with(field: str, kind: str, above: str) -> None:
    path = f"spec.resourceGroups[0].flavors[0].resources[0].{field}"
    expected = f'{path}: Invalid value: "2": must be nil when {above} is empty'
    assert messages(queue(kind, {field: "2"})) == [expected]
    assert messages(queue(kind, {field: "2"}, **{f"{above}Name": "ring"})) == []


def test_a_check_must_be_on_flavors_of_the_queue() -> None:
    checks = [{"name": "budget", "onFlavors": ["std", "spot"]}]
    (found,) = messages(queue(admissionChecksStrategy={"admissionChecks": checks}))
    assert found.startswith('spec.admissionChecksStrategy.admissionChecks[0].onFlavors[1]: Invalid value: "spot"')
