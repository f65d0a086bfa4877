"""The reference of the plugin API and the page for those who come from Go: held to the code."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import msgspec
import pytest
from tools import plugin_reference

import pilotage.api
from pilotage.api import (
    Action,
    CycleState,
    Handle,
    HypotheticalNode,
    NodeTable,
    NodeView,
    Pod,
    QueuedPod,
    Resource,
    WhatIf,
)
from pilotage.framework.plugin_files import load_plugin_file

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = (DOCS / "plugin-reference.md").read_text()
GO = (DOCS / "coming-from-go.md").read_text()
OURS = [
    name
    for row in re.findall(r"^\| .*$", GO, flags=re.MULTILINE)
    for name in re.findall(r"`([^`]+)`", row.replace("\\|", " ").split("|")[2])
]


def test_the_tables_are_those_of_the_code() -> None:
    assert plugin_reference.rendered(REFERENCE) == REFERENCE, "python tools/plugin_reference.py"
    shown = re.findall(r"<!-- table: (\w+) -->", REFERENCE)
    assert shown == list(plugin_reference.TABLES)


@pytest.mark.parametrize("cls", [Handle, NodeView, NodeTable, WhatIf, HypotheticalNode, QueuedPod])
def test_everything_that_a_plugin_sees_says_what_it_is(cls: type) -> None:
    assert [member.name for member in plugin_reference.members(cls) if not member.meaning] == []


def test_all_fields_of_a_pod_are_in_its_table() -> None:
    names = {row.name for row in plugin_reference.TABLES["Pod"]()}
    assert {field.name for field in msgspec.structs.fields(Pod)} <= names
    public = {name for name in vars(Handle) if not name.startswith("_")}
    rows = {re.sub(r"^await |\(.*", "", row.name) for row in plugin_reference.TABLES["Handle"]()}
    assert rows == public


@pytest.mark.parametrize(("enum", "title"), [(Resource, "Resource"), (Action, "Action")])
def test_every_resource_and_action_is_explained(enum: type[Resource] | type[Action], title: str) -> None:
    section = REFERENCE.split(f"| {title} |")[1].split("\n\n")[0]
    explained = re.findall(r"`([A-Z_]+)`", " ".join(line.split(" | ")[0] for line in section.splitlines()[2:]))
    assert sorted(explained) == sorted(enum.__members__)


@pytest.mark.parametrize("name", sorted(set(OURS)))
def test_every_name_of_ours_on_the_page_for_go_exists(name: str) -> None:
    if name == "None":
        return
    owner, _, member = name.partition(".")
    cls = {"handle": Handle, "state": CycleState}.get(owner) or getattr(pilotage.api, owner)
    if member:
        fields = getattr(cls, "__dataclass_fields__", {}).keys() | set(getattr(cls, "__slots__", ()))
        assert hasattr(cls, member) or member in fields


def test_every_point_and_everything_of_the_handle_is_on_the_page_for_go() -> None:
    points = {point.__name__ for point in pilotage.api.points.ALL_POINTS}
    assert points <= {name.partition(".")[0] for name in OURS}
    public = {f"handle.{name}" for name in vars(Handle) if not name.startswith("_")}
    internal = {"handle.back_off", "handle.awaits_view", "handle.recheck_gates"}
    assert public - internal - set(OURS) - {"handle.raw"} == set()


def test_the_example_for_go_is_a_plugin(tmp_path: Path) -> None:
    [source] = re.findall(r"```python\n(.*?)```", GO, flags=re.DOTALL)
    file = tmp_path / "licensed.py"
    file.write_text(source)
    assert [cls.plugin_name() for cls in load_plugin_file(file)] == ["Licensed"]


def test_everything_that_the_api_offers_can_be_imported_by_name() -> None:
    assert len(set(pilotage.api.__all__)) == len(pilotage.api.__all__)
    for name in pilotage.api.__all__:
        assert hasattr(pilotage.api, name), name
    assert inspect.ismodule(pilotage.api)


def test_no_page_and_no_example_imports_a_plugin_from_elsewhere() -> None:
    root = DOCS.parent
    texts = {path: path.read_text() for path in (*root.glob("examples/plugins/*.py"), DOCS / "plugins.md")}
    texts[root / "src/pilotage/cli/plugin_templates/plugin.txt"] = (
        root / "src/pilotage/cli/plugin_templates/plugin.txt"
    ).read_text()
    for path, text in texts.items():
        imported = set(re.findall(r"^(?:from|import) (pilotage[\w.]*)", text, flags=re.MULTILINE))
        assert imported <= {"pilotage.api", "pilotage.testing"}, path
