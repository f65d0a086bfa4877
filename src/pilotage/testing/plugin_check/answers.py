"""What a plugin says of a pod, in a form that can be compared: per node, and in columns.

The plugin is asked in the order in which the framework would: PreFilter before Filter, PreScore before Score, with a
fresh cycle state. What its filter would say is {} where it was skipped or the node was left out of its node set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pilotage.api import points
from pilotage.api.plugin import Plugin
from pilotage.api.results import NodeNames, Pending, Reason, Reject, Skip
from pilotage.api.state import CycleState
from pilotage.api.table import NodeTable, Rows
from pilotage.cluster.node_rows import NodeRows
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.cluster.node_view import RowView
from pilotage.model import Pod
from pilotage.testing.plugin_check.read_only import ReadOnlyTable, read_only

Verdict = tuple[str, str, bool]
"""Code, message and `unresolvable` of a reason."""
Verdicts = Mapping[str, tuple[Verdict, ...]]
"""Node name -> why the node is rejected; empty if it is not."""
_LEFT_OUT: Verdict = ("NotInNodeSet", "PreFilter left the node out", True)


class OddAnswer(Exception):
    """An answer of a type that the extension point does not know."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Of one form (per node or columns); None where the plugin does not serve the point in this form."""

    filter: Verdicts | None
    score: Mapping[str, int] | None


class Asked:
    """One pod, put to a plugin."""

    def __init__(self, plugin: Plugin, nodes: ClusterNodeTable, pod: Pod) -> None:
        self._plugin: Any = plugin
        self._nodes = nodes
        self._pod = pod
        self.state = CycleState()
        self.pre_filter = self._pre_filtered()
        self.skips_score = self._pre_scored()

    def fits_somewhere(self) -> bool:
        """Whether this plugin alone would let the pod go anywhere."""
        verdicts = self.per_node().filter or self.in_columns().filter
        if verdicts is None:
            verdicts = self._verdicts(dict.fromkeys(self._nodes.names, ()))
        return any(not verdict for verdict in verdicts.values())

    def per_node(self) -> Answers:
        views = [(self._nodes.names[row], RowView(self._nodes, row)) for row in range(len(self._nodes))]
        verdicts = scores = None
        if isinstance(self._plugin, points.Filter):
            found = {}
            for name, view in views if not isinstance(self.pre_filter, Skip | Reject) else ():
                answer = self._plugin.filter(self.state, self._pod, view)
                if not isinstance(answer, Reject | Pending | None):
                    raise OddAnswer(f"filter answered {answer!r} for node {name}; it may be None, Reject or Pending")
                found[name] = () if answer is None else tuple(map(_verdict_of, answer.reasons)) or (("", "", False),)
            verdicts = self._verdicts(found)
        if isinstance(self._plugin, points.Score) and not self.skips_score:
            scores = {name: _whole(self._plugin.score(self.state, self._pod, view), name) for name, view in views}
        return Answers(verdicts, scores)

    def in_columns(self) -> Answers:
        rows = np.arange(len(self._nodes), dtype=np.int64)
        return Answers(self.filter_column(rows), self.score_column(rows))

    def filter_column(self, rows: Rows) -> Verdicts | None:
        """What VectorFilter says of these rows."""
        if not isinstance(self._plugin, points.VectorFilter):
            return None
        table = self._part(rows)
        found: dict[str, tuple[Verdict, ...]] = dict.fromkeys(table.names, ())
        if not isinstance(self.pre_filter, Skip | Reject):
            for mask, reason in self._plugin.filter_all(self.state, self._pod, table):
                for place in np.flatnonzero(_column(mask, np.bool_, len(rows), "filter_all")).tolist():
                    found[table.names[place]] += (_verdict_of(reason),)
        return self._verdicts(found)

    def score_column(self, rows: Rows) -> Mapping[str, int] | None:
        """What VectorScore says of these rows."""
        if not isinstance(self._plugin, points.VectorScore) or self.skips_score:
            return None
        table = self._part(rows)
        column = _column(self._plugin.score_all(self.state, self._pod, table), np.integer, len(rows), "score_all")
        return dict(zip(table.names, column.tolist(), strict=True))

    def normalized(self, scores: Mapping[str, int]) -> Mapping[str, int]:
        if not isinstance(self._plugin, points.NormalizeScore):
            return scores
        raw = np.array(list(scores.values()), dtype=np.int64)
        column = self._plugin.normalize(self.state, self._pod, read_only(raw))
        return dict(zip(scores, _column(column, np.integer, len(raw), "normalize").tolist(), strict=True))

    def _pre_filtered(self) -> Any:
        if not isinstance(self._plugin, points.PreFilter):
            return None
        answer: object = self._plugin.pre_filter(self.state, self._pod, ReadOnlyTable(self._nodes))
        if not isinstance(answer, NodeNames | Skip | Reject | None):
            raise OddAnswer(f"pre_filter answered {answer!r}; it may be None, NodeNames, Skip or Reject")
        if not isinstance(answer, Skip) and not self._may("may_filter"):
            raise OddAnswer(f"pre_filter answered {answer!r} for a pod that may_filter ruled out; it must be Skip")
        return answer

    def _pre_scored(self) -> bool:
        if not isinstance(self._plugin, points.PreScore):
            return False
        answer: object = self._plugin.pre_score(self.state, self._pod, ReadOnlyTable(self._nodes))
        if not isinstance(answer, Skip | None):
            raise OddAnswer(f"pre_score answered {answer!r}; it may be None or Skip")
        if answer is None and not self._may("may_score"):
            raise OddAnswer("pre_score answered None for a pod that may_score ruled out; it must be Skip")
        return isinstance(answer, Skip)

    def _may(self, method: str) -> bool:
        return bool(getattr(self._plugin, method)(self._pod))

    def _part(self, rows: Rows) -> NodeTable:
        """A table of these rows; of all of them it is the table itself, as in the framework."""
        return ReadOnlyTable(self._nodes if len(rows) == len(self._nodes) else NodeRows(self._nodes, rows))

    def _verdicts(self, found: Mapping[str, tuple[Verdict, ...]]) -> Verdicts:
        """With what PreFilter said before."""
        if isinstance(self.pre_filter, Reject):
            why = tuple(map(_verdict_of, self.pre_filter.reasons)) or (("", "", False),)
            return dict.fromkeys(found or self._nodes.names, why)
        if isinstance(self.pre_filter, Skip):
            return dict.fromkeys(found or self._nodes.names, ())
        if isinstance(self.pre_filter, NodeNames):
            return {name: verdict if name in self.pre_filter.names else (_LEFT_OUT,) for name, verdict in found.items()}
        return found


