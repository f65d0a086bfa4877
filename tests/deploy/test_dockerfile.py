"""The image, as far as it can be checked without building it: what it is made of, and what runs in it as whom."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.cli.main import cli

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def dockerfile() -> str:
    return (ROOT / "deploy" / "Dockerfile").read_text()


def instruction(dockerfile: str, name: str) -> str:
    return re.findall(rf"^{name} (.*)$", dockerfile, re.M)[-1]


def pins(lock: str) -> dict[str, str]:
    text = (ROOT / "requirements" / lock).read_text()
    return dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", text, re.M))


def test_everything_that_it_is_made_of_exists_and_is_not_ignored(dockerfile: str) -> None:
    copied = [word for line in re.findall(r"^COPY (?!--from)(.*)$", dockerfile, re.M) for word in line.split()[:-1]]
    ignored = set((ROOT / ".dockerignore").read_text().split())
    assert copied and all((ROOT / path).exists() for path in copied)
    assert not ignored & set(copied)


def test_what_the_build_of_the_package_reads_is_copied(dockerfile: str) -> None:
    copied = " ".join(re.findall(r"^COPY (.*)$", dockerfile, re.M)).split()
    assert {"pyproject.toml", PROJECT["readme"], *PROJECT["license-files"], "src"} <= set(copied)


def test_every_dependency_is_pinned_with_hashes_and_as_it_is_tested(dockerfile: str) -> None:
    assert "--require-hashes -r requirements/runtime.lock" in dockerfile
    locked, tested = pins("runtime.lock"), pins("dev.lock")
    wanted = {re.split(r"[<>=;\[ ]", dependency)[0].lower() for dependency in PROJECT["dependencies"]}
    assert wanted <= locked.keys()
    assert {name: tested.get(name) for name in locked} == locked
    lock = (ROOT / "requirements" / "runtime.lock").read_text()
    assert lock.count("--hash=sha256:") >= len(locked)


def test_the_entry_point_is_an_installed_command_and_its_default_one_of_ours(dockerfile: str) -> None:
    (program,) = json.loads(instruction(dockerfile, "ENTRYPOINT"))
    (command,) = json.loads(instruction(dockerfile, "CMD"))
    assert program in PROJECT["scripts"]
    assert cli.get_command(None, command) is not None  # type: ignore[arg-type]
    path = re.search(r"PATH=(\S+?)/bin:", dockerfile)
    assert path is not None and f"python -m venv {path[1]}" in dockerfile and f"{path[1]}/bin/pip" in dockerfile


def test_the_user_is_the_one_of_the_manifests(dockerfile: str) -> None:
    template = yaml.safe_load((ROOT / "deploy" / "base" / "deployment.yaml").read_text())["spec"]["template"]["spec"]
    context = template["securityContext"]
    assert instruction(dockerfile, "USER") == f"{context['runAsUser']}:{context['runAsGroup']}"


def test_python_is_one_that_the_package_allows(dockerfile: str) -> None:
    found = re.search(r"^ARG BASE=\S+/python:([\d.]+)-slim(@sha256:[0-9a-f]{64})?$", dockerfile, re.M)
    assert found is not None
    version = found[1]
    least = PROJECT["requires-python"].removeprefix(">=")
    assert tuple(map(int, version.split("."))) >= tuple(map(int, least.split(".")))


def test_one_version_everywhere() -> None:
    version = PROJECT["version"]
    places = [ROOT / "deploy" / "Dockerfile", *(ROOT / "deploy").glob("base/deployment.yaml")]
    places += [*(ROOT / "deploy").glob("overlays/*/kustomization.yaml"), *(ROOT / "deploy").glob("static-pod/*.yaml")]
    for place in places:
        found = re.findall(r"pilotage:([\w.]+)|newTag: (\S+)", place.read_text())
        assert found and {one or other for one, other in found} == {version}, place
