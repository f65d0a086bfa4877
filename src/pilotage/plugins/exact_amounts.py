"""What nodes offer and what is requested of it, in the form in which resource scores need it.

Division is what scores cost, and floats divide several times as fast as integers. Whole numbers below 2^46 are exact as
floats, and so is what scores make of two of them: a hundred times the one still fits into the 53 bits of a float, and a
quotient of up to 100 that is no whole number is at least 2^-46 away from the next one, which is more than rounding can
do. Of nodes that say they have more (64 TiB of memory) columns of integers are to be used.

The columns are kept between pods, so that only nodes that have changed are looked at (`NodeTable.derived`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pilotage.api import NodeTable

Floats = NDArray[np.float64]

_EXACT: Final = 2**46
PAIR: Final = 2


class ExactAmounts(Struct, frozen=True, eq=False):
    """A row for each resource, an entry for each node."""

    capacity: Floats
    requested: Floats
    scored: Floats
    """What scoring counts as requested."""
    balance: Floats
    """Of two resources: how close their used shares are to each other."""


def exact_amounts(nodes: NodeTable, resources: tuple[str, ...], wanted: Sequence[int]) -> ExactAmounts | None:
    """The amounts of these resources; None if a node does not offer one, or something is too large, also the pod."""
    if not resources or max(wanted) >= _EXACT:
        return None
    columns = nodes.derived((exact_amounts.__name__, *resources), lambda some: _derive(some, resources))
    if not columns[-1].min(initial=1):
        return None
    size = len(resources)
    return ExactAmounts(columns[:size], columns[size : 2 * size], columns[2 * size : 3 * size], columns[-2])


def _derive(nodes: NodeTable, resources: tuple[str, ...]) -> Floats:
    """All rows of ExactAmounts one below the other; the last says where they are exact."""
    offered = [nodes.allocatable(resource) for resource in resources]
    requested = [nodes.requested(resource) for resource in resources]
    scored = [nodes.non_zero_requested(resource) for resource in resources]
    amounts = np.array([*offered, *requested, *scored])
    capacity = amounts[: len(resources)]
    is_exact = (amounts < _EXACT).all(axis=0) & (capacity > 0).all(axis=0)
    columns = np.empty((len(amounts) + 2, len(nodes)))
    columns[:-2] = amounts
    # Elsewhere the capacities are 1, so that one can divide by them.
    columns[: len(resources), ~is_exact] = 1
    columns[-1] = is_exact
    columns[-2] = pair_balances(columns, columns[PAIR:], (0, 0)) if len(resources) == PAIR else 0
    return columns


def percent_of_exact(part: Floats, whole: Floats) -> Floats:
    """`part` of `whole` in percent, rounded down; `part` is overwritten."""
    part *= 100
    part /= whole
    return np.floor(part, out=part)


def pair_balances(capacity: Floats, requested: Floats, wanted: Sequence[int]) -> Floats:
    """The balance of two resources with so much more in use: 100 where their shares are the same."""
    first: Floats = requested[0] + wanted[0]
    second: Floats = requested[1] + wanted[1]
    first /= capacity[0]
    second /= capacity[1]
    np.minimum(first, 1.0, out=first)
    np.minimum(second, 1.0, out=second)
    first -= second
    np.abs(first, out=first)
    first /= 2
    np.subtract(1, first, out=first)
    first *= 100
    return np.floor(first, out=first)
