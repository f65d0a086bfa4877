"""explain with plugins that watch kinds of their own: from manifests and from a server."""

from __future__ import annotations

import logging

import pytest

from pilotage.api.kinds import WatchedKinds
from pilotage.assembly import options_from_configuration, watched_kinds
from pilotage.clock import SystemClock
from pilotage.cluster.state import Cluster
from pilotage.config.load import default_configuration
from pilotage.explain.engine import cluster_of_manifests, cluster_of_server, thinking_engines
from pilotage.explain.explainer import explain
from pilotage.explain.report import Report
from pilotage.kube.client import KubeClient
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.testing import VirtualClock, node, pod
from tests.cycle.foreign_kinds_world import CRDS, TICKET, TICKETS, PlainTickets, Tickets, definition, ticket

OPTIONS = options_from_configuration(default_configuration(), [Tickets, PlainTickets])


def report(cluster: Cluster) -> Report:
    engine = thinking_engines(cluster, SystemClock(), OPTIONS)["default-scheduler"]
    return explain(engine, cluster.objects("Pod")["default/p"])


def test_objects_among_the_manifests_are_read_in_each_type() -> None:
    objects = [node("n").json(), pod("p").json()]
    without = report(cluster_of_manifests(objects, watched_kinds(OPTIONS)))
    assert not without.fits and "no open ticket" in without.answer
    retried = {event.resource for event in without.retried_after}
    assert TICKET.name in retried
    assert report(cluster_of_manifests([*objects, ticket("p")], watched_kinds(OPTIONS))).fits


def test_an_object_that_does_not_fit_the_type_is_named() -> None:
    objects = [node("n").json(), pod("p").json(), ticket("p", is_open="perhaps")]
    found = report(cluster_of_manifests(objects, WatchedKinds({"Tickets": Tickets.watches, "P": PlainTickets.watches})))
    assert not found.fits
    assert any("tickets.v1.example.com default/p is skipped (decode)" in line for line in found.skipped)


async def test_a_server_that_does_not_have_the_kind_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    clock, rng = VirtualClock(), seeded(1)
    async with EmbeddedCluster.running(EmbeddedOptions(nodes=1, port=None), clock, rng) as running:
        client = KubeClient(running.transport())
        cluster = await cluster_of_server(client, watched_kinds(OPTIONS))
        assert dict(cluster.watched(TICKET)) == {}
        assert any("does not have this kind" in record.message for record in caplog.records)
        assert caplog.records[0].levelno == logging.WARNING
        running.api.create(CRDS, "", definition())
        running.api.create(TICKETS, "default", ticket("p"))
        cluster = await cluster_of_server(client, watched_kinds(OPTIONS))
        assert list(cluster.watched(TICKET)) == ["default/p"]
