"""Expressions that ask for a lot: each is refused when it is compiled, or cheap when it is evaluated."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings

from pilotage.cel import CelCompileError, CelError
from pilotage.cel.cost import MAX_COST, TooCostly, bound
from pilotage.cel.syntax import Call, Fold, Ident, ListOf, Literal, Select, tree_of
from pilotage.model.resource import Device
from pilotage.plugins.dynamic_resources import device_selectors
from pilotage.plugins.dynamic_resources.device_selectors import bind_device, compile_selector

DRIVER = "gpu.example.com"
TEXT = '"' + "a" * 2_000 + '"'
LIST = "[" + ",".join(["1"] * 1_000) + "]"


def holds(expression: str, **attributes: Any) -> bool:
    device = msgspec.convert({"name": "d", "attributes": attributes}, Device)
    return compile_selector(expression).matches(bind_device(DRIVER, device))


def binds(levels: int, first: str, growth: str, last: str) -> str:
    """Values that are made of the value before, so many times; `growth` is written with p for it."""
    steps = [f"cel.bind(x{i}, {growth.replace('p', f'x{i - 1}') if i else first}, " for i in range(levels)]
    return "".join(steps) + last.replace("p", f"x{levels - 1}") + ")" * levels


# --- regular expressions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression",
    [
        f'"{"a" * 60}!".find("^(a+)+$") == ""',
        f'"{"a" * 60}!".findAll("(a|aa)+$").size() == 0',
        f'"{"a" * 60}!".findAll("(a|aa)+$", 3).size() == 0',
        f'!"{"a" * 60}!".matches("^(a+)+$")',
        f'!matches("{"a" * 60}!", "^(a|a)*$")',
        f'"{"a" * 60}!".find("(a*)*b") == ""',
        f'"{"x" * 60}".find("(x+x+)+y") == ""',
    ],
)
def test_patterns_that_make_others_backtrack_are_matched_in_linear_time(expression: str) -> None:
    assert holds(expression)


def test_matches_are_those_of_kubernetes_regular_expressions() -> None:
    assert holds('"abc 123".find("[0-9]+") == "123"')
    assert holds('"123 abc 456".findAll("[0-9]+") == ["123", "456"]')
    assert holds('"123 abc 456".findAll("[0-9]+", 1) == ["123"] && "1".findAll("1", 0) == []')
    # An empty match counts, but not right after another match.
    assert holds('"baac".findAll("a*") == ["", "aa", ""]')
    assert holds('"äöü".findAll(".") == ["ä", "ö", "ü"]')


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('"a".find("(") == ""', r"missing \)"),
        ('"abc".find("(?=b)") == ""', "invalid perl operator"),
        ('"abc".matches("(?<!b)c")', "invalid"),
        (r'"a".find("(a)\\1") == ""', "invalid escape"),
        (r'"a".matches("\\pL{1000}")', "pattern too large"),
        ('"a".findAll("(a{1000}){1000}") == []', "invalid repetition"),
        (" && ".join([r'"a".matches("\\pL{3}")'] * 300), "regular expressions are too large"),
        ('"a".find(device.driver) == ""', "must be written out"),
    ],
)
def test_patterns_that_re2_refuses_are_errors_of_the_expression(expression: str, message: str) -> None:
    with pytest.raises(CelCompileError, match=message):
        compile_selector(expression)


# --- what could take too long -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(f"{LIST}.all(a, {LIST}.all(b, {LIST}.all(c, a == b)))", id="loops in loops"),
        pytest.param("lists.range(5000).map(x, x).size() == 1", id="a list that grows is copied"),
        pytest.param("lists.range(5000).filter(x, true).size() == 1", id="filter grows a list too"),
        pytest.param(f"lists.range(9000).all(x, {LIST}.size() == 1000)", id="a long literal in a loop"),
        pytest.param(f"cel.bind(a, {LIST}, lists.range(9000).all(x, a == a))", id="long lists compared in a loop"),
        pytest.param(f"cel.bind(a, {LIST}, lists.range(9000).all(x, x in a))", id="long lists searched in a loop"),
        pytest.param(f"cel.bind(a, {LIST}, lists.range(9000).all(x, a.isSorted()))", id="functions on lists in a loop"),
        pytest.param(f'cel.bind(a, {TEXT}, lists.range(9000).all(x, a.contains("aab")))', id="texts searched"),
        pytest.param(f'cel.bind(a, {TEXT}, lists.range(9000).all(x, a.split("").size() > 1))', id="texts split"),
        pytest.param(f'cel.bind(a, {TEXT}, lists.range(9000).all(x, a.find("b*$") == ""))', id="texts matched"),
        pytest.param(f'{TEXT}.findAll("a(.*b)?").size() == 1', id="each match looks at the rest"),
        pytest.param(f"{TEXT}.replace('a', {TEXT}).replace('a', {TEXT}).size() > 1", id="replacements multiply"),
        pytest.param(f"{TEXT}.replace('', {TEXT}).replace('', {TEXT}).size() > 1", id="replacements of nothing"),
        pytest.param(f"{TEXT}.split('').join({TEXT}).split('').join({TEXT}).size() > 1", id="joins multiply"),
        pytest.param(
            f"cel.bind(a, {TEXT}.split(''), lists.range(500).all(x, '%s'.format([a]) != ''))", id="lists formatted"
        ),
        pytest.param(binds(25, '"aaaaaaaa"', "p + p", "p.size() > 1"), id="texts that double"),
        pytest.param(binds(25, "[1]", "p + p", "p.size() > 1"), id="lists that double"),
        pytest.param(binds(25, "[1]", "[p, p]", "p == p"), id="lists of lists that double"),
        pytest.param(binds(25, "[1]", "{1: p, 2: p}", "p == p"), id="maps of maps that double"),
        pytest.param(binds(25, "{1: 1}", "{p: p}", "true"), id="types that double"),
        pytest.param("optional.of(1)" + ".optMap(x, x)" * 25 + ".hasValue()", id="syntax trees that double"),
        pytest.param("optional.of(1)" + ".optFlatMap(x, optional.of(x))" * 25 + ".hasValue()", id="optFlatMap too"),
        pytest.param("lists.range(9000).all(a, lists.range(9000).all(b, true))", id="ranges in ranges"),
        pytest.param("lists.range(3000).map(x, lists.range(3000)).flatten().size() > 1", id="lists made flat"),
        pytest.param("lists.range(99).all(x, lists.range(9000).sort().size() > 1)", id="sorted again and again"),
    ],
)
def test_what_could_take_too_long_is_refused_when_it_is_compiled(expression: str) -> None:
    with pytest.raises(CelCompileError, match="exceeds cost limit"):
        compile_selector(expression)


def test_a_loop_of_too_many_turns_is_an_error_of_the_evaluation() -> None:
    with pytest.raises(CelError, match="actual cost limit exceeded"):
        holds("lists.range(10000).all(x, x >= 0)")
    with pytest.raises(CelError, match="actual cost limit exceeded"):
        holds("lists.range(10001).size() > 0")


def test_a_failure_to_compile_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    expression = "device.driver == nothing_that_is_there"
    with pytest.raises(CelCompileError) as first:
        compile_selector(expression)
    monkeypatch.setattr("pilotage.plugins.dynamic_resources.device_selectors._compiled", None)
    with pytest.raises(CelCompileError) as again:
        compile_selector(expression)
    assert again.value is first.value


def test_sensible_selectors_cost_a_small_part_of_what_they_may() -> None:
    names = f'device.attributes["{DRIVER}"]'
    for expression in (
        f'{names}.model == "a100" && {names}.memory >= 40',
        f'{names}.model.matches("^a100-.*-[0-9]+gb$") || {names}.model.startsWith("h")',
        f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0',
        f'["a100", "h100", "h200"].exists(model, {names}.model.lowerAscii() == model)',
        f'cel.bind(a, {names}, a.model.split("-").map(part, part.trim()).join("/") != "")',
        f'"model" in {names} && semver({names}.version).isGreaterThan(semver("1.2.3"))',
    ):
        assert cost(expression) < MAX_COST / 10
    # Not sensible, but possible: every attribute of every domain against a pattern.
    assert cost('device.attributes.all(d, device.attributes[d].all(k, k.matches("^x.*")))') < MAX_COST


def cost(expression: str) -> int:
    environment = cel.NewEnv(variables={}, extensions=[ext_bindings.ExtBindings()])
    return bound(
        tree_of(environment.compile(expression, disable_check=True).serialize()),
        {"device": device_selectors._device_shape(1)},
    )


def test_costs_grow_with_loops_and_sizes() -> None:
    assert cost("lists.range(200).all(x, x > 0)") < 3 * cost("lists.range(100).all(x, x > 0)")
    assert cost("lists.range(400).map(x, x) == []") > 8 * cost("lists.range(100).map(x, x) == []")
    with pytest.raises(TooCostly):
        cost("lists.range(100).all(a, lists.range(100).all(b, lists.range(100).all(c, true)))")


# --- devices ----------------------------------------------------------------------------------------------------------


def test_a_device_larger_than_the_api_server_accepts_is_an_error_for_every_expression() -> None:
    with pytest.raises(CelError, match="too many or too long attributes"):
        holds("true", model={"string": "x" * 10_000})
    with pytest.raises(CelError, match="too many or too long attributes"):
        holds("true", **{f"a{number}": {"int": number} for number in range(100)})
    with pytest.raises(CelError, match="not a semantic version"):
        holds("true", version={"version": "none"})


# --- values that are large --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression",
    [
        f'quantity("1e{"9" * 50}").sign() == 1',
        f'semver("1.1.1-{"1" * 5_000}!").major() == 1',
        f'semver("{"9" * 5_000}.1.1").major() == 1',
        f'ip("{":" * 5_000}").family() == 4',
        f'cidr("10.0.0.0/{"9" * 5_000}").prefixLength() == 4',
        f'url("{"/" * 10}{" " * 5_000}").getHost() == ""',
        "[1, 'a'].sort().size() == 2",
        "[].min() == 1",
    ],
)
def test_values_that_cannot_be_read_are_errors_of_the_expression(expression: str) -> None:
    with pytest.raises(CelError) as refused:
        holds(expression)
    assert len(str(refused.value)) <= 1_000


def test_distinct_and_sets_know_equal_values_of_all_kinds() -> None:
    assert holds("[1, 1, 2].distinct() == [1, 2] && [[1], [1], [2]].distinct() == [[1], [2]]")
    assert holds("[{'a': 1}, {'a': 1}].distinct().size() == 1 && [dyn(true), dyn(1)].distinct().size() == 2")
    assert holds("sets.contains([1, 2, 3], [3, 1]) && !sets.contains([1], [2]) && sets.contains([[1]], [[1]])")
    assert holds(
        "sets.equivalent([1, 2, 2], [2, 1]) && sets.intersects(['a'], ['b', 'a']) && !sets.intersects([1], [])"
    )


# --- the syntax tree --------------------------------------------------------------------------------------------------


def test_a_syntax_tree_is_read_from_its_serialized_form() -> None:
    environment = cel.NewEnv(variables={})
    tree = tree_of(environment.compile('[1, 2].all(x, x > -3) || a.b["ü"] == 1.5', disable_check=True).serialize())
    assert isinstance(tree, Call) and tree.function == "_||_"
    loop, comparison = tree.args
    assert isinstance(loop, Fold) and loop.range == ListOf((Literal(1), Literal(2))) and loop.variable == "x"
    item = Call("_[_]", (Select(Ident("a"), "b"), Literal("ü")))
    assert comparison == Call("_==_", (item, Literal(None)))


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_compiled_expressions_are_kept_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    original = device_selectors._compiled
    monkeypatch.setattr(device_selectors, "_known", device_selectors._CompiledSelectors())
    monkeypatch.setattr(device_selectors, "_compiled", lambda text: (compiled.append(text), original(text))[1])
    small, large = "device.driver == 'a'", [f"device.driver == 'a'{' ' * 9_000} && {i} > 0" for i in range(40)]
    compile_selector(small)
    compile_selector(small)
    assert compiled == [small]
    for expression in large:
        compile_selector(expression)
    compile_selector(large[-1])
    assert len(compiled) == 41, "the latest are known"
    compile_selector(large[0])
    assert len(compiled) == 42, "40 expressions of 9 KB are more than are kept"


def test_an_expression_with_very_many_texts_still_knows_the_domains_that_it_asks_for() -> None:
    many = " || ".join(f'device.driver == "d{number}"' for number in range(300))
    assert not holds(f'{many} || "x" in device.attributes["unknown.example.com"]')
    with pytest.raises(CelCompileError, match="exceeds cost limit: it asks for 100 domains"):
        compile_selector(" || ".join(f'"x" in device.attributes["d{number}.example.com"]' for number in range(100)))
