"""What plugin authors import: the only stable surface of Pilotage.

A plugin is one class in one file. It names the extension points that it serves by inheriting their small abstract
classes, and says with `@on_event` which cluster events may help a pod that it refused.
"""

from pilotage.api.calls import ApiCall, ApiWriter, Ending, Lane, OnOutcome, Outcome, Relevance, Seen, Why
from pilotage.api.conditions import PodCondition
from pilotage.api.events import Action, ClusterEvent, Hint, Resource
from pilotage.api.indexes import ClusterIndex, PodClass
from pilotage.api.plugin import Affected, Plugin, Sees, narrows, on_event
from pilotage.api.points import (
    Bind,
    Details,
    Filter,
    NormalizeScore,
    Permit,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreFilterExtensions,
    PreScore,
    QueueSort,
    Reserve,
    Score,
    VectorFilter,
    VectorScore,
)
from pilotage.api.preemption import Candidate, Evicted, Eviction, VictimSearch
from pilotage.api.results import Detail, NodeNames, Nominate, Pending, PreFlight, Reason, Refusal, Reject, Skip, Wait
from pilotage.api.state import CycleState, StateKey
from pilotage.api.table import Mask, NodeTable, Rows, Scores
from pilotage.api.views import Handle, NodeView, QueuedPod, RejectedNodes

__all__ = [
    "Action",
    "Affected",
    "ApiCall",
    "ApiWriter",
    "Bind",
    "Candidate",
    "ClusterEvent",
    "ClusterIndex",
    "CycleState",
    "Detail",
    "Details",
    "Ending",
    "Evicted",
    "Eviction",
    "Filter",
    "Handle",
    "Hint",
    "Lane",
    "Mask",
    "NodeNames",
    "NodeTable",
    "NodeView",
    "Nominate",
    "NormalizeScore",
    "OnOutcome",
    "Outcome",
    "Pending",
    "Permit",
    "Plugin",
    "PodClass",
    "PodCondition",
    "PostBind",
    "PostFilter",
    "PreBind",
    "PreEnqueue",
    "PreFilter",
    "PreFilterExtensions",
    "PreFlight",
    "PreScore",
    "QueueSort",
    "QueuedPod",
    "Reason",
    "Refusal",
    "Reject",
    "RejectedNodes",
    "Relevance",
    "Reserve",
    "Resource",
    "Rows",
    "Score",
    "Scores",
    "Seen",
    "Sees",
    "Skip",
    "StateKey",
    "VectorFilter",
    "VectorScore",
    "VictimSearch",
    "Wait",
    "Why",
    "narrows",
    "on_event",
]
