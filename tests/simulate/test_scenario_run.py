"""A scenario that is not met is told with its first difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilotage.simulate.scenario_file import Scenario, ScenarioError, load_scenarios
from pilotage.simulate.scenario_run import play, scenario_options

SETTING = [
    {"apply": [{"node": {"name": "n", "cpu": 1}}, {"pod": {"name": "fits"}}, {"pod": {"name": "big", "cpu": 2}}]}
]


def written(tmp_path: Path, *steps: dict[str, Any], **more: Any) -> Path:
    scenario = {"id": "s", "title": "t", "tier": "essential", "features": [], "basis": "b", "steps": steps, **more}
    path = tmp_path / "scenarios.yaml"
    path.write_bytes(msgspec.yaml.encode({"version": 1, "kind": "scheduling", "scenarios": [scenario]}))
    return path


def loaded(tmp_path: Path, *steps: dict[str, Any], **more: Any) -> Scenario:
    (scenario,) = load_scenarios(written(tmp_path, *steps, **more))
    return scenario


@pytest.mark.parametrize(
    ("expected", "difference"),
    [
        ({"pods": {"fits": {"node": None}}}, "pod fits: node: expected null, is n"),
        ({"pods": {"big": {"node": "n"}}}, "pod big: node: expected n, is null"),
        ({"pods": {"big": {"queue": "backoff"}}}, "pod big: queue: expected backoff, is unschedulable"),
        ({"pods": {"fits": {"queue": "active"}}}, "pod fits: queue: expected active, is none"),
        ({"pods": {"big": {"attempts": 2}}}, "pod big: attempts: expected 2, is 1"),
        ({"pods": {"big": {"errorBackoff": True}}}, "pod big: errorBackoff: expected True, is False"),
        ({"pods": {"big": {"deleting": True}}}, "pod big: deleting: expected True, is False"),
        ({"pods": {"big": {"nominated": "n"}}}, "pod big: nominated: expected n, is null"),
        ({"pods": {"big": {"pending": ["X"]}}}, "pod big: pending: expected ['X'], is []"),
        (
            {"pods": {"big": {"rejectedBy": ["NodeAffinity"]}}},
            "pod big: rejectedBy: expected ['NodeAffinity'], is ['NodeResourcesFit']",
        ),
        (
            {"pods": {"fits": {"requeuedBy": None}}},
            "pod fits: requeuedBy: expected null, is UnscheduledPodAdd",
        ),
        (
            {"pods": {"big": {"condition": {"reason": "SchedulerError"}}}},
            "pod big: condition: expected {'reason': 'SchedulerError'}, is {'reason': 'Unschedulable'}",
        ),
        ({"at": 1}, "at: expected 1, is 0"),
        ({"popped": ["big"]}, "popped: expected ['big'], were ['fits', 'big']"),
        ({"requeued": ["big"]}, "requeued: expected ['big'], were []"),
        ({"gone": ["big"]}, "gone: big is still there"),
        ({"events": ["big:Scheduled"]}, "events: no big:Scheduled"),
        ({"noEvents": ["big:FailedScheduling"]}, "noEvents: there was big:FailedScheduling"),
        (
            {"metrics": {"queue_incoming_pods_total{event=UnscheduledPodAdd}": 3}},
            "metric queue_incoming_pods_total{event=UnscheduledPodAdd}: expected 3, is 2",
        ),
        ({"metrics": {"invented_total": 0}}, "metric invented_total: expected 0, is not known"),
    ],
)
async def test_every_expectation_can_fail(tmp_path: Path, expected: dict[str, Any], difference: str) -> None:
    outcome = await play(loaded(tmp_path, *SETTING, {"expect": expected}))
    assert outcome.difference == f"step 2 (at 0 s): {difference}"


async def test_only_the_first_difference_is_reported(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, *SETTING, {"expect": {"at": 0}}, {"expect": {"at": 5}}, {"expect": {"at": 6}})
    assert (await play(scenario)).difference == "step 3 (at 0 s): at: expected 5, is 0"


async def test_a_step_that_cannot_be_done_is_a_difference(tmp_path: Path) -> None:
    steps = [*SETTING, {"permit": {"pod": "big", "allow": "X"}}, {"expect": {"at": 0}}]
    assert (await play(loaded(tmp_path, *steps))).difference == (
        "step 2 (permit): LookupError: pod big does not wait for permission"
    )


async def test_a_bind_plugin_comes_before_the_default_one(tmp_path: Path) -> None:
    binder = {"name": "Slow", "bind": {"code": "Error", "seconds": 3, "times": 1}, "events": []}
    scenario = loaded(
        tmp_path,
        {"apply": [{"node": {"name": "n"}}, {"pod": {"name": "p"}}]},
        {"expect": {"pods": {"p": {"node": None, "queue": "none"}}}},
        {"advance": 3},
        {"expect": {"pods": {"p": {"node": None, "errorBackoff": True}}}},
        {"advance": 2},
        {"expect": {"pods": {"p": {"node": "n", "attempts": 2}}}},
        plugins=[binder],
    )
    assert (await play(scenario)).difference == ""


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ({"aply": []}, 'unknown step "aply"'),
        ({"apply": [{"nod": {"name": "n"}}]}, 'unknown object "nod"'),
        ({"apply": [{"node": {"name": "n", "cpus": 1}}]}, "node: unknown field cpus"),
        ({"apply": [{"node": {"cpu": 1}}]}, "node without a name"),
        ({"update": [{"node": "n"}]}, "update of node n: needs set or merge"),
        ({"update": [{"node": "n", "set": {"cpus": 1}}]}, "node: unknown field cpus"),
        ({"expect": {"pod": {}}}, "unknown expectation: pod"),
        ({"expect": {"pods": {"p": {"nodes": "n"}}}}, "unknown expectation of pod p: nodes"),
        ({"inject": {"pod": "p", "steps": [{"advance": 1}]}}, 'unknown step "advance"'),
        ({"delete": 7}, "does not follow the format"),
        ({"apply": [], "delete": []}, "a step has one key"),
    ],
)
def test_a_file_that_makes_no_sense_is_rejected(tmp_path: Path, step: dict[str, Any], problem: str) -> None:
    path = written(tmp_path, step, {"expect": {"at": 0}})
    with pytest.raises(ScenarioError) as rejected:
        load_scenarios(path)
    assert str(rejected.value).startswith(f"{path}: s: ") and problem in str(rejected.value)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"plugins": [{"name": "P", "filtre": {}}]}, "plugin P: unknown key filtre"),
        ({"plugins": [{"name": "P", "filter": {"code": "No"}}]}, "plugin P: filter: unknown code No"),
        ({"plugins": [{"name": "P", "events": [{"event": "Node/Explode"}]}]}, "unknown event 'Node/Explode'"),
        ({"plugins": [{"name": "P", "events": [{"event": "Node/Add", "hint": "maybe"}]}]}, "unknown hint 'maybe'"),
        ({"gate": {}}, "unknown key: gate"),
    ],
)
def test_plugins_and_keys_that_make_no_sense_are_rejected(tmp_path: Path, more: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        loaded(tmp_path, {"expect": {"at": 0}}, **more)


def test_gates_and_configurations_that_do_not_exist_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="gates: unrecognized feature gate: Nope"):
        scenario_options(loaded(tmp_path, {"expect": {"at": 0}}, gates={"Nope": True}))
    with pytest.raises(ScenarioError, match=r"config: .*parallelizm"):
        scenario_options(loaded(tmp_path, {"expect": {"at": 0}}, config={"parallelizm": 3}))


def test_a_scenario_must_expect_something(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="expects nothing"):
        loaded(tmp_path, *SETTING)


@pytest.mark.parametrize("text", ["- a\n", "version: 1\n", "{", "version: 1\nkind: other\n"])
def test_other_files_are_rejected(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.yaml"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=r"other\.yaml: is "):
        load_scenarios(path)


TICKETS_PLUGIN = Path(__file__).parents[1] / "cycle" / "foreign_kinds_world.py"


def ticket(is_open: object) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "default"}
    return {"apiVersion": "example.com/v1", "kind": "Ticket", "metadata": metadata, "spec": {"isOpen": is_open}}


async def test_a_scenario_loads_plugin_files_and_has_objects_of_their_kinds(tmp_path: Path) -> None:
    scenario = loaded(
        tmp_path,
        {"apply": [{"node": {"name": "n"}}, {"pod": {"name": "p"}}]},
        {"expect": {"pods": {"p": {"queue": "unschedulable", "rejectedBy": ["Tickets"]}}}},
        {"apply": [ticket(False)]},
        {"expect": {"pods": {"p": {"queue": "unschedulable"}}, "requeued": []}},
        {"update": [{"kind": "Ticket", "name": "p", "namespace": "default", "merge": {"spec": {"isOpen": True}}}]},
        {"expect": {"requeued": ["p"], "pods": {"p": {"requeuedBy": "tickets.v1.example.comUpdate"}}}},
        {"advance": 10},
        {"expect": {"pods": {"p": {"node": "n"}}}},
        {"delete": [{"kind": "Ticket", "name": "p", "namespace": "default"}]},
        {"apply": [{**ticket("perhaps")}]},
        {"expect": {"pods": {"p": {"node": "n"}}}},
        pluginFiles=[str(TICKETS_PLUGIN)],
    )
    assert (await play(scenario)).difference == ""


def test_a_plugin_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"no_such_plugin.py: there is no such file"):
        loaded(tmp_path, {"expect": {}}, pluginFiles=["no_such_plugin.py"])
