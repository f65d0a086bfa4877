"""What is logged at which `-v`, with keys that a log store can be asked for, and nothing at all below."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import pytest

from pilotage.api import CycleState, Permit, Plugin, Wait
from pilotage.cli.json_logs import taken_apart
from pilotage.model import Pod
from pilotage.observe.verbosity import ATTEMPTS, HINT_ANSWERS, QUEUE_MOVES, level_of, verbosity_of
from pilotage.testing import node, pod
from tests.cycle.live_scheduler import live

_SENTENCES = {
    "attempt found a node": 2,
    "attempt failed": 2,
    "pod bound": 2,
    "binding failed": 2,
    "pod preempted": 2,
    "pod moved": 4,
    "hint answered": 5,
}


class Hold(Plugin, Permit):
    seconds: ClassVar[float] = 1

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Wait | None:
        return Wait(self.seconds) if pod.name == "held" else None


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    """Sentence and keys of what the scheduler said of pods, in order."""
    return [(text, keys) for text, keys in map(taken_apart, caplog.records) if text in _SENTENCES]


@pytest.mark.parametrize("verbosity", range(15))
def test_each_verbosity_has_a_level_and_shows_what_lower_ones_show(verbosity: int) -> None:
    level = level_of(verbosity)
    assert 0 < level <= logging.INFO
    assert level_of(verbosity + 1) <= level
    assert verbosity_of(level) == (verbosity if 2 <= verbosity <= 13 else 0 if verbosity < 2 else 13)


def test_levels_of_the_library_keep_their_meaning() -> None:
    assert level_of(4) == logging.DEBUG == QUEUE_MOVES
    assert HINT_ANSWERS < QUEUE_MOVES < ATTEMPTS < logging.INFO
    assert verbosity_of(logging.WARNING) == verbosity_of(logging.INFO) == 0


@pytest.mark.parametrize("verbosity", [0, 1, 2, 3, 4, 5, 9])
async def test_only_what_was_asked_for_is_logged(verbosity: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(level_of(verbosity)):
        async with live(Hold) as world:
            await world.put(node("n").cpu(4), pod("low").requests(cpu=3).priority(1))
            await world.put(pod("high").requests(cpu=3).priority(5), pod("giant").requests(cpu=50), pod("held"))
            await world.after(2)
            await world.put(node("m").cpu(8))
    seen = {text for text, _ in told(caplog)}
    assert seen == {text for text, least in _SENTENCES.items() if least <= verbosity}


async def test_attempts_bindings_and_preemptions_name_pod_node_and_plugins(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(level_of(2)):
        async with live() as world:
            await world.put(node("n").cpu(4), pod("low").requests(cpu=3).priority(1))
            await world.put(pod("high").requests(cpu=3).priority(5))
    (_, placed), (_, bound), (_, failed), (_, preempted), *_ = told(caplog)
    assert (placed["pod"], placed["node"], placed["permit"], placed["attempt"]) == ("default/low", "n", "allowed", "1")
    assert (bound["pod"], bound["node"], bound["attempts"]) == ("default/low", "n", "1")
    assert (failed["pod"], failed["reason"], failed["plugins"], failed["nominated"]) == (
        "default/high",
        "Unschedulable",
        "NodeResourcesFit",
        "n",
    )
    assert failed["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert preempted == {
        "pod": "default/low",
        "preemptor": "default/high",
        "node": "n",
        "plugin": "DefaultPreemption",
    }


async def test_a_plugin_that_holds_a_pod_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(level_of(2)):
        async with live(Hold) as world:
            await world.put(node("n").cpu(4), pod("held"))
            await world.after(1)
    lines = told(caplog)
    assert lines[0][1]["permit"] == "wait:Hold"
    assert lines[1][0] == "binding failed" and "timeout after waiting 1s at plugin Hold" in lines[1][1]["message"]


async def test_moves_and_hint_answers_tell_why_a_pod_moved(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(level_of(5)):
        async with live() as world:
            await world.put(node("n").cpu(1), pod("a").requests(cpu=2), pod("b").requests(cpu=2))
            caplog.clear()
            await world.put(node("m").cpu(1))
            await world.put(node("o").cpu(2))
    lines = told(caplog)
    answers = [keys for text, keys in lines if text == "hint answered"]
    assert [(one["plugin"], one["object"], one["hint"], one["pods"]) for one in answers[:2]] == [
        ("NodeResourcesFit", "m", "QueueSkip", "2"),
        ("NodeResourcesFit", "o", "Queue", "2"),
    ]
    moved = [keys for text, keys in lines if text == "pod moved"]
    assert {(one["pod"], one["queue"], one["event"]) for one in moved[:2]} == {
        ("default/a", "backoff", "NodeAdd"),
        ("default/b", "backoff", "NodeAdd"),
    }
