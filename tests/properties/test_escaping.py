"""Hostile text in any field of an object never reaches a terminal, a log, a page, an Event or a condition raw."""

from __future__ import annotations

import ast
import io
import json
import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from pilotage.api.conditions import PodCondition
from pilotage.calls.event import shortened
from pilotage.cli import queue as queue_command
from pilotage.cli.columns import columns
from pilotage.cli.demo_view import DemoView
from pilotage.cli.errors import report
from pilotage.cli.explain_timeline import render_timeline
from pilotage.cli.logs import log_as_json, set_up_logging
from pilotage.cli.main import call
from pilotage.cli.terminal import PlainConsole
from pilotage.cycle.report import SchedulerReport
from pilotage.escaping import visible, visible_json, visible_lines, visible_text
from pilotage.jobs.conditions import Conditions
from pilotage.queue.report import QueuedPodReport
from pilotage.queue.timeline import Timeline, TimelineItem
from pilotage.serve.page import error_answer, json_answer, text_answer
from tests.cli.test_demo_view import moment
from tests.cli.test_queueing_commands import workload
from tests.jobs.live.world import cluster_queue, flavor, local_queue
from tests.source_tree import modules

FORGED = "FORGED"
SIGNS = [
    *map(chr, [*range(0x20), *range(0x7F, 0xA0), 0x61C, 0xAD, *range(0x200B, 0x2010), *range(0x2028, 0x202F)]),
    *map(chr, [*range(0x2066, 0x206A), 0xFEFF, 0xE0001, 0xE0041]),
    "\x1b[31m",
    "\x1b]8;;http://evil\x1b\\",
    "\x9b2J",
    f"\n{FORGED}",
    f"\r{FORGED}",
    f"\u2028{FORGED}",
    "[red]",
    "[link=http://evil]",
    "[/]",
    ":smile:",
    "é",
    "a",
    "%s",
    "{x}",
    "\\",
    '"',
]
HOSTILE = st.lists(st.sampled_from(SIGNS), min_size=1, max_size=6).map("".join)
SURROGATES = "\ud800x\udfff"


def assert_harmless(text: str) -> None:
    raw = {sign for sign in text if not sign.isprintable() and sign != "\n"}
    assert not raw, ascii(text)
    assert not any(line.startswith(FORGED) for line in text.split("\n")), ascii(text)


@contextmanager
def printed() -> Iterator[io.StringIO]:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        yield out


@pytest.fixture(autouse=True)
def _logging_restored() -> Iterator[None]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)
    logging.disable(logging.NOTSET)


# --- the function -----------------------------------------------------------------------------------------------------


@given(st.text(alphabet=st.characters(categories=["C", "Z", "L", "P", "S", "M", "N"])) | HOSTILE)
@example(SURROGATES)
def test_escaped_text_is_printable_and_printable_text_is_itself(text: str) -> None:
    assert visible(text).isprintable()
    assert_harmless(visible_text(text).replace("\t", "").replace(f"\n{FORGED}", ""))
    if text.isprintable():
        assert visible(text) == visible_text(text) == text


@given(st.lists(HOSTILE, min_size=1, max_size=4))
def test_no_line_becomes_two(lines: list[str]) -> None:
    assert len(visible_lines(lines).splitlines()) == len(lines)


@given(
    st.recursive(HOSTILE | st.integers(), lambda some: st.lists(some) | st.dictionaries(HOSTILE, some), max_leaves=5)
)
def test_a_json_document_keeps_its_values(value: Any) -> None:
    document = visible_json(json.dumps(value, ensure_ascii=False, indent=1))
    assert_harmless(document)
    assert json.loads(document) == value


# --- terminal ---------------------------------------------------------------------------------------------------------


