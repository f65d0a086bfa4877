"""What the probes of a simulated container find, and when: nothing is asked, so that it is known beforehand.

    startup    succeeds at once, or after `startup-after`; later than the threshold allows, and the container is killed
    readiness  succeeds after its initial delay and `ready-after`, fails from `unready-after` on
    liveness   fails from `unhealthy-after` on; as often as its threshold says, and the container is killed

Probes that run a command which is known (see `programs`) find what the command says. Times count from the start of the
container.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pilotage.sandbox.life.pod_plan import PodPlan
from pilotage.sandbox.life.programs import run_command

Probe = Mapping[str, Any]

_PERIOD: Final = 10
_FAILURES: Final = 3


@dataclass(frozen=True, slots=True)
class Probed:
    """The life of a container by its probes, in seconds after its start."""

    started_after: float = 0.0
    ready_after: float | None = 0.0
    """None: never."""
    unready_after: float | None = None
    killed_after: float | None = None
    """When it has failed a probe for too long; None: never."""
    killed_by: str = ""
    """The probe."""


UNPROBED: Final = Probed()


def probed(container: Mapping[str, Any], plan: PodPlan) -> Probed:
    startup, readiness, liveness = (container.get(f"{kind}Probe") for kind in ("startup", "readiness", "liveness"))
    started = 0.0
    if startup:
        started = max(_delay(startup), plan.startup_after)
        given_up = _delay(startup) + _period(startup) * _threshold(startup)
        if _fails(startup) or started > given_up:
            return Probed(given_up, None, None, given_up, "startup")
    ready: float | None = max(started, plan.ready_after)
    if readiness and ready is not None:
        ready = None if _fails(readiness) else max(ready, started + _delay(readiness))
    if plan.is_never_ready:
        ready = None
    begins = 0.0 if liveness and _fails(liveness) else plan.unhealthy_after
    if not liveness or begins is None:
        return Probed(started, ready, plan.unready_after)
    killed = max(begins, started + _delay(liveness)) + _period(liveness) * (_threshold(liveness) - 1)
    return Probed(started, ready, plan.unready_after, killed, "liveness")


def _delay(probe: Probe) -> float:
    return float(probe.get("initialDelaySeconds") or 0)


def _period(probe: Probe) -> float:
    return float(probe.get("periodSeconds") or _PERIOD)


def _threshold(probe: Probe) -> int:
    return int(probe.get("failureThreshold") or _FAILURES)


def _fails(probe: Probe) -> bool:
    """Whether the command of the probe is known to fail."""
    command = tuple(map(str, (probe.get("exec") or {}).get("command") or ()))
    outcome = run_command(command) if command else None
    return outcome is not None and outcome.exit_code != 0
