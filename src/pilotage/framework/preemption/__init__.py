"""Preemption as a question: on which nodes would the pod fit if pods of lower priority went, and which of them.

Nothing here changes anything. `search` walks over the nodes, `victims` tries one of them, `budgets` knows which pods a
disruption budget protects.
"""

from pilotage.framework.preemption.search import Preemption, Search

__all__ = ["Preemption", "Search"]
