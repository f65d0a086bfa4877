"""Preemption as a question: on which nodes would the pod fit if pods of lower priority went, and which of them.

Nothing here changes anything outside of it.

    search      remembers what was found out for pods of equal content, and starts the walk
    first_step  nodes that no eviction can help, found in columns
    walk        one node after the other until there are enough candidates
    victims     who would have to go from one node
    review      candidates that extenders look at before one of them is chosen
    budgets     whom a disruption budget protects
"""

from pilotage.framework.preemption.search import Preemption

__all__ = ["Preemption"]
