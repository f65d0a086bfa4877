"""A selector written as text says the same as the requirements it was written from."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotage.model.requirements import Requirement
from pilotage.model.selectors import SelectorError, parse_label_selector

keys = st.sampled_from(["a", "b", "in", "notin", "example.com/c", "d.e_f-g"])
values = st.sampled_from(["", "x", "y", "1", "20", "in", "A.b-c_d"])
numbers = st.integers(0, 100).map(str)
blanks = st.sampled_from(["", " ", "  "])
labels = st.dictionaries(keys, st.one_of(values, numbers), max_size=4)
requirements = st.one_of(
    st.builds(Requirement, keys, st.sampled_from(["In", "NotIn"]), st.lists(values, min_size=1, max_size=3).map(tuple)),
    st.builds(Requirement, keys, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(Requirement, keys, st.sampled_from(["Gt", "Lt"]), st.tuples(numbers)),
)


@given(st.lists(requirements, max_size=4), blanks)
def test_written_selector_reads_back(wanted: list[Requirement], blank: str) -> None:
    text = f"{blank},{blank}".join(_write(requirement, blank) for requirement in wanted)
    assert parse_label_selector(text).requirements == tuple(wanted)


@given(requirements, labels)
def test_opposite_requirements_never_both_hold(requirement: Requirement, own: dict[str, str]) -> None:
    opposites = {"In": "NotIn", "NotIn": "In", "Exists": "DoesNotExist", "DoesNotExist": "Exists"}
    if requirement.operator in opposites:
        opposite = Requirement(requirement.key, opposites[requirement.operator], requirement.values)
        assert requirement.matches(own) != opposite.matches(own)


@given(st.text("ab=!,()<> in/.-\t", max_size=12))
def test_any_text_is_a_selector_or_rejected_with_its_position(text: str) -> None:
    try:
        parse_label_selector(text)
    except SelectorError as error:
        assert 0 <= error.position <= len(text)


def _write(requirement: Requirement, blank: str) -> str:
    key, values = requirement.key, requirement.values
    match requirement.operator:
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{blank}{key}"
        case "Gt" | "Lt":
            return f"{key}{blank}{'>' if requirement.operator == 'Gt' else '<'}{blank}{values[0]}"
        case "In" if len(values) == 1:
            return f"{key}{blank}={blank}{values[0]}"
        case "NotIn" if len(values) == 1:
            return f"{key}{blank}!={blank}{values[0]}"
    word = "in" if requirement.operator == "In" else "notin"
    return f"{key} {word}{blank}({f',{blank}'.join(values)})"
