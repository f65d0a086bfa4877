"""The rules of PreBind (groups, side by side or one after another), Bind and PostBind."""

from __future__ import annotations

import asyncio

import pytest

from pilotage.api import CycleState, Plugin, PreFlight, Reason, Reject, Rejection, Skip
from pilotage.api.points import PreBind
from pilotage.framework.diagnosis import Rejected
from pilotage.framework.errors import PluginError
from pilotage.framework.runner import Runner
from pilotage.testing import node, pod
from tests.framework.scripted_plugins import cluster_of, profile_of, scripted

POD = pod("p").build()
NO = Reject(Reason("No", "no"))
BROKEN = RuntimeError("it broke")
ALONE, BESIDE, OUT_OF_THE_WAY = PreFlight(), PreFlight(allow_parallel=True), Skip(allow_parallel=True)


def runner_of(*plugins: Plugin) -> Runner:
    return Runner(profile_of(*plugins), cluster_of(node("a")).nodes)


def groups_of(runner: Runner, state: CycleState | None = None) -> list[list[PreBind]]:
    return runner.pre_bind_groups(state or CycleState(), POD, "a")


async def pre_bind(*plugins: Plugin) -> Rejected | None:
    runner = runner_of(*plugins)
    state = CycleState()
    return await runner.pre_bind(groups_of(runner, state), state, POD, "a")


# --- PreBind ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "groups"),
    [
        ([], []),
        ([Skip(), Skip()], []),
        ([BESIDE, BESIDE], ["AB"]),
        ([ALONE, ALONE], ["A", "B"]),
        ([BESIDE, BESIDE, ALONE, BESIDE], ["AB", "C", "D"]),
        ([ALONE, Skip(), BESIDE], ["A", "C"]),
        ([BESIDE, Skip(), BESIDE], ["A", "C"]),
        ([BESIDE, OUT_OF_THE_WAY, BESIDE], ["AC"]),
        ([BESIDE, OUT_OF_THE_WAY, ALONE, BESIDE], ["A", "C", "D"]),
        ([BESIDE, OUT_OF_THE_WAY, Skip(), BESIDE], ["A", "D"]),
    ],
    ids=[
        "nobody",
        "nothing to do",
        "side by side",
        "one by one",
        "a loner parts the others",
        "skipped",
        "a loner parts the others though it is skipped",
        "a skipped one that allows others beside it parts nobody",
        "only the loner parts",
        "only the skipped loner parts",
    ],
)
def test_pre_bind_groups(answers: list[PreFlight | Skip], groups: list[str]) -> None:
    plugins = [scripted(name, pre_bind_pre_flight=answer) for name, answer in zip("ABCD", answers, strict=False)]
    found = groups_of(runner_of(*plugins))
    assert ["".join(type(plugin).__name__ for plugin in group) for group in found] == groups


def test_pre_bind_remembers_who_has_nothing_to_do() -> None:
    state = CycleState()
    groups_of(runner_of(scripted("A", pre_bind_pre_flight=Skip()), scripted("B", pre_bind=None)), state)
    assert state.skip_prebind == {"A"}


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, 'PreBindPreFlight A returned "None", which is unsupported'),
        (NO, 'PreBindPreFlight A returned "Reject(.*)", which is unsupported'),
        (BROKEN, 'running PreBindPreFlight "A": RuntimeError: it broke'),
    ],
    ids=["nothing", "rejection", "exception"],
)
def test_pre_flight_answers_with_work_or_skip_and_nothing_else(answer: object, text: str) -> None:
    with pytest.raises(PluginError, match=text) as caught:
        groups_of(runner_of(scripted("A", pre_bind_pre_flight=answer)))
    assert caught.value.plugin == "A"


async def test_groups_run_one_after_another(calls: list[str]) -> None:
    assert await pre_bind(scripted("A", pre_bind=None), scripted("B", pre_bind=None)) is None
    assert calls == ["A.pre_bind", "B.pre_bind"]


