"""Plugins from files, packages and programs: what is loaded, and how everything else is rejected."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from pilotage.api import Filter, Plugin, Score
from pilotage.framework import plugin_files
from pilotage.framework.plugin_files import (
    LoadedPlugin,
    PluginFileError,
    given_plugins,
    installed_plugins,
    load_plugin_file,
    load_plugin_files,
    reject_duplicates,
)

GOOD = """
from pilotage.api import Filter, Plugin, Score

class Base(Plugin, Filter):
    def filter(self, state, pod, node):
        return None

class _Private(Base):
    pass

class Sunny(Base):
    name = "SunnyNodes"

class Rainy(Base, Score):
    def score(self, state, pod, node):
        return 1
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "weather.py"


def problems_of(path: Path, source: str | bytes) -> list[str]:
    path.write_bytes(source.encode() if isinstance(source, str) else source)
    with pytest.raises(PluginFileError) as raised:
        load_plugin_file(path)
    return [line.removeprefix(str(path)) for line in raised.value.lines]


def test_the_plugins_of_a_file_are_its_public_classes_that_are_no_bases(file: Path) -> None:
    file.write_text(GOOD)
    assert [cls.plugin_name() for cls in load_plugin_file(file)] == ["SunnyNodes", "Rainy"]


def test_two_files_of_the_same_name_do_not_meet(tmp_path: Path) -> None:
    paths = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        paths.append(tmp_path / folder / "same.py")
        paths[-1].write_text(GOOD.replace("SunnyNodes", f"Sunny{folder}").replace("Rainy", f"Rainy{folder}"))
    loaded = load_plugin_files(paths)
    assert [(plugin.name, plugin.origin) for plugin in loaded] == [
        ("Sunnya", str(paths[0])),
        ("Rainya", str(paths[0])),
        ("Sunnyb", str(paths[1])),
        ("Rainyb", str(paths[1])),
    ]
    assert loaded[0].cls.__module__ != loaded[2].cls.__module__


def test_a_module_beside_the_file_can_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    (tmp_path / "beside_the_plugin.py").write_text("REASON = 1\n")
    file = tmp_path / "plugin.py"
    file.write_text("import beside_the_plugin\n" + GOOD)
    assert load_plugin_file(file)


