"""Benchmarks: the shapes of Kubernetes' own scheduler benchmark, run in the sandbox and measured."""
