"""What plugins answer to Filter and Score, made sure of: the shape of columns, whole numbers, scores in range."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pilotage.api.results import Pending, Reason, Reject, Rejection
from pilotage.api.table import Scores
from pilotage.framework.errors import PluginError, error_text, shown

MAX_SCORE: Final = 100
_KINDS: Final[dict[type[np.generic], str]] = {np.bool_: "b", np.int64: "iu"}
_NAMES: Final[dict[type[np.generic], str]] = {np.bool_: "True or False", np.int64: "a whole number"}


def column_of(values: Any, dtype: type[np.generic], size: int) -> NDArray[Any]:
    """What a plugin returned, as a column of the nodes that it was asked about; only whole numbers are scores."""
    column = np.asarray(values)
    if column.dtype.kind not in _KINDS[dtype] and column.size:
        raise TypeError(f"expected {_NAMES[dtype]} for each node, got an array of {column.dtype}: {shown(values)}")
    column = column.astype(dtype, copy=False)
    if column.shape != (size,):
        raise ValueError(f"expected one entry for each of {size} nodes, got an array of shape {column.shape}")
    return column


def whole(score: object) -> int:
    """A score of one node: a whole number, of Python or NumPy."""
    if type(score) is int:
        return score
    if isinstance(score, np.integer):
        return int(score)
    raise TypeError(f"expected a whole number as score, got {shown(score)}")


def reason_of(reason: object) -> Reason:
    """What a filter gives as the reason for a mask."""
    if isinstance(reason, Reason):
        return reason
    raise TypeError(f"expected a Reason beside each mask, got {shown(reason)}")


def rejection_of(answer: object) -> Rejection:
    """What a filter said of a node, if it was not None."""
    if isinstance(answer, Reject | Pending):
        return answer
    raise TypeError(f"expected None, Reject or Pending, got {shown(answer)}")


def score_error(name: str, error: BaseException) -> PluginError:
    return PluginError(name, "Score", f'running Score plugins: plugin "{name}" failed with: {error_text(error)}')


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