HEAD = "from pilotage.api import *\nfrom pilotage.api import Plugin, Filter, Score, Bind, PreBind, Reserve, on_event\n"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("x = (1,\ndef f(): pass\n", ":1: is no valid Python: '(' was never closed"),
        ("\n\nclass X(:\n", ":3: is no valid Python: "),
        ("\nimport no_such_module_anywhere\n", ":2: cannot be imported: ModuleNotFoundError: No module named"),
        (
            "from pilotage.api import Fliter\n",
            ':1: cannot be imported: pilotage.api has no Fliter (did you mean "Filter"?)',
        ),
        ("def f():\n    return 1 / 0\n\nf()\n", ":2: cannot be imported: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)\n", ":1: cannot be imported: SystemExit: 3"),
        ("x = 1\n", ": has no plugin: no class in it derives from pilotage.api.Plugin"),
        ("from pilotage.plugins import NodeName\n", ": has no plugin: "),
        (
            HEAD + "class X(Filter):\n    def filter(self, state, pod, node): ...\n",
            ":3: X does not derive from Plugin: write class X(Plugin, Filter)",
        ),
        (
            HEAD + "class X(Plugin):\n    pass\n",
            ":3: X serves no extension point; name at least one beside Plugin, such as class X(Plugin, Filter)",
        ),
        (
            HEAD + "class X(Plugin, Filter):\n    pass\n",
            ":3: X does not implement filter(self, state, pod, node), which Filter asks for",
        ),
        (
            HEAD + "class X(Plugin, Filter):\n    name = 'X'\n    def fliter(self, state, pod, node): ...\n",
            ":5: X does not implement filter(self, state, pod, node), which Filter asks for "
            '(is "fliter" meant to be it?)',
        ),
        (
            HEAD + "class X(Plugin, Filter):\n\n    def filter(self, pod, node): ...\n",
            ":5: X.filter must take (self, state, pod, node), not (self, pod, node)",
        ),
        (
            HEAD + "class X(Plugin, Filter):\n    def filter(self, state, pod, node, more): ...\n",
            ":4: X.filter must take (self, state, pod, node), not (self, state, pod, node, more)",
        ),
        (
            HEAD + "class X(Plugin, Score):\n    async def score(self, state, pod, node): ...\n",
            ":4: X.score must be written as def, not async def score(self, state, pod, node)",
        ),
        (
            HEAD + "class X(Plugin, Bind):\n    def bind(self, state, pod, node_name): ...\n",
            ":4: X.bind must be written as async def bind(self, state, pod, node_name)",
        ),
        (
            HEAD + "class X(Plugin, PreBind):\n    async def pre_bind(self, s, p, n): ...\n"
            "    def pre_bind_pre_flight(self): ...\n",
            ":5: X.pre_bind_pre_flight must take (self, state, pod, node_name), not (self)",
        ),
        (
            HEAD + "class X(Plugin, Filter):\n    filter = 3\n",
            ":3: X.filter must be a method, not 3",
        ),
        (
            HEAD + "class X(Plugin, Filter):\n    def filter(self, s, p, n): ...\n    def sign(self): ...\n",
            ":5: X.sign must take (self, pod), not (self)",
        ),
        (
            HEAD + "class X(Plugin, Filter):\n    def filter(self, s, p, n): ...\n"
            "    @on_event(Resource.NODE, Action.ADD)\n    def changed(self, pod, new): ...\n",
            ":5: X.changed is under @on_event and must take (self, pod, old, new), not (self, pod, new)",
        ),
        (
            HEAD + "class X(Plugin, Filter):\n    def filter(self, s, p, n): ...\n"
            "    always_queue_on = (ClusterEvent(Resource.NODE, Action.ADD),)\n"
            "    @narrows(Resource.NODE, Action.ADD)\n    def concerned(self, pod, old, new): ...\n",
            ":6: X.concerned is under @narrows and must take (self, old, new), not (self, pod, old, new)",
        ),
        (
            HEAD
            + "class X(Plugin, Filter):\n    def __init__(self, handel): ...\n    def filter(self, s, p, n): ...\n",
            ":4: X.__init__ asks for handel; it may take handle and args",
        ),
        (
            HEAD + "class X(Plugin, Filter):\n    args_type = dict\n    def filter(self, s, p, n): ...\n",
            ":3: X.args_type must be a frozen dataclass, not <class 'dict'>",
        ),
        (
            HEAD + "from dataclasses import dataclass\n@dataclass\nclass A:\n    data: bytes = b''\n"
            "class X(Plugin, Filter):\n    args_type = A\n    def filter(self, s, p, n): ...\n",
            ":4: A.data has type <class 'bytes'>, which configuration files cannot carry",
        ),
        (
            "from __future__ import annotations\nfrom pilotage.api import Filter, Plugin\n"
            "from dataclasses import dataclass\n@dataclass\nclass A:\n    data: Nonsense = 1\n"
            "class X(Plugin, Filter):\n    args_type = A\n    def filter(self, s, p, n): ...\n",
            ":4: A: name 'Nonsense' is not defined",
        ),
        (
            HEAD + "class X(Plugin, Filter):\n    name = 5\n    def plugin_name(): return 'X'\n"
            "    def filter(self, s, p, n): ...\n",
            ":3: X.name must be a string, not 5",
        ),
        (
            HEAD + "class X(Plugin, Filter):\n    name = ' X'\n    def filter(self, s, p, n): ...\n",
            ':3: X.name: " X" cannot be the name of a plugin',
        ),
        (
            HEAD + "class X(Plugin, Filter):\n    def filter(self, s, p, n): ...\n"
            "class Y(Plugin, Filter):\n    name = 'X'\n    def filter(self, s, p, n): ...\n",
            ':5: a plugin named "X" already exists in this file',
        ),
        (b"\xff\xfe", ": is no Python: it is not UTF-8 text"),
    ],
)
def test_a_file_that_cannot_be_used_is_rejected_with_the_line_and_the_way_out(
    file: Path, source: str | bytes, problem: str
) -> None:
    found = problems_of(file, source)
    assert len(found) == 1
    assert found[0].startswith(problem)


