"""Pilotage: a Kubernetes scheduler that can be programmed in Python, asked why, and replayed."""