def cluster(hostile: str) -> list[dict[str, Any]]:
    """Objects that are hostile wherever text may stand."""
    taint = {"key": f"k{hostile}", "value": hostile, "effect": "NoSchedule"}
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {f"l{hostile}": hostile}},
            "spec": {"taints": [taint]} if tainted else {},
            "status": {
                "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10", f"ex.io/{hostile}": "1"},
                "conditions": [{"type": f"Ready{hostile}", "status": "False", "message": hostile}],
                "images": [{"names": [hostile], "sizeBytes": 1}],
            },
        }
        for name, tainted in ((f"n-{hostile}", True), ("plain", False))
    ]
    container = {
        "name": hostile,
        "image": hostile,
        "resources": {"requests": {"cpu": "1", f"ex.io/{hostile}": "2"}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "uid": hostile, "annotations": {"a": hostile}},
        "spec": {
            "containers": [container],
            "nodeSelector": {hostile: hostile},
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": f"c{hostile}"}}],
        },
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": hostile}]},
    }
    gated = {**pod, "metadata": {"name": "gated", "namespace": "default", "uid": "gated"}}
    gated["spec"] = {"containers": [container], "schedulingGates": [{"name": hostile}]}
    elsewhere = {**pod, "metadata": {"name": "elsewhere", "namespace": "default", "uid": "elsewhere"}}
    elsewhere["spec"] = {"containers": [container], "schedulerName": f"x{hostile}"}
    named = {**pod, "metadata": {"name": f"p{hostile}", "namespace": hostile, "uid": "named"}}
    return [*nodes, pod, gated, elsewhere, named]


def queues(hostile: str) -> list[dict[str, Any]]:
    name = f"q{hostile}"
    return [
        flavor(name),
        cluster_queue(name, flavors={name: 4}),
        local_queue("lq", name),
        local_queue(f"nowhere{hostile}", hostile),
        workload("running", 3),
        workload(f"w{hostile}", 200, queue=f"nowhere{hostile}"),
        workload("lost", 1, queue=hostile),
    ]


def run(arguments: list[str], objects: list[dict[str, Any]]) -> str:
    with tempfile.TemporaryDirectory() as directory, printed() as out:
        file = Path(directory) / "objects.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        call([*arguments, "-f", str(file)])
    return out.getvalue()


EXPLAINED = ["p", "gated", "elsewhere", "unknown"]


@settings(max_examples=25, deadline=None)
@given(HOSTILE, st.sampled_from(EXPLAINED), st.sampled_from(["text", "wide", "json", "yaml"]))
def test_explain(hostile: str, name: str, output: str) -> None:
    shown = run(["explain", name, "-o", output], cluster(hostile))
    assert_harmless(shown)
    if not shown.startswith("error:") and output in ("json", "yaml"):
        assert (json.loads(shown) if output == "json" else yaml.safe_load(shown))["pod"] == f"default/{name}"


@settings(max_examples=10, deadline=None)
@given(HOSTILE, st.booleans())
def test_explain_of_hostile_names_in_full_detail(hostile: str, is_verbose: bool) -> None:
    more = ["-v"] if is_verbose else []
    assert_harmless(run(["explain", f"p{hostile}", "-n", hostile, "--node", f"n-{hostile}", *more], cluster(hostile)))


@settings(max_examples=20, deadline=None)
@given(HOSTILE, st.sampled_from([["jobs"], ["queues"], ["explain", "workload/lost"], ["explain", "workload/running"]]))
def test_queueing_commands(hostile: str, command: list[str]) -> None:
    for output in ("text", "json"):
        shown = run([*command, "-o", output], queues(hostile))
        assert_harmless(shown)
        if output == "json" and not shown.startswith("error:"):
            assert json.loads(shown)


@settings(max_examples=10, deadline=None)
@given(HOSTILE)
def test_scenario(hostile: str) -> None:
    steps = [{"apply": [{"node": {"name": "n"}}, {"pod": {"name": "p"}}]}, {"expect": {"pods": {"p": {"node": "x"}}}}]
    item = {"id": f"i{hostile}", "title": hostile, "tier": "common", "steps": steps}
    with tempfile.TemporaryDirectory() as directory, printed() as out:
        file = Path(directory) / "scenarios.yaml"
        file.write_text(yaml.safe_dump({"version": 1, "kind": "scheduling", "scenarios": [item]}))
        try:
            call(["scenario", str(file)])
        except SystemExit:
            assert "FAIL" in out.getvalue()
    assert_harmless(out.getvalue())


@given(HOSTILE)
def test_tables_of_the_queue(hostile: str) -> None:
    pod = QueuedPodReport(
        hostile, hostile, hostile, 0, 1, 0.0, 0.0, rejectors=(hostile,), message=hostile, gated_by=hostile
    )
    shown = queue_command.render(SchedulerReport(0.0, {"gated": 1}, gated=(pod,), unschedulable=(pod,)))
    assert_harmless(shown)
    assert len(shown.split("\n")) == 5
    assert_harmless(columns(["A", "B"], [(hostile, hostile)]))