def test_all_problems_of_a_file_are_reported_at_once(file: Path) -> None:
    source = (
        HEAD
        + "class X(Plugin, Filter, Reserve):\n    def filter(self, pod): ...\n    def reserve(self, s, p, n): ...\n"
        "class Y(Plugin, Score):\n    async def score(self, state, pod): ...\n"
    )
    assert [line.split(": ")[0] for line in problems_of(file, source)] == [":3", ":4", ":7", ":7"]


@pytest.mark.parametrize(
    "source",
    [
        HEAD + "class X(Plugin, Filter):\n    def filter(self, _state, p, n, extra=None): ...\n",
        HEAD + "class X(Plugin, Filter):\n    def filter(self, *anything): ...\n",
        HEAD + "class X(Plugin, Filter):\n    @staticmethod\n    def filter(s, p, n): ...\n",
        HEAD
        + "class X(Plugin, Filter):\n    def __init__(self, *, args, **more): ...\n    def filter(self, *_): ...\n",
    ],
)
def test_a_method_may_name_its_parameters_as_it_likes(file: Path, source: str) -> None:
    file.write_text(source)
    assert [cls.plugin_name() for cls in load_plugin_file(file)] == ["X"]


def test_a_file_that_is_not_there_is_named_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(PluginFileError, match="there is no such file; pilotage plugin new NAME writes a file"):
        load_plugin_file(tmp_path / "none.py")
    with pytest.raises(PluginFileError, match="cannot be read: is a directory"):
        load_plugin_file(tmp_path)
    (tmp_path / "plugin.txt").write_text("x = 1")
    with pytest.raises(PluginFileError, match=r"is no Python file: its name must end in \.py"):
        load_plugin_file(tmp_path / "plugin.txt")


def test_a_file_that_failed_leaves_nothing_behind(file: Path) -> None:
    before = set(sys.modules)
    problems_of(file, "raise ValueError('no')\n")
    assert set(sys.modules) == before


class Fine(Plugin, Filter):
    def filter(self, state: object, pod: object, node: object) -> None:
        return None


class Unfinished(Plugin, Score):
    """`score` is missing."""


def test_classes_of_a_program_are_checked_like_those_of_a_file() -> None:
    assert [(plugin.name, plugin.cls) for plugin in given_plugins([Fine])] == [("Fine", Fine)]
    with pytest.raises(
        PluginFileError, match=r"test_plugin_files\.Unfinished:\d+: Unfinished does not implement score"
    ):
        given_plugins([Unfinished])
    with pytest.raises(PluginFileError, match=r"builtins\.int: is no class that derives from pilotage\.api\.Plugin"):
        given_plugins([int])  # type: ignore[list-item]


def test_a_name_that_is_taken_is_rejected() -> None:
    with pytest.raises(PluginFileError, match=r'b\.py:\d+: a plugin named "Fine" already exists \(a\.py\)'):
        reject_duplicates([LoadedPlugin(Fine, "a.py"), LoadedPlugin(Fine, "b.py")])


def entry_point(value: str) -> EntryPoint:
    return EntryPoint("weather", value, plugin_files.ENTRY_POINT_GROUP)


def test_installed_packages_offer_plugins_by_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [entry_point("tests.framework.test_plugin_files:Fine")]
    monkeypatch.setattr(plugin_files, "entry_points", lambda group: entries if group == "pilotage.plugins" else [])
    loaded = installed_plugins()
    assert [(plugin.name, plugin.origin) for plugin in loaded] == [("Fine", "an installed package")]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("no_such_package_anywhere:X", "cannot be imported: ModuleNotFoundError: .*; repair or uninstall the package"),
        ("tests.framework.test_plugin_files:Missing", "cannot be imported: AttributeError: "),
        ("tests.framework.test_plugin_files:HEAD", r"is no class that derives from pilotage\.api\.Plugin"),
        ("tests.framework.test_plugin_files:Unfinished", "Unfinished does not implement score"),
    ],
)
def test_an_entry_point_that_leads_nowhere_is_rejected(
    monkeypatch: pytest.MonkeyPatch, value: str, problem: str
) -> None:
    monkeypatch.setattr(plugin_files, "entry_points", lambda group: [entry_point(value)])
    with pytest.raises(PluginFileError, match=problem) as raised:
        installed_plugins()
    assert raised.value.file.startswith("entry point weather of ")


