"""One run in numbers that can be compared with those of another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pilotage.lab.lives import NodeStory
from pilotage.lab.prices import Prices
from pilotage.lab.results import Result
from pilotage.lab.significance import jain

_MOST_CLASSES: Final = 8
"""Of each kind; the others are one class together."""
_QUANTILES: Final = (50, 90, 99)
OTHERS: Final = "others"

Flags = NDArray[np.bool_]
Numbers = NDArray[np.float64]


def measured(result: Result, prices: Prices | None = None) -> dict[str, float]:
    """All measures, by name. Times are in seconds, shares between 0 and 1."""
    totals = result.totals
    pods: Mapping[str, int] = totals["pods"]
    found = {"pods": pods["pods"], "placed": pods["bound"], "never placed": pods["pods"] - pods["bound"]}
    found |= {name: pods[name] for name in ("attempts", "evicted", "lost")}
    made = {name: float(value) for name, value in found.items()}
    made |= _waits(result)
    if "workloads" in totals:
        workloads = totals["workloads"]
        made |= {f"workloads {name}": float(workloads[name]) for name in ("admitted", "finished", "evictions")}
        waited = workloads["waited"]
        made |= {f"wait of workloads {name}": waited[name] for name in ("mean", "p50", "p90", "p99") if waited}
    made |= {f"{name} mean": value for name, value in totals["mean"].items() if name not in ("nodes", "gated")}
    if "nodes_used" in totals["most"]:
        made["nodes_used most"] = totals["most"]["nodes_used"]
    made["node hours used"] = _hours(result, None)
    index = fairness(result)
    if index is not None:
        made["fairness"] = index
    if prices is not None:
        made["cost of nodes used"], made["cost of nodes there"] = _hours(result, prices), _cost_there(result, prices)
        made["nodes without a price"] = float(sum(prices.of(node) is None for node in result.nodes))
    return made


# --- waiting ----------------------------------------------------------------------------------------------------------


def waits(result: Result) -> tuple[Flags, Numbers]:
    """Which pods the scheduler tried, and for all of them how long they waited for a node.

    Pods that never got one count with the time that they waited in vain, which makes them no smaller than they are.
    """
    pods = result.pods
    end = np.where(np.isnan(pods["ended"]), result.totals["seconds"], pods["ended"])
    waited = np.where(np.isnan(pods["bound"]), end, pods["bound"]) - pods["arrived"]
    return pods["attempts"] > 0, np.maximum(waited, 0.0)


def _waits(result: Result) -> dict[str, float]:
    tried, waited = waits(result)
    found: dict[str, float] = {}
    if not tried.any():
        return found
    found["wait mean"] = float(waited[tried].mean())
    for title, members in (("", tried), *classes(result, tried)):
        quantiles = np.percentile(waited[members], _QUANTILES, method="inverted_cdf").tolist()
        for quantile, value in zip(_QUANTILES, quantiles, strict=True):
            found[f"wait{title} p{quantile}"] = value
    return found


def classes(result: Result, among: Flags) -> Iterator[tuple[str, Flags]]:
    """The pods among these by priority and by kind of owner, as far as there is more than one class."""
    owners = np.array([owner.partition("/")[0] or "none" for owner in result.pods["owner"].tolist()], dtype=np.str_)
    for title, column in ((" priority", result.pods["priority"].astype(np.str_)), (" owner", owners)):
        counts = Counter(column[among].tolist())
        if len(counts) < 2:
            continue
        chosen = [name for name, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:_MOST_CLASSES]]
        yield from ((f"{title}={name}", among & (column == name)) for name in sorted(chosen))
        rest = among & ~np.isin(column, chosen)
        if rest.any():
            yield f"{title}={OTHERS}", rest


def fairness(result: Result) -> float | None:
    """Jain's index over namespaces of the part of their pods' time in which they ran: 1 if all get the same part.

    None if there is only one namespace.
    """
    tried, waited = waits(result)
    pods = result.pods
    ran = np.nan_to_num(np.where(np.isnan(pods["ended"]), result.totals["seconds"], pods["ended"]) - pods["bound"])
    names = np.array([name.partition("/")[0] for name in pods["pod"].tolist()], dtype=np.str_)
    parts = []
    for namespace in np.unique(names[tried]):
        members = tried & (names == namespace)
        time = float((ran[members] + waited[members]).sum())
        parts.append(float(ran[members].sum()) / time if time else 1.0)
    return jain(parts) if len(parts) > 1 else None


# --- nodes ------------------------------------------------------------------------------------------------------------


def busy_seconds(result: Result) -> dict[str, float]:
    """How long each node had at least one pod, by name."""
    pods = result.pods
    ran = np.flatnonzero(~np.isnan(pods["bound"]))
    ends = np.where(np.isnan(pods["ended"]), result.totals["seconds"], pods["ended"])[ran]
    begins, nodes = pods["bound"][ran], pods["node"][ran]
    found: Counter[Any] = Counter()
    order = np.lexsort((begins, nodes))
    node, until = "", 0.0
    for name, begin, end in zip(nodes[order].tolist(), begins[order].tolist(), ends[order].tolist(), strict=True):
        if name != node:
            node, until = name, 0.0
        found[name] += max(0.0, end - max(begin, until))
        until = max(until, end)
    return dict(found)


def _hours(result: Result, prices: Prices | None) -> float:
    """Hours in which nodes had pods, or what these cost."""
    by_name: dict[str, NodeStory] = {node.node: node for node in result.nodes}
    return sum(
        seconds / 3600 * (1.0 if prices is None else _price(prices, by_name.get(name)))
        for name, seconds in busy_seconds(result).items()
    )


def _cost_there(result: Result, prices: Prices) -> float:
    end = result.totals["seconds"]
    return sum(
        ((end if node.until is None else node.until) - node.since) / 3600 * _price(prices, node)
        for node in result.nodes
    )


def _price(prices: Prices, node: NodeStory | None) -> float:
    return 0.0 if node is None else prices.of(node) or 0.0
