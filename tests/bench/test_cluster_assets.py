from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.bench.cluster_assets import KUBERNETES_VERSION, AssetsMissing, built_folder, find_assets


def program(folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("")
    (folder / name).chmod(0o755)


def test_the_folder_that_the_environment_names_is_used(tmp_path: Path) -> None:
    for name in ("etcd", "kube-apiserver"):
        program(tmp_path, name)
    assets = find_assets({"KUBEBUILDER_ASSETS": str(tmp_path), "HOME": "/nowhere"})
    assert assets.program("etcd") == tmp_path / "etcd"
    assert assets.kube_scheduler is None


def test_otherwise_the_folder_that_was_built_into(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    folder = built_folder(KUBERNETES_VERSION, environment)
    for name in ("etcd", "kube-apiserver", "kube-scheduler"):
        program(folder, name)
    assert find_assets(environment).kube_scheduler == folder / "kube-scheduler"
    assert built_folder("v1.2.3", {"HOME": "/h"}) == Path("/h/.cache/pilotage/cluster-assets/v1.2.3")


def test_what_is_missing_is_told_in_one_line_with_the_way_out(tmp_path: Path) -> None:
    program(tmp_path, "etcd")
    with pytest.raises(AssetsMissing, match=r"^no kube-apiserver in \S+; correct KUBEBUILDER_ASSETS$"):
        find_assets({"KUBEBUILDER_ASSETS": str(tmp_path)})
    with pytest.raises(AssetsMissing, match=r"^no etcd and no kube-apiserver in \S+; run `make cluster-assets`"):
        find_assets({"HOME": str(tmp_path)})


def test_a_file_that_cannot_be_run_is_no_program(tmp_path: Path) -> None:
    program(tmp_path, "etcd")
    program(tmp_path, "kube-apiserver")
    (tmp_path / "etcd").chmod(0o644)
    with pytest.raises(AssetsMissing, match="no etcd in"):
        find_assets({"KUBEBUILDER_ASSETS": str(tmp_path)})
