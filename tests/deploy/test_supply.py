"""What the package is built from, the list of what it is made of, and the look-ups that need a network."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = {path.stem: path.read_text() for path in (ROOT / "requirements").glob("*.lock")}


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tools_{name}", ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


# --- locks ------------------------------------------------------------------------------------------------------------


def names(text: str) -> set[str]:
    return {re.split(r"[<>=;\[ ]", line)[0].lower() for line in text.splitlines() if line and line[0] not in " #"}


def test_what_builds_the_package_is_locked_with_hashes() -> None:
    wanted = {re.split(r"[<>=;\[ ]", one)[0] for one in PYPROJECT["build-system"]["requires"]}
    assert wanted <= names((ROOT / "requirements" / "build.in").read_text()) <= names(LOCKS["build"])


@pytest.mark.parametrize("lock", LOCKS)
def test_no_entry_of_a_lock_is_without_a_hash(lock: str) -> None:
    assert all(pin.hashes for pin in tool("sbom").pins(LOCKS[lock]))


def test_the_locks_that_are_installed_together_agree() -> None:
    sbom = tool("sbom")
    dev = {pin.name: pin.version for pin in sbom.pins(LOCKS["dev"])}
    assert {pin.name: dev.get(pin.name, pin.version) for pin in sbom.pins(LOCKS["build"])} == {
        pin.name: pin.version for pin in sbom.pins(LOCKS["build"])
    }


@pytest.mark.parametrize("file", ["Makefile", "deploy/Dockerfile"])
def test_an_installation_takes_nothing_without_a_hash(file: str) -> None:
    """Every pip that installs for us has hashes, or cannot ask an index: no build environment of its own either."""
    text = (ROOT / file).read_text().replace("\\\n", " ")
    install = text.partition("\nlock:")[0] if file == "Makefile" else text
    commands = re.findall(r"/pip (?:install|wheel)[^&\n]*", install)
    assert len(commands) >= 2
    for command in commands:
        assert (
            "--require-hashes -r requirements/" in command
            or "--no-build-isolation" in command
            or ("--no-index" in command)
        ), command
    assert any("requirements/build.lock" in command for command in commands)


# --- SBOM -------------------------------------------------------------------------------------------------------------


def test_the_sbom_has_what_cyclonedx_asks_for_and_every_package_of_the_image() -> None:
    bom = tool("sbom").of_repository()
    assert (bom["bomFormat"], bom["specVersion"], bom["version"]) == ("CycloneDX", "1.5", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bom["serialNumber"])
    us = bom["metadata"]["component"]
    assert (us["type"], us["name"], us["version"]) == ("application", "pilotage", PYPROJECT["project"]["version"])
    for one in bom["components"]:
        assert one["type"] == "library" and one["name"] and one["version"] and one["scope"] in ("required", "excluded")
        assert one["purl"] == one["bom-ref"] and one["purl"].startswith("pkg:pypi/")
        assert one["hashes"] and all(
            entry["alg"] == "SHA-256" and re.fullmatch("[0-9a-f]{64}", entry["content"]) for entry in one["hashes"]
        )
    required = {one["name"]: one["version"] for one in bom["components"] if one["scope"] == "required"}
    assert required == dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", LOCKS["runtime"], re.M))
    assert "hatchling" in {one["name"] for one in bom["components"] if one["scope"] == "excluded"}


def test_the_hashes_of_the_sbom_are_those_of_the_lock() -> None:
    required = [one for one in tool("sbom").of_repository()["components"] if one["scope"] == "required"]
    found = sorted(entry["content"] for one in required for entry in one["hashes"])
    assert found == sorted(re.findall(r"--hash=sha256:([0-9a-f]{64})", LOCKS["runtime"]))


def test_the_sbom_knows_who_needs_what() -> None:
    bom = tool("sbom").of_repository()
    refs = {one["bom-ref"] for one in bom["components"]} | {bom["metadata"]["component"]["bom-ref"]}
    needs = {one["ref"]: one["dependsOn"] for one in bom["dependencies"]}
    assert needs.keys() <= refs and all(ref in refs for found in needs.values() for ref in found)
    plain = {ref.partition("@")[0]: {one.partition("@")[0] for one in found} for ref, found in needs.items()}
    direct = {re.split(r"[<>=;\[ ]", one)[0].lower() for one in PYPROJECT["project"]["dependencies"]}
    assert plain["pkg:pypi/pilotage"] == {f"pkg:pypi/{name}" for name in direct}
    assert "pkg:pypi/cffi" in plain["pkg:pypi/cryptography"]


def test_the_same_locks_give_the_same_sbom() -> None:
    assert tool("sbom").of_repository() == tool("sbom").of_repository()


@pytest.mark.parametrize(
    ("lock", "problem"), [("a==1", "a is locked without a hash"), ("a>=1 \\\n    --hash=sha256:0", "is no pin: a>=1")]
)
def test_a_lock_without_hashes_or_pins_gives_no_sbom(lock: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        list(tool("sbom").pins(lock))


# --- audit ------------------------------------------------------------------------------------------------------------

CLEAN = {"name": "a", "version": "1", "vulns": []}
FLAWED = {"name": "b", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["3"]}]}
SKIPPED = {"name": "c", "skip_reason": "Dependency not found on PyPI"}


@pytest.mark.parametrize(
    ("dependencies", "code", "said"),
    [
        ([CLEAN], 0, "no known vulnerability in 1 packages"),
        ([CLEAN, FLAWED], 1, "b 2: CVE-1, fixed in 3"),
        ([CLEAN, SKIPPED], 3, "1 of 2 packages could not be looked up"),
        ([FLAWED, SKIPPED], 1, "CVE-1"),
        ([], 3, "nothing was looked up"),
    ],
)
def test_the_verdict_of_the_audit(dependencies: list[dict[str, Any]], code: int, said: str) -> None:
    """pip-audit calls packages that it could not look up "no known vulnerabilities"."""
    found, lines = tool("audit").verdict("x.lock", dependencies)
    assert found == code and said in "\n".join(lines)


def test_an_audit_without_an_answer_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "pip-audit"
    program.write_text("#!/bin/sh\necho 'Max retries exceeded: pypi.org' >&2\nexit 1\n")
    program.chmod(0o755)
    assert tool("audit").main(str(program), ["x.lock"]) == 3
    assert "x.lock: nothing was audited, no vulnerability database can be reached (Max" in capsys.readouterr().err


# --- the base image ---------------------------------------------------------------------------------------------------

INDEX = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json"}).encode()
DIGEST = f"sha256:{hashlib.sha256(INDEX).hexdigest()}"
PATH = "/v2/library/python/manifests/3.12-slim"


@contextmanager
def registry(body: bytes = INDEX, digest: str = DIGEST, *, asks_for_token: bool = True) -> Iterator[str]:
    """A registry as Docker's: without a token it says where to get one."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/token" and "scope=repository%3Alibrary%2Fpython%3Apull" in self.path:
                self._answer(200, json.dumps({"token": "ticket"}).encode())
            elif path != PATH:
                self._answer(404, b"{}")
            elif asks_for_token and self.headers.get("Authorization") != "Bearer ticket":
                self._answer(401, b"{}")
            else:
                assert "image.index" in self.headers["Accept"]
                self._answer(200, body)

        def _answer(self, code: int, content: bytes) -> None:
            self.send_response(code)
            if code == 401:
                where = f'realm="http://{self.headers["Host"]}/token",service="fake"'
                self.send_header("WWW-Authenticate", f'Bearer {where},scope="repository:library/python:pull"')
            self.send_header("Docker-Content-Digest", digest)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def dockerfile(tmp_path: Path) -> Path:
    copy = tmp_path / "Dockerfile"
    copy.write_text((ROOT / "deploy" / "Dockerfile").read_text())
    return copy


