"""The benchmarks with devices and volumes, small: every pod gets what it asks for, and the contrast is shown."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest
from click.testing import CliRunner

from pilotage.assembly import SchedulerOptions
from pilotage.bench.catalog import WORKLOADS
from pilotage.bench.stage import InProcessBench
from pilotage.bench.workloads import NAMESPACE
from pilotage.cli.main import cli
from pilotage.clock import SystemClock
from pilotage.rng import seeded

_CLAIMS = "SchedulingWithResourceClaimTemplate"


def _small(name: str, **sizes: int) -> InProcessBench:
    workload = dataclasses.replace(WORKLOADS[name], **sizes)
    return InProcessBench(workload, SystemClock(), seeded(1), SchedulerOptions(), latency_seconds=0.0)


async def test_every_pod_gets_a_device_of_its_own() -> None:
    run = _small(_CLAIMS, nodes=4, init_pods=0, pods=20)
    figures = await run.run()
    assert figures.pods == 20
    given = [
        (result["pool"], result["device"])
        for claim in run.api.list("resourceclaims.resource.k8s.io", NAMESPACE)
        for result in claim["status"]["allocation"]["devices"]["results"]
    ]
    assert len(given) == len(set(given)) == 4 * 10 // 2 + 20


async def test_all_pods_with_claims_are_there_before_the_first_claim_is_made() -> None:
    run = _small(_CLAIMS, nodes=4, init_pods=0, pods=20)
    await run.run()
    store = run.api.store
    pods = [change.revision for change in store.changes_since("pods", 0) if change.type == "ADDED"]
    claims = [
        change.revision
        for change in store.changes_since("resourceclaims.resource.k8s.io", 0)
        if change.type == "ADDED" and b'"ownerReferences"' in change.record.body
    ]
    assert len(pods) == len(claims) == 20 and max(pods) < min(claims)


async def test_more_pods_than_devices_by_default_get_more_devices() -> None:
    assert (await _small(_CLAIMS, nodes=2, init_pods=0, pods=30).run()).pods == 30


@pytest.mark.parametrize("name", ["SchedulingInTreePVs", "SchedulingCSIPVs"])
async def test_pods_with_bound_volumes_are_bound(name: str) -> None:
    assert (await _small(name, nodes=3, init_pods=1, pods=9).run()).pods == 9


async def test_volumes_are_provisioned_for_the_chosen_node() -> None:
    run = _small("SchedulingWaitForFirstConsumer", nodes=3, init_pods=0, pods=4)
    assert (await run.run()).pods == 4
    node_of = {pod["metadata"]["name"][-6:]: pod["spec"]["nodeName"] for pod in run.api.list("pods", NAMESPACE)}
    for claim in run.api.list("persistentvolumeclaims", NAMESPACE):
        chosen = claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
        assert chosen == node_of[claim["metadata"]["name"][-6:]]


def test_the_workload_of_claims_is_run_with_and_without_narrowing() -> None:
    sizes = ["--nodes", "2", "--init-pods", "1", "--pods", "4"]
    done = CliRunner().invoke(cli, ["bench", "--workload", _CLAIMS, *sizes, "-o", "json"])
    assert done.exit_code == 0, done.output
    facts = msgspec.json.decode(done.stdout.splitlines()[-1])
    assert facts["pods"] == facts["contrast"]["pods"] == 4
    assert facts["contrast"]["featureGates"] == "SchedulerPreQueueingHints=false"
    table = CliRunner().invoke(cli, ["bench", "--workload", _CLAIMS, *sizes])
    assert "SchedulerPreQueueingHints=false" in table.stdout
    assert "Without SchedulerPreQueueingHints a pod costs" in table.stdout
    alone = CliRunner().invoke(cli, ["bench", "--workload", _CLAIMS, *sizes, "--no-contrast", "-o", "json"])
    assert "contrast" not in msgspec.json.decode(alone.stdout.splitlines()[-1])
