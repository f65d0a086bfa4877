"""Selectors that were read once say the same as the selectors themselves, and take no more steps than needed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.model.label_matcher import SelectorIndex, matcher_of
from pilotage.model.selectors import LabelSelector, LabelSelectorRequirement

_KEYS = st.sampled_from(["a", "b", "c"])
_VALUES = st.sampled_from(["1", "2", "3"])
_LABELS = st.dictionaries(_KEYS, _VALUES)
_OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Nonsense"])
_EXPRESSIONS = st.builds(LabelSelectorRequirement, _KEYS, _OPERATORS, st.lists(_VALUES, max_size=10).map(tuple))
_SELECTORS = st.builds(LabelSelector, _LABELS, st.lists(_EXPRESSIONS, max_size=3).map(tuple))


class Counted(dict[str, str]):
    """Labels that count how often they were asked for one."""

    asked = 0

    def get(self, key: str, default: str | None = None) -> str | None:  # type: ignore[override]
        self.asked += 1
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self.asked += 1
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        for key in super().__iter__():
            self.asked += 1
            yield key


def expression(key: str, operator: str, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key, operator, values)


@given(_SELECTORS, _LABELS)
def test_matcher_says_the_same_as_the_selector(selector: LabelSelector, labels: dict[str, str]) -> None:
    if any(each.operator == "Gt" for each in selector.match_expressions):
        assert not matcher_of(selector).matches(labels), "labels of pods are not compared by size"
    else:
        assert matcher_of(selector).matches(labels) == selector.matches(labels)


@given(st.lists(_SELECTORS, max_size=6), _LABELS)
def test_index_leaves_out_only_selectors_that_do_not_match(
    selectors: list[LabelSelector], labels: dict[str, str]
) -> None:
    index = SelectorIndex((matcher_of(selector), number) for number, selector in enumerate(selectors))
    candidates = list(index.candidates(labels))
    assert len(candidates) == len(set(candidates)), "each once"
    assert {number for number, one in enumerate(selectors) if matcher_of(one).matches(labels)} <= set(candidates)


@pytest.mark.parametrize("operator", ["NotIn", "DoesNotExist", "In", "Exists"])
def test_long_selector_takes_few_steps_for_few_labels(operator: str) -> None:
    values = ("v",) if operator.endswith("In") else ()
    matcher = matcher_of(LabelSelector({}, tuple(expression(f"k{i}", operator, *values) for i in range(20_000))))
    labels = Counted(app="web", tier="front", zone="a")
    matcher.matches(labels)
    assert labels.asked < 10


def test_values_that_repeat_are_read_in_linear_time() -> None:
    many = tuple(expression("app", "NotIn", f"v{i}") for i in range(50_000))
    matcher = matcher_of(LabelSelector({}, many))
    assert not matcher.matches({"app": "v49999"})
    assert matcher.matches({"app": "other"})


def test_of_many_selectors_only_those_are_tried_that_want_a_label_which_is_there() -> None:
    selectors = [LabelSelector({"app": f"v{i}"}) for i in range(1_000)]
    selectors += [LabelSelector({}, (expression(f"k{i}", "Exists"),)) for i in range(1_000)]
    selectors += [LabelSelector({}, (expression("tier", "In", *(f"v{i}" for i in range(1_000))),))]
    index = SelectorIndex((matcher_of(selector), number) for number, selector in enumerate(selectors))
    assert sorted(index.candidates({"app": "v7", "k3": "x"})) == [7, 1_003]
    assert list(index.candidates({"tier": "x"})) == [2_000]
