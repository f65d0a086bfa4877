"""Scenarios in virtual time: a cluster written down as data, and the real scheduler engine running on it."""
