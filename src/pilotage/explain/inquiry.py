"""What somebody wants to have explained, a pod or a pod group, and the answer with all that is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from pilotage.api.budget import UNLIMITED, Budget
from pilotage.api.group_members import PodGroups, group_key
from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import ProfileEngine
from pilotage.explain.explainer import explain
from pilotage.explain.group_text import with_group_answer
from pilotage.explain.pod_groups import explain_group, members_of
from pilotage.explain.queue_place import group_place, with_queue, with_siblings
from pilotage.explain.render import with_answer
from pilotage.explain.report import GroupReport, JobQuota, Report
from pilotage.explain.subject import UnknownSubject, find_siblings, find_subject, group_subject, job_named
from pilotage.model import Pod
from pilotage.queue.report import QueueReport

AnyReport: TypeAlias = Report | GroupReport
QuotaOf: TypeAlias = Callable[[str], JobQuota | None]
"""What workload queueing says of the job of this name; None if it has nothing to do with it."""


class Inquiry(Struct, frozen=True):
    """A question."""

    subject: str
    namespace: str
    node: str = ""


class Witnesses(Struct, frozen=True):
    """Who is asked, beside the cluster itself."""

    engines: Mapping[str, ProfileEngine]
    queue: QueueReport | None = None
    """Of the scheduler that runs there."""
    quota_of: QuotaOf = lambda job: None
    has_own_policy: bool = False
    """Whether groups say by themselves if they preempt (PodGroupPreemptionPolicy)."""
    may_add_nodes: bool = True
    """Whether no one else uses the cluster, so that nodes can be added to try that out."""


def answered(inquiry: Inquiry, cluster: Cluster, witnesses: Witnesses, budget: Budget = UNLIMITED) -> AnyReport:
    """UnknownSubject or UnknownNode if there is no such thing, BudgetExceeded if it takes too long."""
    key = group_subject(cluster, inquiry.subject, inquiry.namespace)
    if key:
        return _with_quota(_group(cluster, witnesses, key, budget), _job_of_group(cluster, witnesses, key), witnesses)
    pod = find_subject(cluster, inquiry.subject, inquiry.namespace)
    engine = witnesses.engines.get(pod.spec.scheduler_name)
    if engine is None:
        known = ", ".join(witnesses.engines)
        raise UnknownSubject(
            f'{pod.key} is scheduled by "{pod.spec.scheduler_name}", which is no profile here ({known})'
        )
    report = explain(engine, pod, inquiry.node or None, budget)
    siblings = find_siblings(cluster, inquiry.subject, pod)
    if group_key(pod) and "PodGroup" in cluster.kinds.keys:
        report = _of_member(report, pod, _group(cluster, witnesses, group_key(pod), budget))
    elif witnesses.queue is None:
        report = with_siblings(report, pod, *siblings)
    else:
        report = with_queue(report, witnesses.queue, pod, *siblings)
    return _with_quota(report, job_named(inquiry.subject, pod), witnesses)


def _group(cluster: Cluster, witnesses: Witnesses, key: str, budget: Budget) -> GroupReport:
    report = explain_group(
        witnesses.engines,
        cluster,
        key,
        budget,
        has_own_policy=witnesses.has_own_policy,
        may_add_nodes=witnesses.may_add_nodes,
    )
    return report if witnesses.queue is None else replace(report, queue=group_place(witnesses.queue, key))


def _of_member(report: Report, pod: Pod, group: GroupReport) -> Report:
    """A member that waits has no fate of its own: what would become of it alone is about another pod like it."""
    if pod.node_name:
        return replace(report, pod_group=group)
    member = Report(
        pod=report.pod,
        answer="",
        fits=group.fits,
        scheduler=report.scheduler,
        nodes=report.nodes,
        nearest=report.nearest if report.fits else (),
        unserved=report.unserved,
        skipped=report.skipped,
        pod_group=group,
    )
    return with_answer(member)


def _job_of_group(cluster: Cluster, witnesses: Witnesses, key: str) -> str:
    members = members_of(cluster.index(PodGroups), key, witnesses.engines)
    return job_named("", members[0]) if members else ""


def _with_quota(report: AnyReport, job: str, witnesses: Witnesses) -> AnyReport:
    quota = witnesses.quota_of(job) if job else None
    if quota is None:
        return report
    fits = report.fits and quota.is_admitted
    if isinstance(report, GroupReport):
        return with_group_answer(replace(report, quota=quota, fits=fits))
    return with_answer(replace(report, quota=quota, fits=fits))
