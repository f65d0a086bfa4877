"""Each wrong answer that authors have given: the pod is retried with an error that names plugin, point and value, other
pods are scheduled, and when the plugin answers as it should, so is the pod."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

from pilotage.api import (
    Bind,
    ClusterIndex,
    CycleState,
    Filter,
    Handle,
    NodeNames,
    NodeTable,
    NodeView,
    NormalizeScore,
    Permit,
    Plugin,
    Pod,
    PreFilter,
    PreFilterExtensions,
    QueuedPod,
    QueueSort,
    Reject,
    Score,
    Skip,
    VectorFilter,
    VectorScore,
    Wait,
)
from pilotage.config.load import configuration_of
from pilotage.testing import node, pod
from tests.cycle.live_scheduler import live

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


class Wrong(Plugin):
    """Goes wrong for the pod "bad" while `is_wrong`."""

    name = "Wrong"
    is_wrong: ClassVar[bool] = True

    def goes_wrong(self, pod: Pod) -> bool:
        return self.is_wrong and pod.name == "bad"


def boom() -> Any:
    raise OSError("disk on fire")


class FilterAnswers(Wrong, Filter):
    answer: ClassVar[Callable[[], Any]]

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Any:
        return type(self).answer() if self.goes_wrong(pod) else None


class TextAsRejection(FilterAnswers):
    answer = staticmethod(lambda: Reject("text"))  # type: ignore[arg-type]


class ColumnsWithText(Wrong, VectorFilter):
    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[Any]:
        if self.goes_wrong(pod):
            yield nodes.everywhere(True), "it rains"


class NumbersAsNodeNames(Wrong, PreFilter):
    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Any:
        # A list of names is as good as a set.
        return NodeNames([1]) if self.goes_wrong(pod) else NodeNames(["a", "b"])  # type: ignore[arg-type,list-item]


class OneTextAsNodeNames(Wrong, PreFilter):
    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Any:
        return NodeNames("a") if self.goes_wrong(pod) else None  # type: ignore[arg-type]


class TextAsWait(Wrong, Permit):
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return Wait("5") if self.goes_wrong(pod) else None  # type: ignore[arg-type]


class FloatScore(Wrong, Score):
    def score(self, state: CycleState, pod: Pod, node: NodeView) -> Any:
        return 50.5 if self.goes_wrong(pod) else 50


class BoolScore(Wrong, Score):
    def score(self, state: CycleState, pod: Pod, node: NodeView) -> Any:
        return True if self.goes_wrong(pod) else 1


class FloatScores(Wrong, VectorScore):
    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Any:
        return np.full(len(nodes), 1.5) if self.goes_wrong(pod) else np.zeros(len(nodes), dtype=np.int64)


class BrokenNormalize(Wrong, Score, NormalizeScore):
    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return 5

    def normalize(self, state: CycleState, pod: Pod, scores: Any) -> Any:
        return boom() if self.goes_wrong(pod) else scores


class BindSaysTrue(Wrong, Bind):
    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return True if self.goes_wrong(pod) else Skip()


class BrokenSign(Wrong, Filter):
    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> None: ...

    def sign(self, pod: Pod) -> Any:
        return boom() if self.goes_wrong(pod) else ()


class UnhashableSign(BrokenSign):
    def sign(self, pod: Pod) -> Any:
        return [pod.name] if self.goes_wrong(pod) else ()


CASES: list[tuple[type[Plugin], str, str]] = [
    (TextAsRejection, "Filter", "Reject takes Reasons, such as Reason('NotSunny', 'not sunny'), got 'text'"),
    (ColumnsWithText, "Filter", "expected a Reason beside each mask, got 'it rains'"),
    (NumbersAsNodeNames, "PreFilter", "NodeNames takes names of nodes, got [1]"),
    (OneTextAsNodeNames, "PreFilter", "NodeNames takes names of nodes, such as NodeNames(['a', 'b']), got 'a'"),
    (TextAsWait, "Permit", "Wait takes a number of seconds, got '5'"),
    (FloatScore, "Score", "expected a whole number as score, got 50.5"),
    (BoolScore, "Score", "expected a whole number as score, got True"),
    (FloatScores, "Score", "expected a whole number for each node, got an array of float64"),
    (BrokenNormalize, "NormalizeScore", "OSError: disk on fire"),
    (BindSaysTrue, "Bind", "unexpected answer True"),
    (BrokenSign, "Sign", "OSError: disk on fire"),
    (UnhashableSign, "Sign", "unhashable type: 'list'"),
]
FIRST_BINDER = configuration_of({
    **HEADER,
    "profiles": [{
        "schedulerName": "default-scheduler",
        "plugins": {"bind": {"enabled": [{"name": "Wrong"}, {"name": "DefaultBinder"}], "disabled": [{"name": "*"}]}},
    }],
})  # fmt: skip


@pytest.mark.parametrize(("plugin", "point", "value"), CASES, ids=[case[0].__name__ for case in CASES])
async def test_a_wrong_answer_costs_the_pod_its_attempt_and_nothing_else(
    plugin: type[Wrong], point: str, value: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    configuration = FIRST_BINDER if issubclass(plugin, Bind) else None
    async with live(plugin, configuration=configuration) as world:
        # Pods of equal content are signed once: this one is told apart.
        bad = pod("bad").label("is", "bad").requests(cpu=1)
        await world.put(node("a").cpu(9), node("b").cpu(9), bad, pod("good").requests(cpu=1))
        await world.after(3)
        assert world.node_of("good") and not world.node_of("bad")
        note = dict(world.notes("bad"))["FailedScheduling"]
        assert "Wrong" in note and value in note
        assert world.scheduler.metrics.plugin_errors_total.value("Wrong") >= 2, "it was tried again"
        [logged] = [record for record in caplog.records if "plugin failed" in record.message]
        assert f"plugin=Wrong point={point} pod=default/bad" in logged.message and logged.exc_info
        assert sum(world.requested().values()) == 1000, "nothing is kept for it"
        monkeypatch.setattr(Wrong, "is_wrong", False)
        await world.after(30)
        assert world.node_of("bad")


@pytest.mark.parametrize("key", [None, 5, ("a",), (1, None), (float("nan"),), [1], (True,)], ids=repr)
async def test_a_sort_key_that_cannot_be_compared_is_replaced(key: Any) -> None:
    class Wrong(Plugin, QueueSort):
        def sort_key(self, queued: QueuedPod) -> Any:
            return key if queued.pod.name == "bad" else (queued.timestamp,)

    sort = {"enabled": [{"name": "Wrong"}], "disabled": [{"name": "*"}]}
    profile = {"schedulerName": "default-scheduler", "plugins": {"queueSort": sort}}
    async with live(Wrong, configuration=configuration_of({**HEADER, "profiles": [profile]})) as world:
        await world.put(pod("first"), pod("bad"), pod("last"), node("a"))
        await world.after(40)
        assert [world.node_of(name) for name in ("first", "bad", "last")] == ["a", "a", "a"]
        assert world.scheduler.metrics.plugin_errors_total.value("Wrong") > 0


class Moody(ClusterIndex):
    def __init__(self) -> None:
        self.names: set[str] = set()

    def pod_added(self, pod: Pod, node_name: str) -> None:
        if pod.name == "bad":
            boom()
        self.names.add(pod.name)

    def pod_removed(self, pod: Pod, node_name: str) -> None:
        self.names.discard(pod.name)


class Indexed(Plugin, Filter):
    seen: ClassVar[set[str]] = set()

    def __init__(self, handle: Handle) -> None:
        self._index = handle.index(Moody)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> None:
        type(self).seen = set(self._index.names)


async def test_an_index_that_raises_lacks_that_object_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async with live(Indexed) as world:
        await world.put(node("a"), pod("good"), pod("bad"))
        await world.put(pod("later"))
        assert [world.node_of(name) for name in ("good", "bad", "later")] == ["a", "a", "a"]
        assert Indexed.seen == {"good"}
    assert any("disk on fire" in record.message and "bad" in record.message for record in caplog.records)


class BrokenExtensions(Wrong, PreFilter, PreFilterExtensions, Filter):
    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None: ...

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> None: ...

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> None: ...

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> None:
        if self.goes_wrong(pod):
            boom()


async def test_extensions_that_raise_keep_a_pod_from_preempting_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with live(BrokenExtensions) as world:
        await world.put(node("a").cpu(2), pod("low").requests(cpu=2))
        await world.put(pod("bad").priority(9).requests(cpu=2))
        await world.after(3)
        assert world.node_of("low") == "a" and world.api.deletions == []
        note = dict(world.notes("bad"))["FailedScheduling"]
        assert 'running RemovePod on PreFilter plugin "Wrong": ' in note and "disk on fire" in note
        monkeypatch.setattr(Wrong, "is_wrong", False)
        await world.put(pod("other").priority(5).requests(cpu=2))
        await world.after(1)
        assert world.api.deletions == ["low"], "others preempt"
