"""One server of each kind for all tests; each test finds it empty."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotage.bench.cluster_assets import AssetsMissing, find_assets, pod_group_release
from pilotage.model import KINDS

from .servers import RealServer, SandboxServer, Server
from .world import World

HERE = Path(__file__).parent
MEMORY = Path("/dev/shm")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.cluster)
    pointless = [item for item in items if _needs_another_server(item)]
    if pointless:
        items[:] = [item for item in items if item not in pointless]
        config.hook.pytest_deselected(items=pointless)


def _needs_another_server(item: pytest.Item) -> bool:
    """Is it about something that only a real API server has, and was made for the sandbox?"""
    made_for = getattr(item, "callspec", None)
    return (
        item.get_closest_marker("real_server") is not None
        and made_for is not None
        and made_for.params.get("server") == "sandbox"
    )


@pytest.fixture(params=["sandbox", "real"])
def server(request: pytest.FixtureRequest) -> Server:
    # Both go on to the end: starting one anew for every file took as long as the tests in it.
    running: Server = request.getfixturevalue(f"{request.param}_server")
    return running


@pytest.fixture(scope="session")
def sandbox_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    yield from _running(SandboxServer(_fast_folder(request) or tmp_path_factory.mktemp("sandbox")))


@pytest.fixture(scope="session")
def real_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    yield from _running(_real(_fast_folder(request) or tmp_path_factory.mktemp("real")))


@pytest.fixture(scope="session")
def grouped_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real one that was told to have pod groups, with everything that belongs to them."""
    yield from _running(_with_groups(_fast_folder(request) or tmp_path_factory.mktemp("grouped")))


def _running(made: Server) -> Iterator[Server]:
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


def _with_groups(folder: Path) -> RealServer:
    try:
        assets = find_assets()
    except AssetsMissing as missing:
        pytest.skip(str(missing))
    release = pod_group_release(assets)
    if release is None:
        pytest.skip(f"the kube-apiserver in {assets.folder} has no pod groups")
    own = KINDS["podgroups"]
    kind = own if own.version == release.version else own.in_other_version()
    return RealServer(assets, folder, release.server_flags(everything=True), {**KINDS, "podgroups": kind})


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
