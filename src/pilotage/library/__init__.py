"""Pilotage in programs of your own: a scheduler with your plugins, and the framework without a scheduler."""

from pilotage.config.problems import ConfigError
from pilotage.lab.case import CaseError, Decision, replay_case
from pilotage.lab.comparison import Comparison
from pilotage.lab.prices import PriceError, Prices, read_prices
from pilotage.lab.results import Result, ResultError
from pilotage.lab.trace.format import TraceError
from pilotage.library.framework import Answer, Framework
from pilotage.library.laboratory import compare, figures, report, simulate
from pilotage.library.sandbox_cluster import ClusterOptions, ConditionNotMet, NoSuchKind, SandboxCluster, Snapshot
from pilotage.library.scheduler import Scheduler
from pilotage.serve.endpoints import EndpointOptions
from pilotage.serve.service import LeadershipLost

__all__ = [
    "Answer",
    "CaseError",
    "ClusterOptions",
    "Comparison",
    "ConditionNotMet",
    "ConfigError",
    "Decision",
    "EndpointOptions",
    "Framework",
    "LeadershipLost",
    "NoSuchKind",
    "PriceError",
    "Prices",
    "Result",
    "ResultError",
    "SandboxCluster",
    "Scheduler",
    "Snapshot",
    "TraceError",
    "compare",
    "figures",
    "read_prices",
    "replay_case",
    "report",
    "simulate",
]
