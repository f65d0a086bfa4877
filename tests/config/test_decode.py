"""Strict decoding by type hints: what is read, and what is said about everything else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

import pytest

from pilotage.config.decode import FieldPlace, decode, decode_partly, unreadable_fields
from pilotage.config.located import Located, read_documents
from pilotage.config.problems import Problem
from pilotage.model.durations import Duration
from pilotage.model.pod_spec import NodeAffinity


class Colour(Enum):
    RED = "red"
    GREEN = "green"


@dataclass(frozen=True, slots=True)
class Part:
    part_name: str
    size: int = 1
    place: FieldPlace = field(default=FieldPlace(), compare=False)


@dataclass(frozen=True, slots=True)
class Everything:
    is_on: bool = False
    count: int = 0
    share: float = 0.0
    text: str = ""
    timeout: Duration = 1.0
    maybe_timeout: Duration | None = None
    mode: Literal["fast", "slow"] = "fast"
    colour: Colour = Colour.RED
    parts: tuple[Part, ...] = ()
    main_part: Part | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    levels: Mapping[Literal["low", "high"], int] = field(default_factory=dict)
    port: int | str = 0
    part_or_list: Part | tuple[str, ...] = ()
    anything: Any = None
    raw: Located | None = None
    affinity: NodeAffinity | None = None

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.count < 0:
            yield "count", "must not be negative"
        for at, part in enumerate(self.parts):
            if part.size > 10:
                yield f"parts[{at}].size", "is too large"


def decoded(text: str) -> Everything:
    problems: list[Problem] = []
    value = decode(Everything, read_documents(text)[0][0], problems)
    assert problems == []
    assert value is not None
    return value


def problems_of(text: str) -> list[str]:
    problems: list[Problem] = []
    assert decode(Everything, read_documents(text)[0][0], problems, "top") is None
    return [problem.text("f") for problem in problems]


def test_every_kind_of_field_is_read() -> None:
    value = decoded(
        """
        isOn: yes
        count: -0
        share: 3
        text: hello
        timeout: 1m30s
        maybeTimeout: 250ms
        mode: slow
        colour: green
        parts: [{partName: a}, {partName: b, size: 2}]
        mainPart: {partName: c}
        limits: {cpu: 3}
        levels: {high: 1}
        port: http
        partOrList: [x, z]
        anything: {a: [1, null]}
        raw: {deep: [1]}
        affinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - {weight: 5, preference: {matchExpressions: [{key: k, operator: Exists}]}}
        """
    )
    assert (value.is_on, value.count, value.share, value.text) == (True, 0, 3.0, "hello")
    assert (value.timeout, value.maybe_timeout) == (90.0, 0.25)
    assert (value.mode, value.colour) == ("slow", Colour.GREEN)
    assert value.parts == (Part("a"), Part("b", 2))
    assert value.main_part == Part("c")
    assert (value.limits, value.levels) == ({"cpu": 3}, {"high": 1})
    assert (value.port, value.part_or_list) == ("http", ("x", "z"))
    assert value.anything == {"a": [1, None]}
    assert value.raw is not None
    assert value.raw.plain() == {"deep": [1]}
    assert value.affinity is not None
    assert value.affinity.preferred[0].weight == 5
    assert value.affinity.preferred[0].preference.match_expressions[0].key == "k"


def test_a_place_is_filled_in_and_cannot_be_given() -> None:
    assert decoded("parts:\n- partName: a\n- partName: b\n").parts[1].place == FieldPlace(3, "parts[1]")
    assert problems_of("mainPart: {partName: a, place: 1}") == ["f:1: top.mainPart.place: unknown field"]


def test_null_means_not_given() -> None:
    assert decoded("parts: null\ncount: ~\nmaybeTimeout: null\ntext:\nlimits:\n") == Everything()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("isOn: 1", "top.isOn: expected a boolean, got number 1"),
        ("count: 1.5", "top.count: expected an integer, got number 1.5"),
        ("count: true", "top.count: expected an integer, got boolean true"),
        ("count: '5'", 'top.count: expected an integer, got string "5"'),
        ("count: 9223372036854775808", "top.count: 9223372036854775808 is too large a number"),
        ("share: x", 'top.share: expected a number, got string "x"'),
        ("text: 5", "top.text: expected a string, got number 5 (put it in quotes)"),
        ("text: [a]", "top.text: expected a string, got a list"),
        ("timeout: 15", "top.timeout: expected a duration such as 15s, got number 15"),
        ("timeout: 15 s", 'top.timeout: "15 s" is not a duration'),
        ("mode: fats", 'top.mode: Unsupported value: "fats" (did you mean "fast"?): supported values: "fast", "slow"'),
        ("mode: 1", "top.mode: expected a string, got number 1"),
        ("colour: blue", 'top.colour: Unsupported value: "blue": supported values: "red", "green"'),
        ("parts: {}", "top.parts: expected a list, got an object"),
        ("parts: [1]", "top.parts[0]: expected an object, got number 1"),
        ("parts: [{size: 1}]", "top.parts[0].partName: Required value"),
        ("parts: [{partName: null}]", "top.parts[0].partName: Required value"),
        ("limits: [1]", "top.limits: expected an object, got a list"),
        ("limits: {cpu: x}", 'top.limits.cpu: expected an integer, got string "x"'),
        ("levels: {hihg: 1}", 'top.levels.hihg: unknown field (did you mean "high"?)'),
        ("port: [1]", "top.port: expected an integer or a string, got a list"),
        ("port: true", "top.port: expected an integer or a string, got boolean true"),
        ("partOrList: [1]", "top.partOrList[0]: expected a string, got number 1 (put it in quotes)"),
        ("partOrList: {size: 1}", "top.partOrList.partName: Required value"),
        ("isOnn: true", 'top.isOnn: unknown field (did you mean "isOn"?)'),
        ("is_on: true", 'top.is_on: unknown field (did you mean "isOn"?)'),
        ("ISON: true", 'top.ISON: unknown field (did you mean "isOn"?)'),
        ("zebra: true", "top.zebra: unknown field"),
        (
            "affinity: {required: {}}",
            "top.affinity.required: unknown field",
        ),
        ("count: -1", "top.count: must not be negative"),
        ("[1]", "top: expected an object, got a list"),
    ],
)
def test_one_problem_is_named_with_its_path(text: str, problem: str) -> None:
    found = problems_of(text)
    assert len(found) == 1
    assert found[0].startswith(f"f:1: {problem}")


def test_all_problems_are_found_at_once_with_their_lines() -> None:
    text = "isOn: 1\ncoutn: 2\ncount: -1\nparts:\n- partName: a\n  size: 11\n- partName: 5\nmode: x\n"
    assert [line.split(": ")[0] + " " + line.split(": ")[1] for line in problems_of(text)] == [
        "f:1 top.isOn",
        "f:2 top.coutn",
        "f:7 top.parts[1].partName",
        "f:8 top.mode",
        "f:3 top.count",
    ]


def test_what_could_not_be_read_is_not_complained_about_twice() -> None:
    found = problems_of("parts: [{partName: a, size: x}]\ncount: -1")
    assert [line.split(": ")[1] for line in found] == ["top.parts[0].size", "top.count"]


def test_a_class_may_reject_its_values_by_raising() -> None:
    @dataclass(frozen=True)
    class Even:
        number: int = 0

        def __post_init__(self) -> None:
            if self.number % 2:
                raise ValueError(f"{self.number} is odd")

    problems: list[Problem] = []
    assert decode(Even, read_documents("\nnumber: 3")[0][0], problems) is None
    assert problems == [Problem(2, "", "3 is odd")]


def test_decoding_partly_keeps_what_could_be_read() -> None:
    problems: list[Problem] = []
    value = decode_partly(Everything, read_documents("count: 3\nisOn: x\nlimits: {a: 1, b: x}")[0][0], problems)
    assert value == Everything(count=3, limits={"a": 1})
    assert len(problems) == 2


def test_types_that_files_cannot_carry_are_found_before_a_file_uses_them() -> None:
    @dataclass(frozen=True)
    class Inner:
        when: set[int] = frozenset()  # type: ignore[assignment]

    @dataclass(frozen=True)
    class Outer:
        fine: tuple[Everything, ...] = ()
        data: bytes = b""
        inner: tuple[int | None, ...] | None = None

    assert list(unreadable_fields(Everything)) == []
    assert list(unreadable_fields(Outer)) == [("data", bytes)]
    assert [path for path, _ in unreadable_fields(Inner)] == ["when"]
