"""`/healthz`, `/livez`, `/readyz`: named checks, each alone or all together, as kubelets and people ask for them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from pilotage.clock import Clock
from pilotage.serve.elector import ElectionFacts
from pilotage.serve.page import PageAnswer, PageRequest, error_answer, text_answer

log = logging.getLogger(__name__)


class HealthCheck(Struct, frozen=True):
    """`problem` says what is wrong, "" if nothing is. Its words go to the log; the network gets yes or no."""

    name: str
    problem: Callable[[], str]


OnResult = Callable[[str, str, bool], None]
"""Called for every check that was made: page, check, whether it passes."""

PING = HealthCheck("ping", lambda: "")
SHUTDOWN: Final = "shutdown"
SYNCED: Final = "sched-handler-sync"
READINESS: Final = (SHUTDOWN, SYNCED)
OVERDUE_SECONDS: Final = 20.0
"""How long after the end of its lease a process that still thinks it leads counts as stuck."""


class HealthPage:
    """One of the three pages. Answers `/name`, `/name/check`, `?verbose` and `?exclude=check`."""

    def __init__(self, name: str, checks: Sequence[HealthCheck], on_result: OnResult) -> None:
        self.name = name
        self.checks = tuple(checks)
        self._on_result = on_result

    def problems(self) -> dict[str, str]:
        """What is wrong now, by check; empty if all is well."""
        return {check.name: problem for check in self.checks if (problem := self._problem(check))}

    def _problem(self, check: HealthCheck) -> str:
        problem = check.problem()
        self._on_result(self.name, check.name, not problem)
        return problem

    def __call__(self, request: PageRequest) -> PageAnswer:
        wanted = request.path.removeprefix(f"/{self.name}").strip("/")
        return self._single(wanted) if wanted else self._all(request)

    def _single(self, name: str) -> PageAnswer:
        for check in self.checks:
            if check.name == name:
                problem = self._problem(check)
                return text_answer(f"internal server error: {problem}", 500) if problem else text_answer("ok")
        return error_answer(404, "NotFound", f"{self.name} has no check {name!r}")

    def _all(self, request: PageRequest) -> PageAnswer:
        excluded = list(request.query.get("exclude", ()))
        problems = {name: why for name, why in self.problems().items() if name not in excluded}
        if not problems and "verbose" not in request.query:
            return text_answer("ok")
        lines = [self._line(check.name, check.name in excluded, check.name in problems) for check in self.checks]
        unknown = [name for name in excluded if name not in {check.name for check in self.checks}]
        if unknown:
            shown = ", ".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {shown}")
        if problems:
            log.info("%s check failed: %s", self.name, "; ".join(f"{name}: {why}" for name, why in problems.items()))
        lines.append(f"{self.name} check {'failed' if problems else 'passed'}\n")
        return text_answer("\n".join(lines), 500 if problems else 200)

    @staticmethod
    def _line(name: str, is_excluded: bool, has_failed: bool) -> str:
        if is_excluded:
            return f"[+]{name} excluded: ok"
        return f"[-]{name} failed: reason withheld" if has_failed else f"[+]{name} ok"


def three_pages(
    on_result: OnResult,
    *,
    election: Sequence[HealthCheck] = (),
    ready: Sequence[HealthCheck] = (),
    alive: Sequence[HealthCheck] = (),
) -> list[HealthPage]:
    """Alive: it answers, and what `alive` says. Ready: it has the whole cluster in memory, whether it leads or not."""
    return [
        HealthPage("healthz", [PING, *election, *alive], on_result),
        HealthPage("livez", [PING, *alive], on_result),
        HealthPage("readyz", [PING, *election, *ready], on_result),
    ]


def election_check(election: ElectionFacts, clock: Clock) -> HealthCheck:
    """A leader whose lease is long over and that has not ended yet: let it be killed."""

    def problem() -> str:
        if election.renewed_at is None:
            return ""
        late = clock.monotonic() - election.renewed_at - election.timing.lease_seconds
        return f"failed election to renew leadership on lease {election.lease.name}" if late > OVERDUE_SECONDS else ""

    return HealthCheck("leaderElection", problem)
