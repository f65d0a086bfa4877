"""What plugins answer to Filter and Score, made sure of: the shape of columns, whole numbers, scores in range."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pilotage.api import points
from pilotage.api.plugin import Plugin
from pilotage.api.state import CycleState
from pilotage.api.table import Scores
from pilotage.cluster.node_view import RowView
from pilotage.framework.errors import PluginError
from pilotage.model import Pod

MAX_SCORE: Final = 100


def one_score(name: str, plugin: Plugin, state: CycleState, pod: Pod, node: RowView) -> int:
    assert isinstance(plugin, points.Score)
    try:
        return int(plugin.score(state, pod, node))
    except Exception as error:
        raise score_error(name, error) from error


def column_of(values: Any, dtype: type[np.generic], size: int) -> NDArray[Any]:
    """What a plugin returned, as a column of the nodes that it was asked about."""
    column = np.asarray(values, dtype=dtype)
    if column.shape != (size,):
        raise ValueError(f"expected one entry for each of {size} nodes, got an array of shape {column.shape}")
    return column


def score_error(name: str, error: Exception) -> PluginError:
    return PluginError(name, "Score", f'running Score plugins: plugin "{name}" failed with: {error}')


def checked(name: str, scores: Scores) -> Scores:
    """Scores in 0..100, or an error that names the plugin and the first bad value."""
    # Read as unsigned, what is negative is huge: one look finds both.
    if len(scores) and scores.view(np.uint64).max() > MAX_SCORE:
        checked_one(name, int(scores[np.argmax((scores < 0) | (scores > MAX_SCORE))]))
    return scores


def checked_one(name: str, score: int) -> int:
    if 0 <= score <= MAX_SCORE:
        return score
    text = (
        f'applying score defaultWeights on Score plugins: plugin "{name}" returns an invalid score {score}, '
        f"it should in the range of [0, {MAX_SCORE}] after normalizing"
    )
    raise PluginError(name, "Score", text)
