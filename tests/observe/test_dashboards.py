"""Dashboards and alerts ask only for metrics that there are, with labels that they have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.observe.declaration import AnyDeclaration
from pilotage.observe.metrics import Metrics
from pilotage.observe.workload_metrics import WorkloadMetrics

DEPLOY = Path(__file__).parents[2] / "deploy"
BOARDS = sorted((DEPLOY / "grafana").glob("*.json"))
ALERTS = DEPLOY / "prometheus" / "alerts.yaml"
PREFIXES = ("scheduler_", "pilotage_", "kueue_", "rest_client_", "leader_election_", "kubernetes_", "process_")
OF_THE_PROCESS = {"process_cpu_seconds_total", "process_resident_memory_bytes"}
"""From the library; there is no declaration of ours."""
KNOWN = {metric.name: metric for metric in (*Metrics.declarations(), *WorkloadMetrics.declarations())}
OF_THE_SCRAPE = {"job", "instance", "le"}


def expressions() -> Iterator[tuple[str, str]]:
    """(where, PromQL)."""
    for board in BOARDS:
        content = json.loads(board.read_text())
        for panel in content["panels"]:
            for target in panel.get("targets", ()):
                yield f"{board.name}: {panel['title']}", target["expr"]
        for variable in content["templating"]["list"]:
            if variable["type"] == "query":
                yield f"{board.name}: ${variable['name']}", variable["query"]
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            yield f"{ALERTS.name}: {rule.get('alert') or rule['record']}", rule["expr"]


def selectors(expression: str) -> Iterator[tuple[str, list[str]]]:
    """(metric name, labels that are selected by)."""
    for name, selected in re.findall(r"\b([a-z][a-z_]+)\b(?:\{([^}]*)\})?", expression):
        if name.startswith(PREFIXES):
            yield name, re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', selected)


def declaration(name: str) -> AnyDeclaration | None:
    """Of a metric, or of the histogram that a series belongs to."""
    known = KNOWN.get(name)
    if known is not None:
        return None if known.kind == "histogram" else known
    histogram = KNOWN.get(re.sub(r"_(bucket|count|sum)$", "", name))
    return histogram if histogram is not None and histogram.kind == "histogram" else None


ALL = list(expressions())


@pytest.mark.parametrize("expression", [e for _, e in ALL], ids=[where for where, _ in ALL])
def test_every_metric_exists_and_has_the_labels(expression: str) -> None:
    found = list(selectors(expression))
    recorded = "pilotage:" in expression
    assert found or recorded, "it asks for nothing of ours"
    labels = set(OF_THE_SCRAPE)
    for name, selected in found:
        if name in OF_THE_PROCESS:
            continue
        metric = declaration(name)
        assert metric is not None, f"there is no {name}"
        assert set(selected) <= {*metric.labels, *OF_THE_SCRAPE}, name
        labels |= set(metric.labels)
    for grouping in re.findall(r"\bby \(([^)]*)\)", expression):
        assert {label.strip() for label in grouping.split(",")} <= labels


def test_a_metric_that_does_not_exist_is_found() -> None:
    assert declaration("scheduler_made_up_total") is None
    assert declaration("scheduler_pod_scheduling_sli_duration_seconds") is None, "a histogram has no value of its own"
    assert declaration("scheduler_pod_scheduling_sli_duration_seconds_bucket") is not None


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_panels_have_places_of_their_own(board: Path) -> None:
    content: dict[str, Any] = json.loads(board.read_text())
    assert content["title"] and content["uid"]
    ids = [panel["id"] for panel in content["panels"]]
    assert len(ids) == len(set(ids))
    taken: set[tuple[int, int]] = set()
    for panel in content["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + dx, place["y"] + dy) for dx in range(place["w"]) for dy in range(place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


def test_alerts_say_what_and_how_bad() -> None:
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    for rule in rules:
        if "alert" in rule:
            assert rule["labels"]["severity"] in ("warning", "critical") and rule["annotations"]["summary"].endswith(
                "."
            )
