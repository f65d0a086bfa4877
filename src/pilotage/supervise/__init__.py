"""The process beside the scheduler: renews its lease, answers on its ports, and replaces it when it is stuck."""
