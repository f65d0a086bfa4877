"""deploy/workload-queueing grants what the process checks for at its start, and what it watches."""

from __future__ import annotations

from pathlib import Path

import yaml

from pilotage.model import KINDS
from pilotage.model.kinds import WATCHED, WATCHED_FOR_QUEUEING
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
    assert {(verb, kind.group, kind.plural) for kind in kinds for verb in ("list", "watch")} - granted() == set()
