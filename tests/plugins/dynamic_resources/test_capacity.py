"""How much of a device a request takes, by the device's policy."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.model.quantity import parse_quantity
from pilotage.model.resource import CapacityRequirements, Device
from pilotage.plugins.dynamic_resources.capacity import consumption, written
from tests.plugins.dynamic_resources.objects import device

RANGE = {"default": "1Gi", "validRange": {"min": "1Gi", "max": "40Gi", "step": "1Gi"}}
OFF_STEP = {"default": "4Gi", "validRange": {"min": "4Gi", "step": "3Gi"}}
VALUES = {"default": "8Gi", "validValues": ["8Gi", "16Gi", "40Gi"]}


@pytest.mark.parametrize(
    ("policy", "request_", "expected"),
    [
        (None, None, "80Gi"),
        (None, "3Gi", "3Gi"),
        ({"default": "8Gi"}, None, "8Gi"),
        ({"default": "8Gi"}, "60Gi", "60Gi"),
        (RANGE, None, "1Gi"),
        (RANGE, "512Mi", "1Gi"),
        (RANGE, "1536Mi", "2Gi"),
        (RANGE, "41Gi", None),
        (OFF_STEP, "5Gi", "7Gi"),
        (OFF_STEP, "10Gi", "10Gi"),
        (VALUES, "9Gi", "16Gi"),
        (VALUES, "41Gi", None),
        (VALUES, None, "8Gi"),
        ({"default": "100m", "validRange": {"min": "100m", "step": "100m"}}, "150m", "200m"),
    ],
)
def test_a_request_is_rounded_up_or_rejected(policy: Any, request_: str | None, expected: str | None) -> None:
    capacity = {"memory": {"value": "80Gi", **({"requestPolicy": policy} if policy else {})}}
    offered = msgspec.convert(device("a", capacity=capacity), Device)
    wanted = None if request_ is None else CapacityRequirements(requests={"memory": request_})
    taken = consumption(offered, wanted)
    assert taken == (None if expected is None else {"memory": parse_quantity(expected)})
    if taken is not None and expected is not None and expected.endswith("i"):
        assert written(taken, offered) == {"memory": expected}


def test_a_capacity_that_the_device_lacks_cannot_be_taken() -> None:
    assert consumption(msgspec.convert(device("a"), Device), CapacityRequirements(requests={"memory": "1"})) is None
