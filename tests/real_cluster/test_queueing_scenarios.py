"""All scenarios and decisions of workload queueing with the objects of a server instead of those in memory.

At the real one with the definitions, rules and policies of `deploy/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotage.simulate.queueing_file import QueueingScenario
from pilotage.simulate.queueing_run import queueing_difference
from pilotage.simulate.scenario_run import load_any

from .client import Client
from .queueing_kinds import queue_admission, queueing_kinds
from .served_queueing import ServedQueueing

FOLDER = Path(__file__).parents[1] / "data" / "kueue"
SCENARIOS = [
    scenario
    for name in ("scenarios", "decisions", "behaviour")
    for scenario in load_any(FOLDER / f"{name}.yaml")
    if isinstance(scenario, QueueingScenario)
]
NAMESPACES = ("ns", "in", "out")


@pytest.fixture(scope="module", params=["sandbox", "real"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    server = request.getfixturevalue(f"{request.param}_server")
    with queueing_kinds(server) as client, queue_admission(client):
        for name in NAMESPACES:
            client.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        yield client
        for name in NAMESPACES:
            client.request("DELETE", f"/api/v1/namespaces/{name}", {})


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_queueing(client: Client, scenario: QueueingScenario) -> None:
    api = ServedQueueing(client)
    try:
        assert queueing_difference(scenario, api) == ""
    finally:
        api.clear()
