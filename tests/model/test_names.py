"""Names that the API server accepts."""

from __future__ import annotations

import re

import pytest

from pilotage.model.names import event_name, reporting_instance

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
SUFFIX = "18a2f0c3d4e5f607"


@pytest.mark.parametrize(
    "about",
    ["p", "a" * 236, "a" * 237, "a" * 253, "b." * 126 + "c", "a" * 235 + "-x" + "y" * 16, "a" * 230 + "-" * 22 + "z"],
)
def test_events_have_names_that_the_api_server_accepts(about: str) -> None:
    name = event_name(about, SUFFIX)
    assert SUBDOMAIN.fullmatch(name) and len(name) <= 253
    assert name.endswith(f".{SUFFIX}") and name.startswith(about[:200])


def test_the_name_of_an_event_is_cut_only_if_it_must_be() -> None:
    assert event_name("a" * 236, SUFFIX) == "a" * 236 + f".{SUFFIX}"
    assert len(event_name("a" * 237, SUFFIX)) == 253


def test_who_reports_is_cut_to_what_the_api_server_takes() -> None:
    assert reporting_instance("default-scheduler", "host") == "default-scheduler-host"
    assert len(reporting_instance("s" * 200, "host")) == 128
