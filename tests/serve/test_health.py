from __future__ import annotations

import pytest

from pilotage.serve.health import PING, HealthCheck, HealthPage
from pilotage.serve.page import PageRequest

SYNCED = HealthCheck("sched-handler-sync", lambda: "")
UNSYNCED = HealthCheck("sched-handler-sync", lambda: "handlers are not fully synchronized: pods")


def page(*checks: HealthCheck) -> tuple[HealthPage, list[tuple[str, str, bool]]]:
    results: list[tuple[str, str, bool]] = []
    return HealthPage("readyz", checks, lambda *result: results.append(result)), results


@pytest.mark.parametrize(
    ("check", "path", "query", "status", "body"),
    [
        (SYNCED, "/readyz", {}, 200, "ok"),
        (SYNCED, "/readyz/ping", {}, 200, "ok"),
        (SYNCED, "/readyz", {"verbose": [""]}, 200, "[+]ping ok\n[+]sched-handler-sync ok\nreadyz check passed\n"),
        (
            UNSYNCED,
            "/readyz",
            {},
            500,
            "[+]ping ok\n[-]sched-handler-sync failed: reason withheld\nreadyz check failed\n",
        ),
        (UNSYNCED, "/readyz", {"exclude": ["sched-handler-sync"]}, 200, "ok"),
        (
            UNSYNCED,
            "/readyz",
            {"exclude": ["sched-handler-sync", "nonsense"], "verbose": [""]},
            200,
            "[+]ping ok\n[+]sched-handler-sync excluded: ok\n"
            'warn: some health checks cannot be excluded: no matches for "nonsense"\nreadyz check passed\n',
        ),
        (
            UNSYNCED,
            "/readyz/sched-handler-sync",
            {},
            500,
            "internal server error: handlers are not fully synchronized: pods",
        ),
    ],
)
def test_health_page(check: HealthCheck, path: str, query: dict[str, list[str]], status: int, body: str) -> None:
    health, _ = page(PING, check)
    answer = health(PageRequest(path, query=query))
    assert (answer.status, answer.body.decode()) == (status, body)


def test_unknown_check_is_not_found() -> None:
    health, _ = page(PING)
    assert health(PageRequest("/readyz/nonsense")).status == 404


def test_every_check_that_is_made_is_reported() -> None:
    health, results = page(PING, UNSYNCED)
    health(PageRequest("/readyz"))
    assert results == [("readyz", "ping", True), ("readyz", "sched-handler-sync", False)]
