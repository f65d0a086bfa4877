"""Build etcd, kube-apiserver and kube-scheduler from their published Go modules, once.

    .venv/bin/python tools/cluster_assets.py [VERSION]

The main module of Kubernetes refers to its parts (k8s.io/api, ...) by a version that does not exist, because in its
own repository they are folders. Their published versions follow from the release: v1.36.3 was made with v0.36.3. So a
module of our own requires the release, replaces each part by its published version, and builds the commands; Go's
checksum database vouches for every download. The release also decides which etcd it is.

Cold it takes some ten minutes on two cores; what is there already is not built again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pilotage.bench.cluster_assets import KUBERNETES_VERSION, NEEDED, VARIABLE, built_folder


@dataclass(frozen=True, slots=True)
class Program:
    """A package to build: a command, or a package of tests."""

    package: str
    is_test: bool = False

    @property
    def verb(self) -> list[str]:
        return ["test", "-c"] if self.is_test else ["build"]


CONTROL_PLANE = {
    "etcd": Program("go.etcd.io/etcd/server/v3"),
    "kube-apiserver": Program("k8s.io/kubernetes/cmd/kube-apiserver"),
    "kube-scheduler": Program("k8s.io/kubernetes/cmd/kube-scheduler"),
}
PROGRESS_SECONDS = 10.0
POLITENESS = 10


class BuildFailed(Exception):
    """A step of the build did not work; the message says which and what Go said last."""


def main() -> int:
    version = sys.argv[1] if len(sys.argv) > 1 else KUBERNETES_VERSION
    given = os.environ.get(VARIABLE)
    if given and all(os.access(Path(given, name), os.X_OK) for name in NEEDED):
        say(f"{VARIABLE}={given} is used")
        return 0
    folder = built_folder(version, os.environ)
    missing = missing_programs(folder, CONTROL_PLANE)
    if missing and shutil.which("go") is None:
        say(f"Go is not installed; install it (the version that Kubernetes {version} asks for) or set {VARIABLE}")
        return 3
    try:
        build(version, folder, missing)
    except BuildFailed as failure:
        say(str(failure))
        return 1
    say(f"{version} is in {folder}")
    return 0


def say(text: str) -> None:
    print(f"cluster-assets: {text}", file=sys.stderr, flush=True)


def missing_programs(folder: Path, programs: Mapping[str, Program]) -> dict[str, Program]:
    return {name: program for name, program in programs.items() if not (folder / name).exists()}


def build(version: str, folder: Path, programs: Mapping[str, Program]) -> None:
    if not programs:
        return
    os.nice(POLITENESS)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pilotage-cluster-assets-") as work:
        module = Path(work)
        (module / "go.mod").write_text(go_mod(version, programs.values()))
        for name, program in programs.items():
            made = module / name
            flags = ["-mod=mod", "-buildvcs=false", "-trimpath", "-v", f"-ldflags={linker_flags(version)}"]
            follow(name, ["go", *program.verb, *flags, "-o", str(made), program.package], module)
            # In one step, so that a build that was cut off never leaves half a program.
            shutil.copy2(made, folder / f".{name}")
            os.replace(folder / f".{name}", folder / name)


def go_mod(version: str, programs: Iterable[Program]) -> str:
    say(f"Kubernetes {version}: fetching the module")
    downloaded = go_json(["go", "mod", "download", "-json", f"k8s.io/kubernetes@{version}"])
    described = go_json(["go", "mod", "edit", "-json", downloaded["GoMod"]])
    parts = [needed["Path"] for needed in described["Require"] if needed["Version"] == "v0.0.0"]
    published = "v0." + version.split(".", 1)[1]
    lines = [
        "module pilotage.dev/cluster-assets",
        f"go {described['Go']}",
        f"require k8s.io/kubernetes {version}",
        *(f"replace {part} => {part} {published}" for part in parts),
        *(f"tool {program.package}" for program in programs if not program.is_test),
    ]
    return "\n".join(lines) + "\n"


def linker_flags(version: str) -> str:
    """Kubernetes is told its own version by the linker; without it, it claims to be v0.0.0."""
    major, minor = version.lstrip("v").split(".")[:2]
    package = "k8s.io/component-base/version"
    facts = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s -w", *(f"-X {package}.{name}={value}" for name, value in facts.items())])


def go_json(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tempfile.gettempdir())
    if done.returncode:
        try:
            problem = json.loads(done.stdout)["Error"]
        except (ValueError, KeyError):
            problem = done.stderr
        raise BuildFailed(f"`{' '.join(command)}`: {' '.join(problem.split())}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def follow(name: str, command: list[str], folder: Path) -> None:
    """Run a build that names each package as it gets to it, and say now and then how far it is."""
    begin = told = time.monotonic()
    packages = 0
    said: list[str] = []
    say(f"{name}: building")
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            is_package = " " not in line.strip() and "/" in line
            packages += is_package
            said = said if is_package else [*said[-19:], line]
            if time.monotonic() - told > PROGRESS_SECONDS:
                told = time.monotonic()
                say(f"{name}: {packages} packages compiled, {told - begin:.0f} s")
    if process.returncode:
        sys.stderr.writelines(said)
        raise BuildFailed(f"{name}: go build failed with exit code {process.returncode}; its last words are above")
    say(f"{name}: done in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
