"""Replay recorded cases and count how many of our answers are equal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pilotage.assembly import SchedulerOptions, options_from_configuration
from pilotage.config.load import configuration_of
from pilotage.conformance.cases import ConformanceCase
from pilotage.conformance.compare import answer_differences
from pilotage.conformance.filter_score import answer_filter_score
from pilotage.conformance.hint import answer_hint, answer_prehint
from pilotage.conformance.preemption import answer_preemption
from pilotage.conformance.world import LoadedCase, load_world

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ConformanceResult:
    """Our answer to one case, and where it differs from the recorded one."""

    case: ConformanceCase
    answer: Answer
    differences: list[tuple[str, Any, Any]]

    @property
    def is_equal(self) -> bool:
        return not self.differences


def _options(case: ConformanceCase) -> SchedulerOptions:
    if case.config is None:
        return SchedulerOptions()
    return options_from_configuration(configuration_of(case.config, case.name))


def load(case: ConformanceCase) -> LoadedCase:
    return load_world(case, _options(case))


def _filter_score(case: ConformanceCase) -> Answer:
    return answer_filter_score(load(case))


def _preemption(case: ConformanceCase) -> Answer:
    return answer_preemption(load(case))


def _hint(case: ConformanceCase) -> Answer:
    return answer_hint(load(case), case)


def _prehint(case: ConformanceCase) -> Answer:
    return answer_prehint(case, _options(case))


ANSWERERS: dict[str, Callable[[ConformanceCase], Answer]] = {
    "filter-score": _filter_score,
    "preemption": _preemption,
    "hint": _hint,
    "prehint": _prehint,
}
"""By kind of case; a kind that is not here is not answered yet."""


def replay(cases: Iterable[ConformanceCase]) -> Iterator[ConformanceResult]:
    for case in cases:
        answer = ANSWERERS[case.kind](case)
        yield ConformanceResult(case, answer, answer_differences(case.expected, answer))
