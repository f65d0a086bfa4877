"""Metrics, logs and the decision log: what the scheduler says about itself."""
