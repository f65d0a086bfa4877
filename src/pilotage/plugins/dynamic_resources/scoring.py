"""Among nodes that can serve the claims, prefer those that serve the alternatives listed first."""

from __future__ import annotations

from pilotage.plugins.dynamic_resources.state import NodeOutcome

MOST_ALTERNATIVES = 8


def preference(outcome: NodeOutcome) -> int:
    """The first of a list of alternatives is worth 8, the next 7, and so on; summed over all such requests."""
    total = 0
    for claim, picks in zip(outcome.claims, outcome.picks, strict=True):
        taken = {(pick.wanted.request, pick.wanted.alternative) for pick in picks}
        for alternatives in claim.requests:
            for place, wanted in enumerate(alternatives):
                if wanted.alternative and (wanted.request, wanted.alternative) in taken:
                    total += MOST_ALTERNATIVES - place
    return total
