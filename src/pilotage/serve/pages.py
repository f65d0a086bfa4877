"""Which pages there are: the table of paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pilotage.assembly import SchedulerOptions
from pilotage.clock import Clock
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.observe.declaration import MetricTable
from pilotage.observe.metrics import Metrics
from pilotage.serve import component_pages, debug_pages
from pilotage.serve.component_pages import About
from pilotage.serve.health import PING, Check, HealthPage, OnResult
from pilotage.serve.metrics_pages import count_checks, metrics_page, slis_page
from pilotage.serve.page import Page
from pilotage.serve.pod_resources_page import pod_resources_page
from pilotage.serve.service import SchedulerService
from pilotage.serve.site import Site
from pilotage.serve.timeline_page import timeline_page
from pilotage.serve.visibility_pages import visibility_pages

WATCHDOG_SECONDS = 20.0
"""How long after the end of its lease a process that still thinks it leads counts as stuck."""


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """What the pages tell that the scheduler does not know itself."""

    about: About
    configuration: SchedulerConfiguration
    options: SchedulerOptions
    flags: Mapping[str, str]
    metrics: Metrics
    more_metrics: Sequence[MetricTable] = ()


def build_site(service: SchedulerService, clock: Clock, facts: SiteFacts) -> Site:
    """All pages of a service."""
    scheduler, gates = service.process.scheduler, facts.options.feature_gates
    health = health_pages(service, clock, count_checks(facts.metrics))
    pages: dict[str, Page] = {f"/{page.name}": page for page in health}
    pages |= {f"/{page.name}/": page for page in health}
    pages |= {
        "/metrics": metrics_page([facts.metrics, *facts.more_metrics]),
        "/metrics/resources": pod_resources_page(scheduler.cluster, lambda: service.is_scheduling),
        "/metrics/slis": slis_page(facts.metrics, health),
        "/configz": component_pages.configz(facts.configuration),
        "/debug/queue": debug_pages.queue_page(scheduler),
        "/debug/timeline": timeline_page(scheduler),
        "/debug/cache": debug_pages.cache_page(scheduler),
        "/debug/explain": debug_pages.explain_page(scheduler, clock, facts.options),
    }
    if facts.configuration.scheduler.enable_profiling:
        pages["/debug/flags/v"] = debug_pages.verbosity_page()
    if gates["ComponentFlagz"]:
        pages["/flagz"] = component_pages.flagz(facts.flags)
    if gates["ComponentStatusz"]:
        pages["/statusz"] = component_pages.statusz(facts.about, clock, lambda: site.paths)
    if service.process.queueing is not None:
        pages |= visibility_pages(service.process.queueing.visibility)
    site = Site(pages)
    return site


def health_pages(service: SchedulerService, clock: Clock, on_result: OnResult) -> list[HealthPage]:
    """Alive: it answers. Ready: it has the whole cluster in memory, whether it leads or stands by."""
    synced = Check("sched-handler-sync", lambda: _sync_problem(service))
    shutdown = Check("shutdown", lambda: "the process is shutting down" if service.is_stopping else "")
    election = [] if service.elector is None else [Check("leaderElection", lambda: _election_problem(service, clock))]
    return [
        HealthPage("healthz", [PING, *election], on_result),
        HealthPage("livez", [PING], on_result),
        HealthPage("readyz", [PING, *election, shutdown, synced], on_result),
    ]


def _sync_problem(service: SchedulerService) -> str:
    waiting = [one.kind.plural for one in service.process.reflectors if not one.has_synced]
    return f"handlers are not fully synchronized: {', '.join(waiting)}" if waiting else ""


def _election_problem(service: SchedulerService, clock: Clock) -> str:
    """A leader whose lease is long over and that has not ended yet: let it be killed."""
    if service.elector is None or service.elector.election.renewed_at is None:
        return ""
    election = service.elector.election
    late = clock.monotonic() - (election.renewed_at or 0.0) - election.timing.lease_seconds
    return f"failed election to renew leadership on lease {election.lease.name}" if late > WATCHDOG_SECONDS else ""
