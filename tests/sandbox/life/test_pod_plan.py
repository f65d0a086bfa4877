"""Annotations that tell a simulated kubelet what a pod does."""

from __future__ import annotations

import pytest

from pilotage.sandbox.life.facts import PodAnnotations
from pilotage.sandbox.life.pod_plan import PlanError, PodPlan, parse_duration, read_plan


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5s", 5.0), ("500ms", 0.5), ("1m30s", 90.0), ("2h", 7200.0), ("1.5s", 1.5), ("0", 0.0), ("1h0m0.5s", 3600.5)],
)
def test_duration_is_read_as_go_writes_it(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "s", "5 s", "-5s", "5s ", "1d", "five"])
def test_text_that_is_no_duration_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        parse_duration(text)


def test_no_annotations_leave_everything_to_the_settings() -> None:
    assert read_plan(PodAnnotations()) == PodPlan(None, None, 0, False, 0.0)


def test_failing_pod_exits_at_once_with_code_one_or_the_one_asked_for() -> None:
    assert read_plan(PodAnnotations(fail="true")) == PodPlan(run_for=0.0, exit_code=1)
    assert read_plan(PodAnnotations(fail="true", exit_code="42")).exit_code == 42
    assert read_plan(PodAnnotations(fail="false")) == PodPlan()


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        (PodAnnotations(start_delay="5x"), 'sandbox.pilotage.dev/start-delay: "5x" is no duration'),
        (PodAnnotations(fail="yes"), 'sandbox.pilotage.dev/fail: "yes" is neither "true" nor "false"'),
        (PodAnnotations(exit_code="256"), 'sandbox.pilotage.dev/exit-code: "256" is no exit code'),
        (PodAnnotations(exit_code="-1"), 'sandbox.pilotage.dev/exit-code: "-1" is no exit code'),
    ],
)
def test_wrong_annotation_is_named_in_the_error(annotations: PodAnnotations, message: str) -> None:
    with pytest.raises(PlanError) as error:
        read_plan(annotations)
    assert message in str(error.value)
