"""One server of each kind for all tests; each test finds it empty."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotage.bench.cluster_assets import AssetsMissing, find_assets

from .servers import RealServer, SandboxServer, Server
from .world import World

HERE = Path(__file__).parent
MEMORY = Path("/dev/shm")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session", params=["sandbox", "real"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = _fast_folder(request) or tmp_path_factory.mktemp(request.param)
    made = SandboxServer(folder) if request.param == "sandbox" else _real(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def _fast_folder(request: pytest.FixtureRequest) -> Path | None:
    """Where files live in memory: what is tested survives the death of processes, not of the machine."""
    if not os.access(MEMORY, os.W_OK):
        return None
    folder = tempfile.TemporaryDirectory(prefix="pilotage-cluster-test-", dir=MEMORY)
    request.addfinalizer(folder.cleanup)
    return Path(folder.name)


def _real(folder: Path) -> RealServer:
    try:
        return RealServer(find_assets(), folder)
    except AssetsMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture
def world(server: Server, tmp_path: Path) -> Iterator[World]:
    made = World(server, tmp_path)
    try:
        yield made
        words = made.words()
    finally:
        made.end_schedulers()
        print(made.words())
        made.clear()
    assert "Traceback" not in words, words
