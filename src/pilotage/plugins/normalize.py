"""Bring raw scores to 0..100 by their maximum, as most default plugins do."""

from __future__ import annotations

import numpy as np

from pilotage.api import Scores

MAX_SCORE = 100


def by_maximum(raw: Scores, *, reverse: bool = False) -> Scores:
    """The largest raw score becomes 100 (or 0 if `reverse`); without any positive score all nodes are alike."""
    highest = int(raw.max(initial=0))
    if highest == 0:
        return np.full_like(raw, MAX_SCORE) if reverse else raw
    scaled: Scores = raw * MAX_SCORE // highest
    return MAX_SCORE - scaled if reverse else scaled
