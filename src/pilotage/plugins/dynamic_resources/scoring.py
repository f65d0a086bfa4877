"""Among nodes that can serve the claims, prefer those that serve the alternatives listed first."""

from __future__ import annotations

from pilotage.plugins.dynamic_resources.state import PodResourceClaims

MOST_ALTERNATIVES = 8


def has_alternatives(claims: PodResourceClaims) -> bool:
    """Without alternatives all nodes are equally good."""
    return any(wanted.alternative for claim in claims.to_allocate for some in claim.requests for wanted in some)


def preference(claims: PodResourceClaims, node_name: str) -> int:
    """The first of a list of alternatives is worth 8, the next 7, and so on; summed over all such requests."""
    outcome = claims.outcome(node_name)
    if outcome is None:
        return 0
    total = 0
    for claim, picks in zip(outcome.claims, outcome.picks, strict=True):
        taken = {pick.wanted.label for pick in picks}
        for alternatives in claim.requests:
            for place, wanted in enumerate(alternatives):
                if wanted.alternative and wanted.label in taken:
                    total += MOST_ALTERNATIVES - place
    return total
