"""The shell around the engine of workload queueing: watches in, API calls out, jobs started and stopped."""