# --- what would have no effect ----------------------------------------------------------------------------------------


IDLE = {
    "NormalizeScore": (
        "class Idle(Plugin, NormalizeScore, Filter):\n"
        "    def filter(self, state, pod, node): return None\n"
        "    def normalize(self, state, pod, scores): return scores\n",
        "derives from NormalizeScore without Score or VectorScore: it would never be called",
    ),
    "PreFilterExtensions": (
        "class Idle(Plugin, Filter, PreFilterExtensions):\n"
        "    def filter(self, state, pod, node): return None\n"
        "    def add_pod(self, state, pod, added, node): pass\n"
        "    def remove_pod(self, state, pod, removed, node): pass\n",
        "derives from PreFilterExtensions without PreFilter: it would never be called; derive from PreFilter too",
    ),
    "Details": (
        "class Idle(Plugin, PreFilter, Details):\n"
        "    def pre_filter(self, state, pod, nodes): return None\n"
        "    def details(self, state, pod, node): return []\n",
        "derives from Details without Filter or VectorFilter",
    ),
    "narrows": (
        "class Idle(Plugin, Filter):\n"
        "    def filter(self, state, pod, node): return None\n"
        "    @on_event(Resource.NODE, Action.ADD)\n"
        "    def hint(self, pod, old, new): return Hint.QUEUE\n"
        "    @narrows(Resource.NODE, Action.DELETE)\n"
        "    def narrow(self, old, new): return Affected.all()\n",
        "Idle.narrow narrows events (Node, Delete) of which the plugin does not hear; put a hint for them under @on_",
    ),
    "raw kinds": (
        "class Idle(Plugin, Filter):\n    raw_kinds = 'Pod'\n    def filter(self, state, pod, node): return None\n",
        "Idle.raw_kinds must be a set of kinds, such as frozenset([\"Pod\"]), not 'Pod'",
    ),
    "close": (
        "class Idle(Plugin, Filter):\n    def filter(self, state, pod, node): return None\n    def close(self): pass\n",
        "Idle.close must be written as async def close(self)",
    ),
}
IMPORTS = (
    "from pilotage.api import (Action, Affected, Details, Filter, Hint, NormalizeScore, Plugin, PreFilter,"
    " PreFilterExtensions, Resource, narrows, on_event)\n"
)


@pytest.mark.parametrize("case", IDLE)
def test_what_would_never_be_called_is_an_error(case: str, file: Path) -> None:
    source, problem = IDLE[case]
    found = problems_of(file, IMPORTS + source)
    assert len(found) == 1 and problem in found[0]


@pytest.mark.parametrize(
    ("heard", "narrowed"),
    [
        ("Resource.POD, Action.DELETE", "Resource.ASSIGNED_POD, Action.DELETE"),
        ("Resource.ASSIGNED_POD, Action.ALL", "Resource.POD, Action.ADD"),
        ("Resource.ANY, Action.ALL", "Resource.NODE, Action.ADD"),
    ],
)
def test_a_narrowing_of_some_of_the_events_is_all_right(heard: str, narrowed: str, file: Path) -> None:
    source, _ = IDLE["narrows"]
    source = source.replace("Resource.NODE, Action.ADD", heard).replace("Resource.NODE, Action.DELETE", narrowed)
    file.write_text(IMPORTS + source)
    assert load_plugin_file(file)


def test_classes_that_look_like_plugins_and_are_none_are_reported(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.write_text(GOOD + "\nclass Forgotten(Filter):\n    def filter(self, state, pod, node):\n        return None\n")
    assert [cls.plugin_name() for cls in load_plugin_file(file)] == ["SunnyNodes", "Rainy"]
    assert [record.message.removeprefix(str(file)) for record in caplog.records] == [
        ":4: Base is no plugin itself, because _Private, Sunny, Rainy derives from it; call it _Base if that is meant",
        ":18: Forgotten is no plugin, because it does not derive from Plugin; call it _Forgotten if that is meant",
    ]
