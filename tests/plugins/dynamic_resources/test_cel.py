"""CEL selectors: Kubernetes' variables and libraries, and what happens to expressions that fail."""

from __future__ import annotations

import msgspec
import pytest

from pilotage.model.resource import Device
from pilotage.plugins.dynamic_resources.cel import CelCompileError, CelError, bind_device, compile_selector
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
        (f'{OWN}.model.startsWith(device.driver) || {OWN}.index.startsWith("h")', "No matching overload"),
        (f"{CAPACITY}.odd.asInteger() == 1", "cannot convert value to integer"),
        ('quantity("many") == quantity("1")', "many"),
        ('semver("1.0") == semver("1.0.0")', "1.0"),
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
        "[1].all(a, [1].all(b, [1].all(c, [1].all(d, [1].all(e, a + b + c + d + e > 0)))))",
    ],
)
def test_what_is_no_selector_does_not_compile(expression: str) -> None:
    with pytest.raises(CelCompileError):
        compile_selector(expression)
