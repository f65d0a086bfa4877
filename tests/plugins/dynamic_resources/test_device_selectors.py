"""CEL selectors: Kubernetes' variables and libraries, and what happens to expressions that fail."""

from __future__ import annotations

import msgspec
import pytest

from pilotage.cel import CelCompileError, CelError
from pilotage.model.resource import Device
from pilotage.plugins.dynamic_resources.device_selectors import bind_device, compile_selector
from tests.plugins.dynamic_resources.objects import DRIVER, device

DEVICE = msgspec.convert(
    device(
        "a",
        attributes={
            "model": "a100",
            "index": 2,
            "healthy": True,
            "firmware": {"version": "2.1.0-rc.1"},
            "other.example.com/family": "x",
        },
        capacity={"memory": "40Gi", "odd": "1500m"},
        allowMultipleAllocations=True,
    ),
    Device,
)


def holds(expression: str) -> bool:
    return compile_selector(expression).matches(bind_device(DRIVER, DEVICE))


OWN = f'device.attributes["{DRIVER}"]'
CAPACITY = f'device.capacity["{DRIVER}"]'


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f'device.driver == "{DRIVER}"', True),
        ("device.allowMultipleAllocations", True),
        (f'{OWN}.model == "a100" && {OWN}.index > 1', True),
        (f"{OWN}.healthy", True),
        (f"!{OWN}.healthy", False),
        ('device.attributes["other.example.com"].family == "x"', True),
        (f'"family" in {OWN}', False),
        ('"y" in device.attributes["unknown.example.com"]', False),
        ('has(device.attributes["unknown.example.com"].y)', False),
        (f'{OWN}.index == "2"', False),
        (f"{OWN}.?missing.orValue(7) == 7", True),
        (f"{OWN}.missing == 1 || true", True),
        (f'cel.bind(g, {OWN}, g.model == "t4" || g.index == 2)', True),
        (f'["a100", "t4"].exists(m, m == {OWN}.model)', True),
        (f'{OWN}.model.matches("^[ah]1")', True),
        # quantities
        (f'{CAPACITY}.memory.compareTo(quantity("40Gi")) == 0', True),
        (f'{CAPACITY}.memory == quantity("40960Mi")', True),
        (f'{CAPACITY}.memory.isGreaterThan(quantity("40G"))', True),
        (f'{CAPACITY}.memory.add(quantity("1Gi")).isLessThan(quantity("41Gi"))', False),
        (f"{CAPACITY}.odd.isInteger()", False),
        (f"{CAPACITY}.memory.sub(1).sign() == 1", True),
        (f"{CAPACITY}.odd.asApproximateFloat() == 1.5", True),
        ('isQuantity("12E") && !isQuantity("twelve")', True),
        # versions
        (f'{OWN}.firmware.isGreaterThan(semver("2.0.9"))', True),
        (f'{OWN}.firmware.isLessThan(semver("2.1.0"))', True),
        (f'{OWN}.firmware.compareTo(semver("2.1.0-rc.1+build")) == 0', True),
        (f'{OWN}.firmware.isLessThan(semver("2.1.0-rc.2"))', True),
        (f"{OWN}.firmware.major() == 2 && {OWN}.firmware.minor() == 1 && {OWN}.firmware.patch() == 0", True),
        ('semver("v1.2", true) == semver("1.2.0")', True),
        ('isSemver("1.0.0") && !isSemver("1.0") && isSemver("v1.0", true)', True),
        ('semver("1.0.0-2").isLessThan(semver("1.0.0-10"))', True),
        # lists, sets, texts
        ("[3, 1, 2].sum() == 6 && [1, 2, 2].isSorted()", True),
        ("[1, 2, 2].distinct() == [1, 2]", True),
        ("sets.contains([1, 2, 3], [2]) && !sets.intersects([1], [2])", True),
        (f'{OWN}.model.find("[0-9]+") == "100"', True),
        ('device.driver.split(".")[0] == "gpu"', True),
        ('["a"].includes("a") && "ba".indexOf("a") == 1', True),
        ("lists.range(3) == [0, 1, 2] && [[1], [[2]]].flatten(2) == [1, 2] && [1, 2, 3].slice(1, 3) == [2, 3]", True),
        ("[3, 1, 2].sort() == [1, 2, 3] && [1, 2].reverse() == [2, 1] && [2, 3].min() == 2 && [2, 3].max() == 3", True),
        ("[1, 2].first() == optional.of(1) && [1, 2].last().value() == 2", True),
        ('"a1b22".findAll("[0-9]+") == ["1", "22"] && "a1b22".findAll("[0-9]+", 1) == ["1"]', True),
        # url
        ('url("https://u:p@example.com:80/a b".replace(" ", "%20")).getHost() == "example.com:80"', True),
        ('url("https://example.com:80/p?a=1&a=2&b=").getQuery() == {"a": ["1", "2"], "b": [""]}', True),
        ('url("https://[::1]:80/").getHostname() == "::1" && url("https://[::1]:80/").getPort() == "80"', True),
        ('url("/path").getScheme() == "" && url("/path").getEscapedPath() == "/path"', True),
        ('isURL("https://a.b/c") && isURL("/c") && !isURL("../c") && !isURL("https://a b")', True),
        # addresses
        ('isIP("10.0.0.1") && isIP("::1") && !isIP("10.0.0") && !isIP("::ffff:1.2.3.4") && !isIP("fe80::1%e")', True),
        ('ip("2001:DB8::1") == ip("2001:db8:0:0::1") && !ip.isCanonical("2001:DB8::1")', True),
        ('ip("10.0.0.1").family() == 4 && ip("::1").family() == 6', True),
        (
            'ip("127.0.0.1").isLoopback() && ip("0.0.0.0").isUnspecified() && ip("169.254.1.1").isLinkLocalUnicast()',
            True,
        ),
        ('ip("224.0.0.1").isLinkLocalMulticast() && ip("8.8.8.8").isGlobalUnicast()', True),
        ('ip("255.255.255.255").isGlobalUnicast() || ip("127.0.0.1").isGlobalUnicast()', False),
        ('cidr("10.0.0.0/8").containsIP("10.1.2.3") && !cidr("10.0.0.0/8").containsIP(ip("11.0.0.1"))', True),
        ('cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16") && !cidr("10.0.0.0/8").containsCIDR(cidr("0.0.0.0/0"))', True),
        ('cidr("10.1.2.3/8").masked() == cidr("10.0.0.0/8") && cidr("10.1.2.3/8").ip() == ip("10.1.2.3")', True),
        (
            'cidr("::/0").prefixLength() == 0 && isCIDR("10.0.0.0/8") && !isCIDR("10.0.0.0") && !isCIDR("1.1.1.1/99")',
            True,
        ),
    ],
)
def test_an_expression_holds_or_not(expression: str, expected: bool) -> None:
    assert holds(expression) is expected


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        (f"{OWN}.missing == 1", "no such key: missing"),
        ('device.attributes["unknown.example.com"].y == 1', "no such key: y"),
        (f"{OWN}.model", "must be bool"),
        (f'{OWN}.model.startsWith(device.driver) || {OWN}.index.startsWith("h")', "no such overload"),
        (f"{CAPACITY}.odd.asInteger() == 1", "cannot convert value to integer"),
        ('quantity("many") == quantity("1")', "many"),
        ('semver("1.0") == semver("1.0.0")', "1.0"),
        ("[1, 2].slice(1, 3) == [2]", "list is length 2"),
        ("lists.range(1000000).size() > 0", "cost limit exceeded"),
        ('ip("10.0.0") == ip("10.0.0.1")', "10.0.0"),
        ('cidr("10.0.0.0/08").prefixLength() == 8', "10.0.0.0/08"),
        ('url("a.b").getHost() == "a"', "a.b"),
        ('url("https://a:b/").getPort() == ""', "b"),
        ('quantity("1").getHost() == ""', "url"),
    ],
)
def test_an_expression_that_fails_on_a_device_is_an_error_and_never_true(expression: str, problem: str) -> None:
    with pytest.raises(CelError, match=problem) as caught:
        holds(expression)
    assert not isinstance(caught.value, CelCompileError)


@pytest.mark.parametrize(
    "expression",
    [
        "device.",
        "",
        "device.driver",
        "1 + 1",
        'quantity("1").compareTo(semver("1.0.0")) == 0',
        "unknown == 1",
        "device.driver == 1",
        "true" + " " * 10 * 1024,
        "lists.range(9000).all(a, lists.range(9000).all(b, a + b >= 0))",
    ],
)
def test_what_is_no_selector_does_not_compile(expression: str) -> None:
    with pytest.raises(CelCompileError):
        compile_selector(expression)
