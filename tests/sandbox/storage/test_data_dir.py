"""Directories that must be refused, and that a rejection leaves no trace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pilotage.sandbox.storage.data_dir import DataDirError
from pilotage.sandbox.storage.journal import open_journal


def contents(path: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in path.iterdir()}


def test_missing_directory_is_made_with_its_parents_for_this_user_only(tmp_path: Path) -> None:
    path = tmp_path / "some" / "where"
    open_journal(path).close()
    assert path.stat().st_mode & 0o077 == 0
    assert open_journal(path).load() == (0, [])


def test_file_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text("precious")
    with pytest.raises(DataDirError, match=r"data: is a file; choose a directory"):
        open_journal(path)
    assert path.read_text() == "precious"


def test_directory_with_other_files_is_rejected_untouched(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(DataDirError, match="holds other files and none of a sandbox; choose an empty directory"):
        open_journal(tmp_path)
    assert contents(tmp_path) == {"thesis.txt": b"precious"}


def test_directory_of_another_version_is_rejected_untouched(tmp_path: Path) -> None:
    open_journal(tmp_path).close()
    (tmp_path / "format").write_text("pilotage-data 2\n")
    before = contents(tmp_path)
    expected = r'was written in format "pilotage-data 2", this version reads "pilotage-data 1"; use the version'
    with pytest.raises(DataDirError, match=expected) as rejection:
        open_journal(tmp_path)
    assert rejection.value.path == tmp_path
    assert contents(tmp_path) == before


def test_format_of_any_bytes_is_another_version(tmp_path: Path) -> None:
    (tmp_path / "format").write_bytes(b"\xff\xfe\0" * 1000)
    with pytest.raises(DataDirError, match="was written in format"):
        open_journal(tmp_path)


def test_directory_in_use_is_rejected_untouched_and_names_the_process(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(DataDirError, match=f"is in use by process {os.getpid()}; stop that one"):
        open_journal(tmp_path)
    assert contents(tmp_path) == before
    journal.close()
    open_journal(tmp_path).close()


def test_directory_of_a_killed_process_can_be_opened(tmp_path: Path) -> None:
    script = f"""
import os, signal
from pilotage.sandbox.storage.journal import open_journal
journal = open_journal({str(tmp_path)!r})
os.kill(os.getpid(), signal.SIGKILL)
"""
    child = subprocess.run([sys.executable, "-c", script], check=False, timeout=30)
    assert child.returncode == -9
    open_journal(tmp_path).close()


def test_first_start_that_was_killed_half_way_is_finished_by_the_next(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("999999\n")
    (tmp_path / "format.tmp").write_text("pilot")
    open_journal(tmp_path).close()
    assert (tmp_path / "format").read_text() == "pilotage-data 1\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_directory_without_permission_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "locked"
    path.mkdir(mode=0o500)
    with pytest.raises(DataDirError, match="permission denied; choose a directory that this user can write"):
        open_journal(path)


def test_path_under_a_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataDirError, match="not a directory; choose a directory"):
        open_journal(tmp_path / "file" / "data")
