"""Server-side apply: the sandbox makes the same objects and managers of random histories as a real API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .apply_histories import KINDS, WIDGETS, histories, played
from .client import Client, Refused
from .servers import Server, eventually

SEEDS = range(12)


@pytest.fixture(scope="module")
def clients(sandbox_server: Server, real_server: Server) -> Iterator[list[Client]]:
    made = [Client(server.admin) for server in (sandbox_server, real_server)]
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for client in made:
        client.request("POST", definitions, WIDGETS)
        eventually("widgets are served", lambda client=client: _is_served(client))
    yield made
    for client in made:
        client.request("DELETE", f"{definitions}/widgets.apply.example.com")


def _is_served(client: Client) -> bool:
    try:
        return bool(client.request("GET", KINDS["Widget"].path))
    except Refused:
        return False


@pytest.mark.real_server
@pytest.mark.parametrize("kind", KINDS)
def test_random_histories_end_alike(clients: list[Client], kind: str) -> None:
    for seed in SEEDS:
        steps, name = list(histories(kind, seed)), f"h-{seed}"
        ours, theirs = (played(client, kind, name, steps) for client in clients)
        for at, (mine, real) in enumerate(zip(ours, theirs, strict=True)):
            assert mine == real, f"seed {seed}: " + "\n".join(map(str, steps[: at + 1]))
        for client in clients:
            path = f"{KINDS[kind].path}/{name}"
            client.request("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
            client.request("DELETE", path)
