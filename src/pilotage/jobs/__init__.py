"""Workload queueing (Kueue): jobs wait in queues until quota allows them to start."""
