"""What `-v=2` logs: each attempt, binding and preemption, a line with keys for each.

Callers ask `log.isEnabledFor(ATTEMPTS)` first: where it is off, that is all that it costs.
"""

from __future__ import annotations

import logging

from pilotage.api.preemption import Eviction
from pilotage.cycle.failure import Failure
from pilotage.cycle.placement import Placed
from pilotage.framework.waiting_pods import WaitingPod
from pilotage.observe.verbosity import ATTEMPTS
from pilotage.queue.entry import Ticket

log = logging.getLogger(__name__)


def log_placed(ticket: Ticket, placed: Placed, waiting: WaitingPod | None, now: float) -> None:
    """`now` on the clock that never goes backwards, as in all of these."""
    log.log(
        ATTEMPTS,
        "attempt found a node: pod=%s node=%s score=%d permit=%s attempt=%d milliseconds=%.1f",
        ticket.pod.key,
        placed.node_name,
        placed.score,
        "allowed" if waiting is None else f"wait:{','.join(waiting.pending_plugins)}",
        ticket.entry.attempts,
        _milliseconds(ticket, now),
    )


def log_failed(ticket: Ticket, failure: Failure, now: float) -> None:
    diagnosis = failure.diagnosis
    log.log(
        ATTEMPTS,
        "attempt failed: pod=%s reason=%s plugins=%s nominated=%s attempt=%d milliseconds=%.1f message=%s",
        ticket.pod.key,
        failure.reason,
        ",".join(sorted({*diagnosis.rejectors, *diagnosis.pending})) if diagnosis else "",
        failure.nomination or "",
        ticket.entry.attempts,
        _milliseconds(ticket, now),
        failure.message,
    )


def log_bound(ticket: Ticket, node_name: str, now: float) -> None:
    log.log(
        ATTEMPTS,
        "pod bound: pod=%s node=%s attempts=%d milliseconds=%.1f",
        ticket.pod.key,
        node_name,
        ticket.entry.attempts,
        _milliseconds(ticket, now),
    )


def log_binding_failed(ticket: Ticket, node_name: str, failure: Failure) -> None:
    text = "binding failed: pod=%s node=%s reason=%s message=%s"
    log.log(ATTEMPTS, text, ticket.pod.key, node_name, failure.reason, failure.message)


def log_preempted(eviction: Eviction) -> None:
    text = "pod preempted: pod=%s preemptor=%s node=%s plugin=%s"
    log.log(ATTEMPTS, text, eviction.victim.key, eviction.preemptor.key, eviction.node_name, eviction.plugin)


def _milliseconds(ticket: Ticket, now: float) -> float:
    return (now - ticket.started) * 1000
