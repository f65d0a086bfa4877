"""Kubernetes' CEL: macros and libraries, errors in its words, and what is refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.cel import CelCompileError, CelError, CelType, Environment, Sizes, TooCostly
from pilotage.cel.cost import MAX_COST, shape_of
from pilotage.cel.environment import MISSING_FUNCTIONS, MISSING_MACROS
from pilotage.cel.functions import ANY_USER, AUTHORIZER, authorizer_library
from tests.source_tree import ROOT

ENVIRONMENT = Environment({"self": CelType.ANY, "old": CelType.LIST})
SELF: dict[str, Any] = {
    "name": "a-b-c",
    "count": 3,
    "ratio": 0.5,
    "on": True,
    "tags": ["x", "y", "z"],
    "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}],
    "labels": {"app": "web", "tier": "front"},
    "nothing": None,
}


def evaluate(expression: str, self: Any = SELF) -> Any:
    return ENVIRONMENT.compile(expression).evaluate(ENVIRONMENT.bind({"self": self, "old": []}))


@pytest.mark.parametrize(
    "expression",
    [
        "self.ports.all(p, p.port > 0) && self.ports.exists(p, p.port == 80)",
        "self.ports.exists_one(p, p.name == 'http')",
        "self.ports.map(p, p.name) == ['http', 'https'] && self.ports.map(p, p.port > 100, p.name) == ['https']",
        "self.ports.filter(p, p.port > 100).size() == 1",
        "self.labels.all(key, self.labels[key] != '') && self.labels.exists(key, key == 'app')",
        "has(self.name) && !has(self.missing) && has(self.nothing) && self.nothing == null",
        "self.?missing.orValue('x') == 'x' && self.?name.hasValue() && self.labels[?'app'].value() == 'web'",
        "self.?labels.?missing.?deeper.orValue(1) == 1 && optional.of(1).or(optional.none()).value() == 1",
        "optional.ofNonZeroValue('').hasValue() == false && self.?count.optMap(c, c + 1).value() == 4",
        "cel.bind(n, self.name + '!', n.endsWith('!'))",
        "self.name.split('-') == ['a', 'b', 'c'] && ['a', 'b'].join('/') == 'a/b' && ' a '.trim() == 'a'",
        "'a-b'.replace('-', '+') == 'a+b' && 'ABC'.lowerAscii() == 'abc' && 'abc'.substring(1, 2) == 'b'",
        "'abc'.indexOf('c') == 2 && 'abca'.lastIndexOf('a') == 3 && 'abc'.charAt(1) == 'b'",
        "'%s has %d at %.1f'.format([self.name, self.count, self.ratio]) == 'a-b-c has 3 at 0.5'",
        "[1, 2, 3].sum() == 6 && [3, 1, 2].min() == 1 && ['a', 'c'].max() == 'c' && self.tags.isSorted()",
        "self.tags.distinct() == self.tags && [1, 2].reverse() == [2, 1] && [[1], [2]].flatten() == [1, 2]",
        "self.name.matches('^[a-z-]+$') && 'a1b22'.find('[0-9]+') == '1' && 'a1b22'.findAll('[0-9]+') == ['1', '22']",
        "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('500m').add(quantity('0.5')) == quantity('1')",
        "isQuantity('1.5Ki') && !isQuantity('many') && quantity('2k').asInteger() == 2000 && quantity('-1').sign() < 0",
        "semver('1.10.0').isGreaterThan(semver('1.9.9')) && isSemver('1.2.3') && semver('v1.2', true).minor() == 2",
        "ip('10.0.0.1').family() == 4 && isIP('::1') && cidr('10.0.0.0/8').containsIP('10.1.2.3')",
        "url('https://a.example:8080/x?k=v').getPort() == '8080' && isURL('/a') && !isURL('a')",
        "duration('90m').getHours() == 1 && duration('1h') + duration('1m') < duration('2h')",
        "timestamp('2026-01-02T03:04:05Z').getFullYear() == 2026 && timestamp('2026-01-01T00:00:00Z') + duration('24h')"
        " == timestamp('2026-01-02T00:00:00Z')",
        "sets.contains(self.tags, ['x']) && sets.intersects([1], [1, 2]) && sets.equivalent([1, 2], [2, 1])",
        "type(self.count) == int && type(self.name) == string && int('3') == self.count && string(self.count) == '3'",
        "isURL('https://a/') && url('https://a:1/x?k=v').getScheme() == 'https'",
        "url('https://a:1/x?k=v').getHost() == 'a:1' && url('https://a:1/x?k=v').getHostname() == 'a'",
        "url('https://a:1/x?k=v').getPort() == '1' && url('https://a:1/x?k=v').getEscapedPath() == '/x'",
        "url('https://a:1/x?k=v').getQuery() == {'k':['v']} && isQuantity('1') && quantity('1').sign() == 1",
        "quantity('1').isInteger() && quantity('1').asInteger() == 1",
        "quantity('1').asApproximateFloat() == 1.0 && quantity('1').add(quantity('1')) == quantity('2')",
        "quantity('1').add(1) == quantity('2') && quantity('1').sub(quantity('1')) == quantity('0')",
        "quantity('1').sub(1) == quantity('0') && quantity('2').isGreaterThan(quantity('1'))",
        "quantity('1').isLessThan(quantity('2')) && quantity('1').compareTo(quantity('1')) == 0",
        "isIP('::1') && ip('1.2.3.4').family() == 4 && ip.isCanonical('::1') && ip('0.0.0.0').isUnspecified()",
        "ip('127.0.0.1').isLoopback() && ip('224.0.0.1').isLinkLocalMulticast()",
        "ip('169.254.0.1').isLinkLocalUnicast() && ip('8.8.8.8').isGlobalUnicast() && isCIDR('10.0.0.0/8')",
        "cidr('10.0.0.0/8').containsIP('10.0.0.1') && cidr('10.0.0.0/8').containsIP(ip('10.0.0.1'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
        "cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16')) && cidr('10.0.0.0/8').ip() == ip('10.0.0.0')",
        "cidr('10.0.0.1/8').masked() == cidr('10.0.0.0/8') && cidr('10.0.0.0/8').prefixLength() == 8",
        "isSemver('1.2.3') && isSemver('v1.2', true) && semver('1.2.3').major() == 1",
        "semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3",
        "semver('1.2.3').isLessThan(semver('2.0.0')) && semver('1.2.3').isGreaterThan(semver('1.0.0'))",
        "semver('1.2.3').compareTo(semver('1.2.3')) == 0 && semver('v1.2', true).minor() == 2",
        "[1, 2].first().value() == 1 && [1, 2].last().value() == 2",
        "[?optional.of(1), ?optional.none()] == [1] && {?'a': optional.of(1)} == {'a': 1}",
        "optional.of(1).optFlatMap(x, optional.of(x)).value() == 1 && strings.quote('a') == '\\\"a\\\"'",
        "self.missing == 1 || true",
        "!(self.missing == 1 && false)",
    ],
)
def test_what_kubernetes_expressions_can_say(expression: str) -> None:
    assert evaluate(expression) is True


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("self.missing", "no such key: missing"),
        ("self.tags[7]", "index out of bounds: 7"),
        ("self.name + self.count", r"no such overload: _\+_"),
        ("self.count / 0", "divide by zero"),
        ("quantity('many').sign()", "many"),
        ("lists.range(9999).all(a, lists.range(2).all(b, true))", "actual cost limit exceeded"),
    ],
)
def test_errors_are_in_kubernetes_words(expression: str, problem: str) -> None:
    with pytest.raises(CelError, match=problem):
        evaluate(expression)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("self.", r"^ERROR: <input>:1:6: Syntax error"),
        ("nobody.x", r"^ERROR: <input>:1:\d: undeclared reference to 'nobody.x'"),
        ("self.frobnicate()", "undeclared reference to 'frobnicate'"),
        ("authorizer.path('/healthz').check('get').allowed()", "undeclared reference to '(authorizer|path)'"),
        ("1 + 'a'", r"found no matching overload for '_\+_' applied to '\(int, string\)'"),
        ("self.ports.sortBy(p, p.port)", r"the macro sortBy\(\) is not supported"),
        ("self.ports.all(i, p, p.port > i)", r"the macro all\(\) with two variables is not supported"),
        ("self.ports.transformList(i, p, i)", r"the macro transformList\(\) is not supported"),
        ("!format.dns1123Label().validate(self.name).hasValue()", r"format\.dns1123Label\(\) is not supported"),
        ("!format.named('dns1123Label').hasValue()", r"format\.named\(\) is not supported"),
        ("self.ports.existsOne(p, p.port == 80)", r"the macro existsOne\(\) is not supported"),
        ("self.labels.transformMap(k, v, v) == {}", r"the macro transformMap\(\) is not supported"),
        ("self.labels.transformMapEntry(k, v, {v: k}) == {}", r"the macro transformMapEntry\(\) is not supported"),
        ("optional.unwrap([optional.of(1)]) == [1]", r"the function unwrap\(\) is not supported"),
        ("[optional.of(1)].unwrapOpt() == [1]", r"the function unwrapOpt\(\) is not supported"),
        ("string(ip('::1')) == '::1'", "found no matching overload for 'string'"),
        ("string(cidr('10.0.0.0/8')) == ''", "found no matching overload for 'string'"),
        ("self.tags.indexOf(1)", "found no matching overload for 'indexOf'"),
        ("self.name.matches(self.other)", r"the pattern of matches\(\) must be written out"),
        ("self.name == '" + 11_000 * "x" + "'", "longer than 10240"),
        ("(" * 300 + "1" + ")" * 300, "."),
        ("'\ud800' == self.name", "."),
    ],
)
def test_what_cannot_be_done_is_rejected_by_name_when_compiled(expression: str, problem: str) -> None:
    with pytest.raises(CelCompileError, match=problem):
        ENVIRONMENT.compile(expression)


def test_everyone_is_allowed_everything_where_there_is_an_authorizer() -> None:
    environment = Environment(
        {"authorizer": AUTHORIZER, "authorizer.requestResource": AUTHORIZER}, authorizer_library()
    )
    values = environment.bind({"authorizer": ANY_USER, "authorizer.requestResource": ANY_USER})
    for expression in (
        "authorizer.group('apps').resource('deployments').subresource('status').namespace('n').name('x')"
        ".check('update').allowed()",
        "authorizer.path('/healthz').check('get').reason() == ''",
        "authorizer.serviceAccount('n', 'robot').group('').resource('pods').check('get').allowed()",
        "authorizer.requestResource.check('delete').allowed()",
    ):
        assert environment.compile(expression).evaluate(values) is True, expression


# --- costs with values of a known size --------------------------------------------------------------------------------


def cost(expression: str, self: Any) -> int:
    """Looked at closely: with a budget of which it is no small part."""
    sizes = Sizes({"self": self})
    return ENVIRONMENT.compile(expression).cost(sizes, MAX_COST)


def test_what_an_evaluation_may_cost_is_reported_by_the_sizes_of_its_values() -> None:
    pairs = "self.items.all(a, self.items.all(b, a.name != b.name || a.name == b.name))"
    few, many = ({"items": [{"name": f"n{at}", "text": 200 * "x"} for at in range(count)]} for count in (16, 2_000))
    assert cost(pairs, few) < 30_000
    with pytest.raises(TooCostly):
        cost(pairs, many)
    # The same list under another name than the one that is looped over costs nothing.
    assert cost(pairs, {"items": [], "others": many["items"]}) < 100


def test_sizes_that_are_similar_are_one_shape() -> None:
    assert shape_of({"a": [1] * 5, "b": "xy"}) == shape_of({"b": "xx", "a": [7] * 7})
    assert shape_of({"a": [1, 2, 3]}) != shape_of({"a": [1] * 9})


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(json, st.sampled_from(["self.a", "self == self", "self[0]", "self.all(x, x == x)", "size(self)", "self + self"]))
def test_whatever_a_value_is_an_expression_has_a_result_or_an_error(value: Any, expression: str) -> None:
    program = ENVIRONMENT.compile(expression)
    try:
        assert program.cost(Sizes({"self": value})) > 0
        program.evaluate(ENVIRONMENT.bind({"self": value, "old": []}))
    except (CelError, TooCostly):
        pass


def test_the_page_names_what_is_missing() -> None:
    page = (ROOT.parents[1] / "docs" / "cel.md").read_text().partition("## What is missing")[2]
    assert [name for name in sorted(MISSING_MACROS | MISSING_FUNCTIONS) if name not in page] == []
