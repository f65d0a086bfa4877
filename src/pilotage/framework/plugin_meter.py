"""How long plugins take, measured in at most one cycle a second.

A measured cycle takes about twice as long as another: some of the calls cost less than looking at the clock around
them. So a busy scheduler measures one cycle in thousands and a quiet one all of them, which costs neither much. The
state of a cycle that is measured has a timer; code that calls plugins looks for it once per point, not once per node.
PreEnqueue, PreBind, Bind and PostBind are not part of a cycle: there the point as a whole is measured, of the last
three every time.

In columns a plugin speaks of all nodes at once, so there is one observation per plugin, extension point and cycle,
where kube-scheduler has one per node.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from msgspec import Struct

from pilotage.api.results import Nominate, Pending, Reject, Skip, Wait
from pilotage.api.state import CycleState
from pilotage.clock import Clock
from pilotage.framework.profile import Profile, name_of
from pilotage.observe.instruments import Labels
from pilotage.observe.metrics import Metrics

P = ParamSpec("P")
T = TypeVar("T")

PAUSE_SECONDS: Final = 1.0
"""After a measured cycle, the next one is measured no sooner than this."""
_OVER: Final = object()
_FAILED: Final = object()
POINTS: Final = {
    "pre_filter": "PreFilter",
    "filter": "Filter",
    "filter_all": "Filter",
    "add_pod": "PreFilterExtensionAddPod",
    "remove_pod": "PreFilterExtensionRemovePod",
    "post_filter": "PostFilter",
    "pre_score": "PreScore",
    "score": "Score",
    "score_all": "Score",
    "normalize": "ScoreExtensionNormalize",
    "reserve": "Reserve",
    "unreserve": "Unreserve",
    "permit": "Permit",
}
"""Extension points by the method that serves them in a cycle."""
_PART_OF: Final = {"ScoreExtensionNormalize": "Score"}
"""What is a point of its own for a plugin, but belongs to another one for all of them together."""
_WORST_LAST: Final = ("Skip", "Success", "Wait", "Pending", "Unschedulable", "UnschedulableAndUnresolvable", "Error")

_Call = tuple[str, str, float, object]
"""Plugin, point, seconds, answer."""


class _Searches(Struct):
    """How often the same plugins had something to say, and whether a node was found."""

    skip_filter: frozenset[str]
    skip_score: frozenset[str]
    is_placed: bool
    times: int = 1


class CycleTimer:
    """The calls of plugins in one cycle that is measured."""

    def __init__(self, clock: Clock) -> None:
        self._now = clock.monotonic
        self.calls: list[_Call] = []
        self.nested_calls: list[_Call] = []
        """Of filters, within the search for victims: they are part of PostFilter."""

    def timed(self, plugin: str, method: str, call: Callable[..., Any]) -> Callable[..., Any]:
        point = POINTS[method]
        if method == "filter_all":
            return self._timed_columns(plugin, point, call)
        timed = self._timed_call(plugin, point, call, is_filter=method == "filter")
        return self._with_nested_calls(timed) if method == "post_filter" else timed

    def _timed_call(self, plugin: str, point: str, call: Callable[..., Any], *, is_filter: bool) -> Callable[..., Any]:
        """That a filter rejects a node is no failure of the point: what counts is that the plugin could answer."""
        now, note = self._now, self.calls.append

        def timed(*args: Any) -> Any:
            started = now()
            answer: object = _FAILED
            try:
                answer = call(*args)
                return answer
            finally:
                result = None if is_filter and answer is not _FAILED else answer
                note((plugin, point, now() - started, result))

        return timed

    def _with_nested_calls(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any) -> Any:
            before = len(self.calls)
            try:
                return call(*args)
            finally:
                self.nested_calls += self.calls[before:-1]
                del self.calls[before:-1]

        return timed

    def _timed_columns(self, plugin: str, point: str, call: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
        """For a generator: what counts is the time that it runs, not the time between its answers."""
        now, note = self._now, self.calls.append

        def timed(*args: Any) -> Iterator[Any]:
            answers: Iterator[Any] | None = None
            while True:
                started = now()
                found = _FAILED
                try:
                    answers = iter(call(*args)) if answers is None else answers
                    found = next(answers, _OVER)
                finally:
                    note((plugin, point, now() - started, found))
                if found is _OVER:
                    return
                yield found

        return timed


class PluginMeter:
    """Measures the plugins of one profile."""

    def __init__(self, profile: Profile, metrics: Metrics, clock: Clock) -> None:
        self._profile = profile
        self._metrics = metrics
        self._point_durations = metrics.framework_extension_point_duration_seconds
        self._clock = clock
        self._next_cycle = self._next_gate = -math.inf
        self._searches: list[_Searches] = []
        metrics.plugin_evaluation_total.read_from(self._evaluations)

    # --- a measured cycle -------------------------------------------------------------------------------------

    def run(
        self, work: Callable[Concatenate[CycleState, P], T], state: CycleState, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Do the work of a cycle, and measure the plugins if that was not done just now."""
        now = self._clock.monotonic()
        if now < self._next_cycle:
            return work(state, *args, **kwargs)
        self._next_cycle = now + PAUSE_SECONDS
        state.timer = timer = CycleTimer(self._clock)
        try:
            return work(state, *args, **kwargs)
        finally:
            state.timer = None
            self._observe(timer)

    def _observe(self, timer: CycleTimer) -> None:
        calls, every = timer.calls, (*timer.calls, *timer.nested_calls)
        for (plugin, point), (seconds, status) in _summed(((p, at), s, a) for p, at, s, a in every).items():
            self._metrics.plugin_execution_duration_seconds.observe(seconds, plugin, point, status)
        for whole, (seconds, status) in _summed((_PART_OF.get(at, at), s, a) for _, at, s, a in calls).items():
            self._observe_point(whole, seconds, "Success" if status == "Skip" else status)

    def _observe_point(self, point: str, seconds: float, status: str) -> None:
        self._point_durations.observe(seconds, point, status, self._profile.scheduler_name)

    # --- points that are not part of a cycle -------------------------------------------------------------------

    def gate(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask PreEnqueue, and measure it if that was not done just now."""
        started = self._clock.monotonic()
        if started < self._next_gate:
            return work(*args, **kwargs)
        self._next_gate = started + PAUSE_SECONDS
        answer = work(*args, **kwargs)
        status = "Success" if answer is None else "UnschedulableAndUnresolvable"
        self._observe_point("PreEnqueue", self._clock.monotonic() - started, status)
        return answer

    async def awaited(self, point: str, work: Awaitable[T]) -> T:
        """Await all plugins of a point, and note how long that took."""
        started, status = self._clock.monotonic(), "Error"
        try:
            answer = await work
            status = "Success" if answer is None else "Unschedulable"
            return answer
        finally:
            self._observe_point(point, self._clock.monotonic() - started, status)

    # --- who was asked -----------------------------------------------------------------------------------------

    def note_evaluated(self, state: CycleState, is_placed: bool) -> None:
        """A cycle has searched for a node; its state says which plugins had nothing to say."""
        skip_filter, skip_score = state.skip_filter, state.skip_score
        for search in self._searches:
            if search.is_placed is is_placed and search.skip_filter == skip_filter and search.skip_score == skip_score:
                search.times += 1
                return
        self._searches.append(_Searches(frozenset(skip_filter), frozenset(skip_score), is_placed))

    def _evaluations(self) -> dict[Labels, float]:
        """Searches are counted by who was skipped, which is much the same for all pods; the rest follows."""
        found: Counter[Labels] = Counter()
        for search in self._searches:
            asked: list[tuple[str, Iterable[object], frozenset[str]]] = [
                ("PreFilter", self._profile.pre_filter, search.skip_filter),
                ("Filter", self._profile.filters, search.skip_filter),
            ]
            if search.is_placed:
                asked += [
                    ("PreScore", self._profile.pre_score, search.skip_score),
                    ("Score", self._profile.scores, search.skip_score),
                ]
            for point, plugins, skipped in asked:
                for name in map(name_of, plugins):
                    if name not in skipped:
                        found[name, point, self._profile.scheduler_name] += search.times
        return dict(found)


K = TypeVar("K")


def _summed(calls: Iterable[tuple[K, float, object]]) -> dict[K, tuple[float, str]]:
    """Seconds and the worst status by key."""
    sums: dict[K, tuple[float, str]] = {}
    for key, seconds, answer in calls:
        status = status_of(answer)
        known = sums.get(key)
        if known is not None:
            seconds, status = seconds + known[0], max(known[1], status, key=_WORST_LAST.index)
        sums[key] = (seconds, status)
    return sums


def status_of(answer: object) -> str:
    """What kube-scheduler would call this answer of a plugin."""
    if answer is None:
        return "Success"
    if answer is _FAILED:
        return "Error"
    match answer:
        case Reject() | Pending() if answer.unresolvable:
            return "UnschedulableAndUnresolvable"
        case Reject():
            return "Unschedulable"
        case Pending():
            return "Pending"
        case Nominate():
            return "Success" if answer.node_name else "Unschedulable"
        case Wait():
            return "Wait"
        case Skip():
            return "Skip"
        case _:
            return "Success"
