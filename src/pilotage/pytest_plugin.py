"""Fixtures for pytest: a Kubernetes cluster of its own for each test.

    def test_operator(cluster):
        cluster.apply("crds/", "widget.yaml")
        cluster.wait("widget/a", "Ready")

pytest loads this module wherever Pilotage is installed, so it imports the rest only when a test asks for a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pilotage.library.sandbox_cluster import SandboxCluster


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "pilotage(nodes=3, virtual_time=False, ...): options of the test's `cluster` (pilotage.library)"
    )


@pytest.fixture
def make_cluster() -> Iterator[Callable[..., SandboxCluster]]:
    """A function that starts a cluster with the given ClusterOptions; all of them end with the test."""
    from pilotage.library.sandbox_cluster import SandboxCluster

    with ExitStack() as stack:

        def make(**options: Any) -> SandboxCluster:
            return stack.enter_context(SandboxCluster(**options))

        yield make


@pytest.fixture
def cluster(
    request: pytest.FixtureRequest,
    make_cluster: Callable[..., SandboxCluster],
    monkeypatch: pytest.MonkeyPatch,
) -> SandboxCluster:
    """A cluster of this test's own. KUBECONFIG names it meanwhile, so that clients find it."""
    options: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers("pilotage"))):
        options |= mark.kwargs
    made = make_cluster(**options)
    if made.options.https:
        monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig))
    return made
