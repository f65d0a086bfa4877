"""Rules of a file say what pods do whose annotations do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.sandbox.life.kubelet import KubeletSettings
from pilotage.sandbox.life.pod_rules import PodRulesError, load_pod_rules
from tests.sandbox.living_cluster import LivingCluster, job, pod

RULES = """
rules:
- match: {ownerKind: Job, name: "flaky-*"}
  do: {run-for: 5s, exit-code: 3}
- match: {labels: {app: slow}}
  do: {ready-after: 1h, run-for: 2h}
- do: {never-ready: true}
"""


def load(tmp_path: Path, text: str) -> KubeletSettings:
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    return KubeletSettings(rules=load_pod_rules(path))


async def test_first_rule_that_matches_counts_and_annotations_come_before_it(tmp_path: Path) -> None:
    cluster = LivingCluster(kubelet=load(tmp_path, RULES))
    cluster.create(job("flaky", backoffLimit=0))
    for name in ("slow", "other"):
        cluster.create(pod(name))
    cluster.create(pod("own", annotations={"never-ready": "false"}))
    await cluster.run(60)
    (ended,) = cluster.pods(app="flaky")
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    ready = {p["metadata"]["name"]: p["status"]["containerStatuses"][0]["ready"] for p in cluster.pods(phase="Running")}
    assert ready == {"slow": False, "other": False, "own": True}
    await cluster.run(3600)
    assert cluster.status("Pod", "slow")["containerStatuses"][0]["ready"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "holds no rules"),
        ("rules: 3", "Expected `array`"),
        ("rules: [{do: {runs: 5s}}]", "rules[0].do.runs: unknown; there are"),
        ("rules: [{do: {run-for: soon}}]", 'rules[0].do: run-for: "soon" is no duration'),
        ("rules: [{do: {}, match: {label: x}}]", "unknown field `label`"),
    ],
)
def test_wrong_files_are_rejected_with_the_place(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(PodRulesError) as caught:
        load(tmp_path, text)
    assert problem in str(caught.value) and "rules.yaml" in str(caught.value)
