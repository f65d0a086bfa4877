"""What the console costs, measured on a small cluster."""

from __future__ import annotations

import json

from click.testing import CliRunner

from pilotage.cli.main import cli

SMALL = ("--nodes", "20", "--init-pods", "40", "--pods")


def test_every_page_is_measured_and_meets_its_goals() -> None:
    done = CliRunner().invoke(cli, ["bench", "--workload", "ConsolePages", *SMALL, "60", "-o", "json"])
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout.splitlines()[-1])
    figures = {one["name"]: one["value"] for one in facts["figures"]}
    assert {name.partition(":")[0] for name in figures} == {"overview", "waiting", "a pod", "a node", "inside"}
    assert all(value > 0 for value in figures.values()) and facts["pods"] == 60
