"""Nodes, pod groups and pods to be explained, written as in scenarios."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pilotage.assembly import SchedulerOptions, options_from_configuration, watched_kinds
from pilotage.clock import SystemClock
from pilotage.cluster.state import Cluster
from pilotage.config.feature_gates import FeatureGates
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.explain.engine import cluster_of_manifests, thinking_engines
from pilotage.explain.inquiry import AnyReport, Inquiry, Witnesses, answered
from pilotage.explain.report import GroupReport
from pilotage.simulate.shorthands import full_object
from tests.cycle.group_stage import GATES


class GroupWorld:
    """A cluster and what is asked about it."""

    def __init__(self, *objects: Mapping[str, Any], gates: Mapping[str, bool] = GATES) -> None:
        self.options: SchedulerOptions = options_from_configuration(SchedulerConfiguration(), (), FeatureGates(gates))
        manifests = [full_object(obj) for obj in objects]
        self.cluster: Cluster = cluster_of_manifests(manifests, watched_kinds(self.options))
        self.engines = thinking_engines(self.cluster, SystemClock(), self.options)

    def ask(self, subject: str, **witnesses: Any) -> AnyReport:
        has_own_policy = self.options.feature_gates["PodGroupPreemptionPolicy"]
        asked = Witnesses(self.engines, has_own_policy=has_own_policy, **witnesses)
        return answered(Inquiry(subject, "default"), self.cluster, asked)

    def group(self, name: str, **witnesses: Any) -> GroupReport:
        report = self.ask(f"podgroup/{name}", **witnesses)
        assert isinstance(report, GroupReport)
        self.cluster.check()
        return report


def changes(report: GroupReport) -> list[str]:
    return [advice.change for advice in report.would_fit_if]
