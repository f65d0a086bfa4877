"""Devices that selectors cannot tell apart share what selectors said of them."""

from __future__ import annotations

import pytest

from pilotage.model.resource import Device, DeviceAttribute
from pilotage.plugins.dynamic_resources.devices import SelectorError, traits_of

_DRIVER = "gpu.example.com"


def _device(name: str, model: str) -> Device:
    return Device(name=name, attributes={"model": DeviceAttribute(string_value=model)})


def test_devices_of_one_model_share_their_traits() -> None:
    first = traits_of(_DRIVER, _device("gpu-0", "a100"))
    assert traits_of(_DRIVER, _device("gpu-1", "a100")) is first
    assert traits_of(_DRIVER, _device("gpu-0", "h100")) is not first
    assert traits_of("other.example.com", _device("gpu-0", "a100")) is not first


def test_a_selector_holds_for_the_model_that_it_names() -> None:
    expression = f'device.attributes["{_DRIVER}"].model == "a100"'
    assert traits_of(_DRIVER, _device("gpu-0", "a100")).satisfy(expression)
    assert not traits_of(_DRIVER, _device("gpu-0", "h100")).satisfy(expression)


def test_an_error_that_is_raised_again_does_not_grow() -> None:
    traits = traits_of(_DRIVER, _device("gpu-0", "a100"))
    depths = set()
    for _ in range(5):
        with pytest.raises(SelectorError) as raised:
            traits.satisfy(f'device.attributes["{_DRIVER}"].memory > 1')
        depths.add(len(raised.traceback))
    assert len(depths) == 1
