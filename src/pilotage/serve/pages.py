"""Which pages there are: the table of paths."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence

from msgspec import Struct

from pilotage import __version__
from pilotage.assembly import SchedulerOptions
from pilotage.clock import Clock
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.observe.declaration import MetricTable
from pilotage.observe.metrics import Metrics
from pilotage.serve import component_pages, debug_pages
from pilotage.serve.component_pages import About
from pilotage.serve.health import (
    READINESS,
    SHUTDOWN,
    SYNCED,
    HealthCheck,
    HealthPage,
    OnResult,
    election_check,
    three_pages,
)
from pilotage.serve.metrics_pages import count_checks, metrics_page, slis_page
from pilotage.serve.page import Page, PageAnswer, PageRequest
from pilotage.serve.service import SchedulerService
from pilotage.serve.site import Site
from pilotage.serve.start_checks import FOLLOWED_VERSION


class SiteFacts(Struct, frozen=True):
    """What the pages show that the scheduler does not know itself."""

    about: About
    configuration: SchedulerConfiguration
    options: SchedulerOptions
    flags: Mapping[str, str]
    metrics: Metrics
    more_metrics: Sequence[MetricTable] = ()


def site_facts(
    service: SchedulerService,
    clock: Clock,
    configuration: SchedulerConfiguration,
    options: SchedulerOptions,
    flags: Mapping[str, str],
    metrics: Metrics,
) -> SiteFacts:
    """What there is to show of a service; from now on its election is among the metrics."""
    elector = service.elector
    if elector is not None:
        name = elector.election.lease.name
        metrics.leader_election_master_status.read_from(lambda: {(name,): float(elector.is_leading)})
        metrics.leader_election_slowpath_total.read_from(lambda: {(name,): float(elector.slow_paths)})
    about = About(__version__, FOLLOWED_VERSION, platform.python_version(), clock.time())
    queueing = service.process.queueing
    return SiteFacts(about, configuration, options, flags, metrics, () if queueing is None else (queueing.metrics,))


def build_site(
    service: SchedulerService, clock: Clock, facts: SiteFacts, more: Mapping[str, Page] | None = None
) -> Site:
    """All pages of a service, and `more` that somebody else has made."""
    scheduler, gates = service.process.scheduler, facts.options.feature_gates
    health = health_pages(service, clock, count_checks(facts.metrics))
    pages: dict[str, Page] = {f"/{page.name}": page for page in health}
    pages |= {f"/{page.name}/": page for page in health}
    pages |= {
        "/metrics": metrics_page([facts.metrics, *facts.more_metrics]),
        "/metrics/resources": _resources_page(service),
        "/metrics/slis": slis_page(facts.metrics, health),
        "/configz": component_pages.configz(facts.configuration, facts.options.queueing),
        "/debug/queue": debug_pages.queue_page(scheduler),
        "/debug/timeline": debug_pages.timeline_page(scheduler),
        "/debug/cache": debug_pages.cache_page(scheduler),
        "/debug/explain": debug_pages.explain_page(scheduler, clock, facts.options),
    }
    if facts.configuration.scheduler.enable_profiling:
        pages["/debug/flags/v"] = debug_pages.verbosity_page()
    if gates["ComponentFlagz"]:
        pages["/flagz"] = component_pages.flagz(facts.flags)
    if gates["ComponentStatusz"]:
        pages["/statusz"] = component_pages.statusz(
            facts.about, clock, lambda: site.paths, facts.metrics.skipped, facts.options.origins
        )
    if service.process.queueing is not None:
        from pilotage.serve.admission_pages import admission_pages
        from pilotage.serve.visibility_pages import visibility_pages

        if facts.options.queueing is not None:
            pages |= admission_pages(facts.options.queueing.admitted_frameworks)
        pages |= visibility_pages(service.process.queueing.visibility)
    site = Site({**pages, **(more or {})})
    return site


def _resources_page(service: SchedulerService) -> Page:
    def answer(request: PageRequest) -> PageAnswer:
        # As everything that writes metrics, only on a scrape: prometheus_client brings HTTP servers along.
        from pilotage.serve.pod_resources_page import pod_resources_page

        return pod_resources_page(service.process.scheduler.cluster, lambda: service.is_scheduling)(request)

    return answer


def health_pages(service: SchedulerService, clock: Clock, on_result: OnResult) -> list[HealthPage]:
    """Of a scheduler that answers for itself."""
    election = [] if service.elector is None else [election_check(service.elector.election, clock)]
    ready = [HealthCheck(name, lambda name=name: readiness(service)[name]) for name in READINESS]  # type: ignore[misc]
    return three_pages(on_result, election=election, ready=ready)


def readiness(service: SchedulerService) -> dict[str, str]:
    """What keeps a scheduler from being ready, by the name of the check; "" if that passes."""
    waiting = [one.kind.plural for one in service.process.reflectors if not one.has_synced]
    return {
        SHUTDOWN: "the process is shutting down" if service.is_stopping else "",
        SYNCED: f"handlers are not fully synchronized: {', '.join(waiting)}" if waiting else "",
    }
