"""Every filter asked about every node: the verdict on a pod as a grid, nodes that get the same answers in one row."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pilotage.api import points
from pilotage.api.budget import Budget
from pilotage.api.state import CycleState
from pilotage.cycle.placement import ProfileEngine
from pilotage.framework.node_questions import NodeQuestions
from pilotage.framework.profile import name_of
from pilotage.model import Pod

_MOST_ROWS: Final = 40
_EXAMPLES: Final = 3
_FEW_NODES: Final = 20
_MOST_SINGLE: Final = 200
"""Nodes that a plugin without columns is asked about."""
_NOT_ASKED: Final = -1


class VerdictRow(Struct, frozen=True):
    """Nodes that get the same answer of every plugin."""

    nodes: int
    examples: tuple[str, ...]
    answers: tuple[str | None, ...]
    """By plugin: "" passes, a message rejects, None was not asked."""

    @property
    def fits(self) -> bool:
        return not any(self.answers)


class Grid(Struct, frozen=True):
    """The verdict of one profile on a pod."""

    plugins: tuple[str, ...]
    """Those that had something to say; others let the pod pass everywhere."""
    rows: tuple[VerdictRow, ...]
    """Nodes that fit, then those with the fewest rejections."""
    others: int = 0
    """Nodes in rows that were left out."""
    is_grouped: bool = True
    """Nodes that get the same answers are in one row; few nodes have a row each."""
    silent: tuple[str, ...] = ()
    """Filters that let the pod pass on every node."""


def grid(engine: ProfileEngine, pod: Pod, budget: Budget) -> Grid:
    """PluginError if a plugin fails, BudgetExceeded if it takes too long."""
    codes, messages = verdicts(engine, pod, budget)
    telling = [name for name in codes if codes[name].any()]
    if not len(engine.nodes):
        return Grid((), ())
    if not telling:
        return Grid((), (VerdictRow(len(engine.nodes), tuple(engine.nodes.names[:_EXAMPLES]), ()),))
    matrix = np.stack([codes[name] for name in telling], axis=1)
    is_grouped = len(engine.nodes) > _FEW_NODES
    if is_grouped:
        distinct, first, kinds, counts = np.unique(
            matrix, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        kinds = kinds.reshape(-1)
    else:
        distinct, first = matrix, np.arange(len(matrix))
        kinds, counts = first, np.ones(len(matrix), dtype=np.int64)
    order = sorted(
        range(len(distinct)), key=lambda at: (int((distinct[at] > 0).sum()), -int(counts[at]), int(first[at]))
    )
    rows = []
    for kind in order[:_MOST_ROWS]:
        examples = np.flatnonzero(kinds == kind)[:_EXAMPLES].tolist()
        answers = tuple(
            None if code == _NOT_ASKED else messages[name][code - 1] if code else ""
            for name, code in zip(telling, distinct[kind].tolist(), strict=True)
        )
        rows.append(VerdictRow(int(counts[kind]), tuple(engine.nodes.names[row] for row in examples), answers))
    left_out = sum(int(counts[kind]) for kind in order[_MOST_ROWS:])
    silent = tuple(name for name in codes if name not in telling)
    return Grid(tuple(telling), tuple(rows), left_out, is_grouped, silent)


def verdicts(
    engine: ProfileEngine, pod: Pod, budget: Budget
) -> tuple[dict[str, NDArray[np.int32]], dict[str, list[str]]]:
    """By plugin a code per node (0 passes), and what the codes from 1 on mean."""
    state, size = CycleState(budget), len(engine.nodes)
    outcome = engine.runner.pre_filter(state, pod)
    codes: dict[str, NDArray[np.int32]] = {}
    messages: dict[str, list[str]] = {}
    if outcome.rejected is not None:
        name = outcome.rejected.plugin
        codes[name] = np.ones(size, dtype=np.int32)
        messages[name] = [", ".join(reason.message for reason in outcome.rejected.rejection.reasons)]
        return codes, messages
    if outcome.allowed is not None:
        for name in outcome.restricting:
            codes[name] = np.where(outcome.allowed, 0, 1).astype(np.int32)
            messages[name] = ["not among the nodes that PreFilter leaves"]
    questions, rows = NodeQuestions(engine.profile, engine.nodes), np.arange(size)
    for plugin in engine.profile.filters:
        name = name_of(plugin)
        if name in state.skip_filter:
            continue
        column, known = np.zeros(size, dtype=np.int32), messages.setdefault(name, [])
        asked = np.ones(size, dtype=np.bool_)
        if not isinstance(plugin, points.VectorFilter) and size > _MOST_SINGLE:
            asked[_MOST_SINGLE:] = False
            column[~asked] = _NOT_ASKED
        for mask, reason, _ in questions.rejections(state, pod, plugin, engine.nodes, rows, asked):
            if reason.message not in known:
                known.append(reason.message)
            column[mask & (column == 0)] = known.index(reason.message) + 1
        codes[name] = column if name not in codes else np.where(codes[name] > 0, codes[name], column)
    return codes, messages
