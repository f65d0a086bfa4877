"""What nodes cost.

label: node.kubernetes.io/instance-type     # this one, unless another is named
currency: USD
perHour:
  m7i.large: 0.1008
  g6.xlarge: 0.8048
default: 0.05                               # of all others; without it they are counted as not priced
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec

from pilotage.kube_yaml import YamlError, documents
from pilotage.lab.lives import NodeStory


class PriceError(Exception):
    """A price list that cannot be used: where, why, and what can be done about it."""


class Prices(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A price per hour, by a label of the node."""

    per_hour: dict[str, float]
    label: str = "node.kubernetes.io/instance-type"
    currency: str = ""
    default: float | None = None

    def of(self, node: NodeStory) -> float | None:
        """Per hour; None if it is not on the list."""
        return self.per_hour.get(node.labels.get(self.label, ""), self.default)


def read_prices(path: Path) -> Prices:
    """The list in a file; PriceError if there is none."""
    try:
        found: list[Any] = [document.value for document in documents(path.read_bytes())]
        prices = msgspec.convert(found[0] if found else None, Prices)
    except OSError as error:
        raise PriceError(f"{path}: cannot be read: {error.strerror or error}") from error
    except YamlError as error:
        raise PriceError(f"{path}: {error}") from error
    except msgspec.ValidationError as error:
        example = 'such as "perHour: {m7i.large: 0.1}"'
        raise PriceError(f"{path}: is no list of prices, {example}: {error}") from error
    for name, price in (*prices.per_hour.items(), ("default", prices.default or 0.0)):
        if not 0 <= price < math.inf:
            raise PriceError(f"{path}: {name}: {price:g} is no price")
    return prices
