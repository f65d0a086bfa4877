"""The table of metrics against the golden list: a name, label or bucket never changes by accident.

After a wanted change: `python -m tests.observe.test_metrics > tests/observe/golden_metrics.txt`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from pilotage.config.feature_gates import FEATURE_GATES
from pilotage.observe.exposition import render
from pilotage.observe.metrics import Metrics
from pilotage.observe.workload_metrics import WorkloadMetrics
from tests.source_tree import Module, modules, parse

GOLDEN = Path(__file__).with_name("golden_metrics.txt")


def listing() -> str:
    """One line per metric: name, type, stability, labels, buckets, gate."""
    declarations = [*Metrics.declarations(), *WorkloadMetrics.declarations()]
    lines = [
        f"{metric.name} {metric.kind} {metric.stability} [{','.join(metric.labels)}]"
        + (f" buckets={_bounds(metric.bounds)}" if metric.bounds else "")
        + (f" gate={metric.gate}" if metric.gate else "")
        + (f" page={metric.page}" if metric.page != "metrics" else "")
        for metric in declarations
    ]
    return "\n".join(sorted(lines)) + "\n"


def _bounds(bounds: tuple[float, ...]) -> str:
    return f"{bounds[0]:g},{bounds[1]:g}..{bounds[-1]:g}({len(bounds)})"


def test_metrics_are_those_of_the_golden_list() -> None:
    assert listing() == GOLDEN.read_text()


def test_names_are_unique_and_counters_end_as_they_should() -> None:
    declarations = [*Metrics.declarations(), *WorkloadMetrics.declarations()]
    names = [metric.name for metric in declarations]
    assert len(names) == len(set(names))
    assert all(metric.name.endswith("_total") == (metric.kind == "counter") for metric in declarations)
    assert all(metric.help.endswith(".") for metric in declarations)


def test_every_metric_is_on_the_page_about_metrics() -> None:
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    declarations = [*Metrics.declarations(), *WorkloadMetrics.declarations()]
    assert [metric.name for metric in declarations if f"| `{metric.name}` |" not in page] == []


_READING = {"lines", "total", "value", "values"}
_TABLES = {"observe/metrics.py", "observe/workload_metrics.py"}


def written_names(found: Iterable[Module]) -> set[str]:
    """Attributes and names of metrics that something writes, or hands on to what does.

    Attributes that are only read (`metrics.x.total()`) do not count. Plugins and the queueing engine name metrics
    instead of importing the table.
    """
    names: set[str] = set()
    for module in found:
        read = {
            id(node.value)
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Attribute) and node.attr in _READING and isinstance(node.value, ast.Attribute)
        }
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and id(node) not in read:
                names.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                names.add(node.value)
    return names


def unwritten(names: set[str]) -> list[str]:
    # A count for a ClusterQueue is one for its LocalQueue, too (jobs/controller/meters.py).
    declarations = [*Metrics.declarations(), *WorkloadMetrics.declarations()]
    return [
        metric.name
        for metric in declarations
        if not {metric.name, metric.attribute, metric.attribute.removeprefix("local_queue_")} & names
    ]


def test_every_metric_is_written_somewhere() -> None:
    outside = written_names(module for module in modules() if module.path not in _TABLES)
    handed_on = {"skipped_objects_total", "task_errors_total"}
    """To what counts them, in the table's own constructor."""
    assert unwritten(outside | handed_on) == []


def test_a_metric_that_is_only_read_is_found() -> None:
    source = "def shown(metrics):\n    metrics.cache_size.set(1, 'nodes')\n    return metrics.pending_pods.values()"
    names = written_names([parse("serve/page.py", source)])
    assert "cache_size" in names and "scheduler_pending_pods" in unwritten(names)


def test_gates_are_those_that_exist() -> None:
    assert {metric.gate for metric in Metrics.declarations() if metric.gate} <= FEATURE_GATES.keys()


def test_metric_whose_gate_is_off_works_but_is_not_shown() -> None:
    metrics = Metrics(lambda gate: gate != "SchedulerAsyncAPICalls")
    metrics.async_api_call_execution_total.add("pod_binding", "success")
    names = {declaration.name for declaration, _ in metrics.exposed()}
    assert "scheduler_async_api_call_execution_total" not in names
    assert "scheduler_preemption_goroutines_execution_total" in names


def test_every_table_has_numbers_of_its_own() -> None:
    one, other = Metrics(), Metrics()
    one.preemption_attempts_total.add()
    assert (one.preemption_attempts_total.total(), other.preemption_attempts_total.total()) == (1, 0)


def test_text_is_what_prometheus_reads() -> None:
    metrics = Metrics()
    metrics.schedule_attempts_total.add("scheduled", 'odd "name"\n')
    metrics.pending_pods.read_from(lambda: {("active",): 3})
    metrics.pod_scheduling_attempts.observe(2)
    body, content_type = render("*/*", metrics)
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    text = body.decode()
    assert "# HELP scheduler_schedule_attempts_total [STABLE] Attempts" in text
    assert "# TYPE scheduler_schedule_attempts_total counter" in text
    assert 'scheduler_pending_pods{queue="active"} 3.0' in text
    assert 'scheduler_pod_scheduling_attempts_bucket{le="1"} 0.0' in text
    assert 'scheduler_pod_scheduling_attempts_bucket{le="+Inf"} 1.0' in text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["scheduler_schedule_attempts"].samples[0].labels["profile"] == 'odd "name"\n'
    assert "process_resident_memory_bytes" in families


def test_small_bounds_are_written_as_kube_scheduler_does() -> None:
    metrics = Metrics()
    metrics.plugin_execution_duration_seconds.observe(1, "p", "Filter", "Success")
    text = render("", metrics)[0].decode()
    assert 'le="1e-05"' in text
    assert 'le="2.2500000000000005e-05"' in text


def test_openmetrics_is_there_for_those_who_ask() -> None:
    metrics = Metrics()
    metrics.preemption_attempts_total.add()
    body, content_type = render("application/openmetrics-text; version=1.0.0", metrics)
    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    families = {family.name for family in parse_openmetrics(body.decode())}
    assert "scheduler_preemption_attempts" in families


def test_health_checks_have_a_page_of_their_own() -> None:
    metrics = Metrics()
    metrics.kubernetes_healthcheck.set(1, "ping", "healthz")
    shown = {family.name for family in text_string_to_metric_families(render("", metrics, page="slis")[0].decode())}
    assert shown == {"kubernetes_healthcheck", "kubernetes_healthchecks"}
    assert b"kubernetes_healthcheck" not in render("", metrics)[0]


if __name__ == "__main__":
    print(listing(), end="")
