from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.bench.cluster_assets import (
    KUBERNETES_VERSION,
    AssetsMissing,
    ClusterAssets,
    built_folder,
    find_assets,
    pod_group_release,
)


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


def test_what_is_missing_is_reported_in_one_line_with_the_way_out(tmp_path: Path) -> None:
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


def assets_of(folder: Path, version: str) -> ClusterAssets:
    program = folder / "kube-apiserver"
    program.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo Kubernetes {version}\n")
    program.chmod(0o755)
    return ClusterAssets(folder)


@pytest.mark.parametrize(
    ("version", "flags"),
    [
        (
            "v1.36.3",
            [
                "--feature-gates=GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true",
                "--runtime-config=scheduling.k8s.io/v1alpha2=true",
            ],
        ),
        ("v1.37.1", ["--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1beta1=true"]),
        (
            "v1.40.0-alpha.1",
            ["--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1beta1=true"],
        ),
    ],
)
def test_flags_of_a_release(version: str, flags: list[str], tmp_path: Path) -> None:
    release = pod_group_release(assets_of(tmp_path, version))
    assert release is not None and release.server_flags() == flags
    assert "TopologyAwareWorkloadScheduling=true" in release.server_flags(everything=True)[0]


@pytest.mark.parametrize("version", ["v1.35.4", "of unknown age"])
def test_an_old_release_has_none(version: str, tmp_path: Path) -> None:
    assert pod_group_release(assets_of(tmp_path, version)) is None
