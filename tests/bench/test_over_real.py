"""Benchmarks against a real API server, as far as that can be told without one: order, and what is said of failures."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from pilotage.bench.child_process import Child
from pilotage.bench.control_plane import ControlPlane
from pilotage.bench.over_real import in_turn
from pilotage.bench.process_cpu import CpuMeter, cpu_seconds_of
from pilotage.cli.main import call


@dataclass(frozen=True)
class Entrant:
    name: str

    async def start(self, plane: ControlPlane, folder: Path) -> Child:
        raise AssertionError("not to be started here")


def folder_of_programs(folder: Path, **scripts: str) -> Path:
    folder.mkdir()
    for name, script in scripts.items():
        program = folder / name.replace("_", "-")
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    return folder


def test_schedulers_alternate_so_that_other_work_meets_all_of_them() -> None:
    assert [entrant.name for entrant in in_turn([Entrant("a"), Entrant("b")], rounds=2)] == ["a", "b", "a", "b"]


def bench(assets: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    return call(["bench", "--server", "real", *arguments])


def test_a_control_plane_that_does_not_start_is_reported_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assets = folder_of_programs(
        tmp_path / "assets", etcd="echo 'the disk is full'\nexit 3", kube_apiserver="exec sleep 60"
    )
    assert bench(assets, monkeypatch) == 1
    assert "etcd ended with exit code 3: the disk is full" in capsys.readouterr().err


def test_missing_programs_are_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(tmp_path, monkeypatch) == 2
    assert f"no etcd and no kube-apiserver in {tmp_path}; correct KUBEBUILDER_ASSETS" in capsys.readouterr().err


def test_a_workload_that_needs_controllers_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(tmp_path, monkeypatch, "--workload", "SchedulingWaitForFirstConsumer") == 2
    assert "needs controllers" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_cpu_of_a_process_is_seen_from_outside() -> None:
    busy = "import time\nwhile time.process_time() < 0.2: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert cpu_seconds_of(child.pid) >= 0.15
        meter = CpuMeter({"child": child.pid, "this": os.getpid()})
        assert meter.used()["child"] < 0.15
        child.communicate(b"\n")
