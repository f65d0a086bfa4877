"""What a pod asks of its simulated kubelet, by annotations.

    sandbox.pilotage.dev/start-delay: 5s     starts that long after it was bound, instead of the usual delay
    sandbox.pilotage.dev/ready-after: 10s    becomes ready that long after its containers started
    sandbox.pilotage.dev/never-ready: "true" runs but is never ready
    sandbox.pilotage.dev/unready-after: 30s  its readiness probes fail from then on
    sandbox.pilotage.dev/startup-after: 15s  its startup probes succeed from then on
    sandbox.pilotage.dev/unhealthy-after: 1m its liveness probes fail from then on
    sandbox.pilotage.dev/run-for: 30s        its containers exit after that time
    sandbox.pilotage.dev/exit-code: "1"      ... with this code instead of 0
    sandbox.pilotage.dev/fail: "true"        its containers exit as soon as they start, with code 1 or exit-code

Containers that exit end the pod (Succeeded or Failed) or are restarted, as the pod's restartPolicy says. Pods of a Job
exit after a default time even without `run-for`. Durations are written as in Go: `500ms`, `5s`, `1m30s`, `2h`.

An annotation that makes no sense raises PlanError; the kubelet then does not start the pod and says why in its status.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pilotage.sandbox.life.facts import PodAnnotations

PREFIX: Final = "sandbox.pilotage.dev/"

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h))+")


class PlanError(ValueError):
    """An annotation that cannot be followed; the message names it and says what would be right."""


@dataclass(frozen=True, slots=True)
class PodPlan:
    """The life that the annotations of a pod describe; None where they leave it to the kubelet's settings."""

    start_delay: float | None = None
    run_for: float | None = None
    exit_code: int = 0
    is_never_ready: bool = False
    ready_after: float = 0.0
    unready_after: float | None = None
    startup_after: float = 0.0
    unhealthy_after: float | None = None


@lru_cache(maxsize=4096)
def read_plan(annotations: PodAnnotations) -> PodPlan:
    """The plan that these annotations describe, or PlanError."""
    fails = _flag("fail", annotations.fail)
    return PodPlan(
        start_delay=_duration("start-delay", annotations.start_delay),
        run_for=0.0 if fails else _duration("run-for", annotations.run_for),
        exit_code=_or(exit_code_in("exit-code", annotations.exit_code), 1 if fails else 0),
        is_never_ready=_flag("never-ready", annotations.never_ready),
        ready_after=_duration("ready-after", annotations.ready_after) or 0.0,
        unready_after=_duration("unready-after", annotations.unready_after),
        startup_after=_duration("startup-after", annotations.startup_after) or 0.0,
        unhealthy_after=_duration("unhealthy-after", annotations.unhealthy_after),
    )


def parse_duration(text: str) -> float:
    """Seconds of a duration as Go writes it; ValueError if it is none."""
    if text == "0":
        return 0.0
    if not _DURATION.fullmatch(text):
        raise ValueError(f'"{text}" is no duration (write e.g. 500ms, 5s, 1m30s)')
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def _duration(name: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        raise PlanError(f"annotation {PREFIX}{name}: {error}") from None


def _flag(name: str, text: str | None) -> bool:
    if text not in (None, "true", "false"):
        raise PlanError(f'annotation {PREFIX}{name}: "{text}" is neither "true" nor "false"')
    return text == "true"


def exit_code_in(name: str, text: str | None) -> int | None:
    """The exit code that the annotation of this name says, or PlanError."""
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) > 255:
        raise PlanError(f'annotation {PREFIX}{name}: "{text}" is no exit code (0 to 255)')
    return int(text)


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
