from __future__ import annotations

import msgspec

from pilotage.observe.metrics import Metrics
from pilotage.observe.transfer import Difference, MetricChange, add_changes


def sent(changes: list[MetricChange]) -> list[MetricChange]:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(changes), type=list[MetricChange])


def test_what_was_counted_elsewhere_is_added_to_what_was_counted_here() -> None:
    there, here = Metrics(), Metrics()
    difference = Difference(there)
    for table in (there, here):
        table.rest_client_requests_total.add("200", "GET", "host")
        table.rest_client_request_duration_seconds.observe(0.3, "GET", "host")
        table.kubernetes_healthcheck.set(1, "ping", "livez")
    add_changes(here, sent(difference.take()))
    assert here.rest_client_requests_total.value("200", "GET", "host") == 2
    line = here.rest_client_request_duration_seconds.lines()["GET", "host"]
    assert (line.count, line.sum) == (2, 0.6)
    assert here.kubernetes_healthcheck.value("ping", "livez") == 1


def test_everything_is_reported_once() -> None:
    table = Metrics()
    difference = Difference(table)
    table.rest_client_requests_total.add("200", "GET", "host")
    assert len(difference.take()) == 1 and difference.take() == []
    table.rest_client_requests_total.add("200", "GET", "host", amount=2)
    assert difference.take() == [MetricChange("rest_client_requests_total", ("200", "GET", "host"), 2.0)]