@pytest.mark.parametrize("asks_for_token", [True, False])
def test_the_base_image_is_pinned_by_the_digest_of_its_tag(dockerfile: Path, asks_for_token: bool) -> None:
    before = dockerfile.read_text()
    with registry(asks_for_token=asks_for_token) as url:
        assert tool("image_digest").main(dockerfile, url) == 0
        pinned = f"ARG BASE=docker.io/library/python:3.12-slim@{DIGEST}"
        assert pinned in dockerfile.read_text().splitlines()
        others = [line for line in before.splitlines() if not line.startswith("ARG BASE=")]
        assert [line for line in dockerfile.read_text().splitlines() if line != pinned] == others
    newer = INDEX + b" "
    digest = f"sha256:{hashlib.sha256(newer).hexdigest()}"
    with registry(newer, digest) as url:
        assert tool("image_digest").main(dockerfile, url) == 0
    again = dockerfile.read_text()
    assert f"ARG BASE=docker.io/library/python:3.12-slim@{digest}" in again.splitlines() and DIGEST not in again


@pytest.mark.parametrize(
    ("body", "digest", "problem"),
    [
        (INDEX, "sha256:" + "0" * 64, "what it sent has sha256:"),
        (b'{"mediaType": "text/html"}', "", "is text/html, not an index"),
    ],
)
def test_an_answer_that_is_no_image_changes_nothing(
    dockerfile: Path, body: bytes, digest: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = dockerfile.read_text()
    with registry(body, digest) as url:
        assert tool("image_digest").main(dockerfile, url) == 3
    assert problem in capsys.readouterr().err and dockerfile.read_text() == before


def test_without_a_registry_the_image_stays_as_it_is(dockerfile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = dockerfile.read_text()
    assert tool("image_digest").main(dockerfile, "http://127.0.0.1:1") == 3
    assert "stays as it is, its digest could not be looked up" in capsys.readouterr().err
    assert dockerfile.read_text() == before


def test_both_stages_are_built_on_the_pinned_image() -> None:
    text = (ROOT / "deploy" / "Dockerfile").read_text()
    assert re.findall(r"^FROM (\S+)", text, re.M) == ["${BASE}", "${BASE}"]