async def test_a_rejection_ends_the_groups_after_it(calls: list[str]) -> None:
    assert await pre_bind(scripted("A", pre_bind=NO), scripted("B", pre_bind=None)) == Rejected("A", NO)
    assert calls == ["A.pre_bind"]


async def test_a_group_runs_side_by_side() -> None:
    """Each waits for the other: they can only finish together."""
    met = {name: asyncio.Event() for name in "AB"}

    async def meet(own: str, other: str) -> None:
        met[own].set()
        await met[other].wait()

    plugins = [
        scripted("A", pre_bind_pre_flight=BESIDE, pre_bind=lambda *_: meet("A", "B")),
        scripted("B", pre_bind_pre_flight=BESIDE, pre_bind=lambda *_: meet("B", "A")),
    ]
    assert await pre_bind(*plugins) is None


async def wait_for_ever(ended: list[str]) -> None:
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        ended.append("cancelled")


@pytest.mark.parametrize("answer", [NO, BROKEN], ids=["rejection", "exception"])
async def test_the_first_failure_of_a_group_ends_the_others(answer: Rejection | Exception) -> None:
    ended: list[str] = []
    plugins = [
        scripted("A", pre_bind_pre_flight=BESIDE, pre_bind=lambda *_: wait_for_ever(ended)),
        scripted("B", pre_bind_pre_flight=BESIDE, pre_bind=answer),
    ]
    if answer is NO:
        assert await pre_bind(*plugins) == Rejected("B", NO)
    else:
        with pytest.raises(PluginError, match='running PreBind plugin "B": RuntimeError: it broke'):
            await pre_bind(*plugins)
    assert ended == ["cancelled"]


async def test_of_several_failures_in_a_group_the_first_is_reported() -> None:
    plugins = [scripted(name, pre_bind_pre_flight=BESIDE, pre_bind=RuntimeError(name)) for name in "AB"]
    with pytest.raises(PluginError, match='running PreBind plugin "A": RuntimeError: A'):
        await pre_bind(*plugins)


async def test_pre_bind_makes_an_error_of_odd_answers() -> None:
    with pytest.raises(PluginError, match='running PreBind plugin "A": unexpected answer'):
        await pre_bind(scripted("A", pre_bind=Skip()))


# --- Bind and PostBind ------------------------------------------------------------------------------------------------


async def bind(*plugins: Plugin) -> Rejected | None:
    return await runner_of(*plugins).bind(CycleState(), POD, "a")


async def test_the_first_binder_that_does_not_skip_is_final(calls: list[str]) -> None:
    assert await bind(scripted("A", bind=Skip()), scripted("B", bind=None), scripted("C", bind=NO)) is None
    assert calls == ["A.bind", "B.bind"]


async def test_a_binder_may_reject(calls: list[str]) -> None:
    assert await bind(scripted("A", bind=NO), scripted("B", bind=None)) == Rejected("A", NO)
    assert calls == ["A.bind"]


async def test_a_pod_that_no_one_binds_is_an_error() -> None:
    with pytest.raises(PluginError, match="all bind plugins skipped the pod"):
        await bind(scripted("A", bind=Skip()), scripted("B", bind=Skip()))


@pytest.mark.parametrize("answer", [BROKEN, "bound"], ids=["exception", "nonsense"])
async def test_bind_makes_an_error_of_everything_else(answer: object) -> None:
    with pytest.raises(PluginError, match='running Bind plugin "A": ') as caught:
        await bind(scripted("A", bind=answer))
    assert (caught.value.plugin, caught.value.point) == ("A", "Bind")


async def test_post_bind_runs_all_whatever_they_raise(calls: list[str]) -> None:
    runner = runner_of(scripted("A", post_bind=BROKEN), scripted("B", post_bind=None))
    errors: list[PluginError] = []
    await runner.post_bind(CycleState(), POD, "a", errors.append)
    assert calls == ["A.post_bind", "B.post_bind"]
    assert [(error.plugin, error.point, error.__cause__) for error in errors] == [("A", "PostBind", BROKEN)]
