"""`pilotage explain workload/NAME`: what a queued workload waits for."""

from __future__ import annotations

from typing import Final

from pilotage.cli.errors import CommandError, ExitCode
from pilotage.cli.output import show, show_json, show_yaml
from pilotage.cli.queueing_view import Source
from pilotage.clock import SystemClock
from pilotage.explain.queueing import owner_of
from pilotage.explain.workload_text import render_workload
from pilotage.model.suggestions import suggestion

WORKLOAD_WORDS: Final = ("workload", "workloads", "wl", "kwl")


def explain_workload(source: Source, name: str, namespace: str, output: str) -> bool:
    """Show it; returns whether the workload may run."""
    clock = SystemClock()
    view = source.view(clock)
    workload = view.find(name, namespace)
    if workload is None:
        known = [one.name for one in view.workloads.values() if one.namespace == namespace]
        known += [owner for one in view.workloads.values() if one.namespace == namespace and (owner := owner_of(one))]
        near = suggestion(name, known) or "; pilotage jobs shows those that there are"
        raise CommandError(ExitCode.BAD_INPUT, f'no workload "{name}" in namespace {namespace}{near}')
    before = view.engine.explain(workload.key)
    report = view.judged(workload)
    assert before is not None and report is not None
    if output == "json":
        show_json(report, indent=2)
    elif output == "yaml":
        show_yaml(report)
    else:
        show(render_workload(report, clock.time(), before.state))
    return before.state in ("admitted", "finished")
