"""Profiles of plugins, and the rules by which their extension points are run."""
