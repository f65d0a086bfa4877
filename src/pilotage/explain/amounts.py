"""Amounts of resources as people write them."""

from __future__ import annotations

_UNITS = ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"))
_BYTES = ("memory", "ephemeral-storage")


def readable(resource: str, amount: float) -> str:
    """`1500m`, `2`, `1.5Gi`: at most three significant digits where it is not exact anyway."""
    if resource == "cpu":
        cores = amount / 1000
        return f"{cores:g}" if cores == int(cores) else f"{int(amount)}m"
    if resource in _BYTES or resource.startswith("hugepages-"):
        for size, unit in _UNITS:
            if amount >= size:
                return f"{amount / size:.3g}{unit}"
    return f"{amount:g}"
