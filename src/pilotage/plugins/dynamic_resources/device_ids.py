"""How devices and pools are told apart."""

from __future__ import annotations

from typing import NamedTuple

from pilotage.model.resource import DeviceAllocationResult


class PoolID(NamedTuple):
    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceID(NamedTuple):
    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


def device_of(result: DeviceAllocationResult) -> DeviceID:
    """The device that was given."""
    return DeviceID(result.driver, result.pool, result.device)
