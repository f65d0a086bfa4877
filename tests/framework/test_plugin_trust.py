"""A plugin that somebody else could change is not loaded; what is loaded is named by its hash."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from pilotage.framework import plugin_trust
from pilotage.framework.plugin_files import PluginFileError, given_plugins, load_plugin_files

from .test_plugin_files import GOOD

GROUP_OF_MANY = 65_534
NOT_ROOT = os.geteuid() != 0
as_root = pytest.mark.skipif(NOT_ROOT, reason="only root can give files away")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "plugins"
    folder.mkdir(mode=0o755)
    path = folder / "weather.py"
    path.write_text(GOOD)
    path.chmod(0o644)
    return path


def rejection(path: Path) -> str:
    with pytest.raises(PluginFileError) as raised:
        load_plugin_files([path])
    (line,) = raised.value.lines
    return line


def test_a_file_that_only_its_owner_may_write_is_loaded_with_its_hash(file: Path) -> None:
    loaded = load_plugin_files([file])
    assert {one.sha256 for one in loaded} == {hashlib.sha256(GOOD.encode()).hexdigest()}
    assert {one.origin for one in loaded} == {str(file)}


@pytest.mark.parametrize("mode", [0o646, 0o666, 0o602])
def test_a_file_that_everyone_may_write_is_rejected(file: Path, mode: int) -> None:
    file.chmod(mode)
    assert "is not loaded: other users may write it" in rejection(file) and "chmod go-w" in rejection(file)


def test_a_directory_that_everyone_may_write_is_rejected(file: Path) -> None:
    file.parent.chmod(0o1777)
    assert f"other users may write its directory {file.parent}" in rejection(file)


def test_a_directory_above_that_everyone_may_write_is_rejected_unless_it_is_sticky(file: Path) -> None:
    above = file.parent.parent
    above.chmod(0o777)
    assert f"other users may write its directory {above}" in rejection(file)
    above.chmod(0o1777)
    assert load_plugin_files([file])


def test_a_link_is_judged_by_its_own_place_and_by_where_it_leads(file: Path, tmp_path: Path) -> None:
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o777)
    middle, link = open_folder / "middle.py", tmp_path / "link.py"
    middle.symlink_to(file)
    assert f"its directory {open_folder}" in rejection(middle)
    link.symlink_to(middle)
    assert f"its directory {open_folder}" in rejection(link)
    open_folder.chmod(0o755)
    assert load_plugin_files([link])
    file.chmod(0o666)
    assert "other users may write it" in rejection(link)


@as_root
def test_a_file_of_another_user_is_rejected(file: Path) -> None:
    os.chown(file, 12_345, -1)
    assert "it belongs to user 12345, who could change it: chown it" in rejection(file)


@as_root
def test_a_directory_of_another_user_is_rejected(file: Path) -> None:
    os.chown(file.parent, 12_345, -1)
    assert f"its directory {file.parent} belongs to user 12345" in rejection(file)


@as_root
def test_a_group_may_write_only_if_no_one_else_is_in_it(file: Path) -> None:
    file.chmod(0o664)
    assert load_plugin_files([file]), "root's own group"
    os.chown(file, -1, GROUP_OF_MANY)
    assert "other users may write it" in rejection(file)


def test_what_is_mounted_read_only_is_trusted_whatever_its_mode(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.chmod(0o666)
    file.parent.chmod(0o777)
    monkeypatch.setattr(plugin_trust, "_is_read_only", lambda path: True)
    assert load_plugin_files([file])


def test_a_class_from_a_program_is_known_by_the_file_of_its_module() -> None:
    from .test_plugin_files import Fine

    (loaded,) = given_plugins([Fine])
    source = Path(__file__).with_name("test_plugin_files.py").read_bytes()
    assert loaded.sha256 == hashlib.sha256(source).hexdigest()
