"""Pilotage: a Kubernetes scheduler that can be programmed in Python, asked why, and replayed."""

__version__ = "0.1.0"
"""As in pyproject.toml: asking for the metadata of the installed package would take longer than all of `--version`."""