@given(HOSTILE)
def test_timelines(hostile: str) -> None:
    kinds = ("moved", "rejected", "failed", "asked", "bound")
    items = tuple(TimelineItem(0.0, kind, f"d{hostile}", hostile) for kind in kinds)
    shown = render_timeline(Timeline(f"default/{hostile}", "uid", items))
    assert_harmless(shown)
    assert len(shown.split("\n")) == 2 + len(items)


@given(HOSTILE)
def test_tables_and_frames_show_markup_as_it_is(hostile: str) -> None:
    text = f"x{hostile}"
    with printed() as out:
        console = PlainConsole(width=400)
        table = Table("NAME", title=text)
        table.add_row(text, Text(text))
        console.print(table)
        console.print(f"case {text}", style="bold", soft_wrap=True)
    assert not {sign for sign in out.getvalue() if not sign.isprintable() and sign != "\n"}
    if hostile.isprintable():
        assert out.getvalue().count(text) == 4


def test_the_demo_draws_with_the_console_that_escapes() -> None:
    text = rendered_frame("[red]\x1b[31m\u202e")
    assert "[red]\\x1b[31m\\u202e" in text


def rendered_frame(reason: str) -> str:
    with printed() as out:
        console = PlainConsole(width=120)
        now = moment()
        pending = tuple(replace(line, reason=reason) for line in now.picture.pending)
        view = DemoView(console)
        now = replace(now, picture=replace(now.picture, pending=pending))
        view.summary(now)
        console.print(view.frame(now))
    return out.getvalue()


def test_every_command_writes_through_the_same_door() -> None:
    """A new command that prints by itself would print what objects say."""
    doors = {*("cli/output.py", "cli/terminal.py", "cli/status_line.py", "cli/main.py", "cli/logs.py", "cli/errors.py")}
    forbidden = {"print", "click.echo", "click.secho", "Console", "rich.print", "sys.stdout.write", "sys.stderr.write"}
    found = [
        f"{module.path}:{node.lineno}"
        for module in modules()
        if module.path not in doors
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in forbidden
    ]
    assert found == []


# --- logs -------------------------------------------------------------------------------------------------------------


@given(HOSTILE, st.sampled_from(["warnings", "details", "json"]))
def test_logs(hostile: str, form: str) -> None:
    with printed() as out:
        set_up_logging(logging.DEBUG if form == "details" else logging.WARNING)
        if form == "json":
            log_as_json()
        log = logging.getLogger("pilotage.test")
        log.warning("request failed: path=%s pod=%s", f"/api/{hostile}", hostile)
        log.warning(hostile.replace("%", ""))
        try:
            raise ValueError(hostile)
        except ValueError:
            log.exception("went wrong: %s", hostile, stack_info=True)
        report([hostile])
    assert_harmless(out.getvalue())
    if form == "json":
        lines = [json.loads(line) for line in out.getvalue().splitlines()]
        assert len(lines) == 4 and lines[0]["pod"] == hostile


# --- Events, conditions, pages ----------------------------------------------------------------------------------------


@given(HOSTILE)
def test_what_is_written_into_objects(hostile: str) -> None:
    assert_harmless(shortened(hostile))
    assert len(shortened(hostile * 1000).encode()) <= 1024
    condition = PodCondition("PodScheduled", "False", "Unschedulable", hostile, 1, "2026-01-01T00:00:00Z")
    assert condition.message.isprintable() and condition.as_known().message == condition.message
    conditions = Conditions()
    conditions.set("QuotaReserved", False, "Pending", hostile, 0)
    assert all(one.message.isprintable() for one in conditions.written())


@given(HOSTILE)
def test_pages(hostile: str) -> None:
    assert_harmless(error_answer(404, "NotFound", hostile).body.decode())
    assert json.loads(json_answer({hostile: [hostile]}).body) == {hostile: [hostile]}
    assert_harmless(json_answer({hostile: [hostile]}).body.decode())
    shown = text_answer(f"Paths: {hostile}\n").body.decode()
    assert not {sign for sign in shown if not sign.isprintable() and sign not in "\n\t"}
