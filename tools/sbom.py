"""Write what a release is made of: a CycloneDX document from the lock files.

    .venv/bin/python tools/sbom.py > dist/pilotage.cdx.json

Every pinned package is a component with the hashes of its distribution files, any of which pip may have installed.
What only builds the package has the scope "excluded". The same locks give the same document, byte by byte.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_ENTRY = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?:\s*;\s*(?P<marker>[^\\\n]+?))?\s*\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_NAMES = re.compile(r"^\s+#(?:\s+via)?\s+(?!via$)([A-Za-z0-9._-]+)(?: \(.*\))?$")


@dataclass(frozen=True, slots=True)
class Pin:
    """One entry of a lock. `wanted_by` are the packages that need it; empty: only we do."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    wanted_by: tuple[str, ...]

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{re.sub(r'[-_.]+', '-', self.name).lower()}@{self.version}"


def pins(lock: str) -> Iterator[Pin]:
    """The entries of a lock file that `uv pip compile --generate-hashes` wrote."""
    for block in re.split(r"\n(?=[A-Za-z0-9])", lock.strip()):
        first, *rest = block.splitlines()
        found = _ENTRY.match(first)
        if found is None:
            raise ValueError(f"this line of the lock is no pin: {first}")
        via = [name[1] for line in rest if (name := _NAMES.match(line))]
        hashes = tuple(_HASH.findall(block))
        if not hashes:
            raise ValueError(f"{found['name']} is locked without a hash")
        yield Pin(found["name"], found["version"], found["marker"] or "", hashes, tuple(via))


def document(project: dict[str, Any], runtime: list[Pin], build: list[Pin]) -> dict[str, Any]:
    us = f"pkg:pypi/{project['name']}@{project['version']}"
    known = {pin.name for pin in runtime}
    components = [_component(pin, "required") for pin in runtime]
    components += [_component(pin, "excluded") for pin in build if pin.name not in known]
    needs: dict[str, list[str]] = {us: [], **{pin.purl: [] for pin in runtime}}
    for pin in runtime:
        for other in pin.wanted_by or (project["name"],):
            owner = next((one.purl for one in runtime if one.name == other), us)
            needs[owner].append(pin.purl)
    content = {
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": us,
                "name": project["name"],
                "version": project["version"],
                "purl": us,
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": components,
        "dependencies": [{"ref": ref, "dependsOn": sorted(found)} for ref, found in sorted(needs.items())],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{serial}", "version": 1}
    return {**head, **content}


def _component(pin: Pin, scope: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "library",
        "bom-ref": pin.purl,
        "name": pin.name,
        "version": pin.version,
        "scope": scope,
        "purl": pin.purl,
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in pin.hashes],
    }
    if pin.marker:
        made["properties"] = [{"name": "pilotage:environment-marker", "value": pin.marker}]
    return made


def of_repository() -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    runtime, build = (list(pins((ROOT / "requirements" / name).read_text())) for name in ("runtime.lock", "build.lock"))
    return document(project, runtime, build)


if __name__ == "__main__":
    json.dump(of_repository(), sys.stdout, indent=2)
    print()