def difference(first: Mapping[str, Any], second: Mapping[str, Any], labels: Sequence[str]) -> list[str]:
    """Two answers side by side for the first node on which they differ; empty if they do not."""
    pairs = list(zip(labels, (first, second), strict=True))
    for name in first:
        if name in second and first[name] != second[name]:
            return [f"on node {name}:", *(f"{label}: {_said(a[name])}" for label, a in pairs)]
    return []


def _said(answer: Any) -> str:
    if isinstance(answer, int):
        return f"score {answer}"
    return "fits" if not answer else "rejected: " + ", ".join(message or code for code, message, _ in answer)


def _verdict_of(reason: object) -> Verdict:
    if not isinstance(reason, Reason):
        raise OddAnswer(f"{reason!r} is no Reason")
    return reason.code, reason.message, reason.unresolvable


def _whole(score: object, name: str) -> int:
    if isinstance(score, bool) or not isinstance(score, int | np.integer):
        raise OddAnswer(f"score answered {score!r} for node {name}; it must be an int")
    return int(score)


def _column(values: Any, kind: type[np.generic], size: int, method: str) -> Any:
    column = np.asarray(values)
    if column.shape != (size,):
        raise OddAnswer(f"{method} answered an array of shape {column.shape} when it was asked about {size} nodes")
    if not np.issubdtype(column.dtype, kind):
        wanted = "bool" if kind is np.bool_ else "int64"
        raise OddAnswer(f"{method} answered an array of {column.dtype}; it must be one of {wanted}")
    return column
