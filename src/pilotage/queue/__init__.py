"""The scheduling queue: active, backoff, unschedulable and gated pods, tickets for pods in flight, requeueing by hints.

Synchronous state machine without locks and without its own time: the clock is handed in.
"""
