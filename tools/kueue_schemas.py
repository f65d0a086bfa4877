"""Write the schemas of Kueue's kinds and the policies about them for the sandbox, which has these kinds built in.

    .venv/bin/python tools/kueue_schemas.py > src/pilotage/sandbox/kinds/kueue_schemas.json

They are those of deploy/crds and deploy/workload-queueing, so that the sandbox and a real API server judge by the same.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[1] / "deploy"


def schemas() -> dict[str, Any]:
    """Kind -> schema of the stored version."""
    found = {}
    for path in sorted((DEPLOY / "crds").glob("*.yaml")):
        spec = yaml.safe_load(path.read_text())["spec"]
        stored = next(version for version in spec["versions"] if version["storage"])
        found[spec["names"]["kind"]] = stored["schema"]["openAPIV3Schema"]
    return found


def policies() -> list[Any]:
    """Policies and their bindings."""
    return list(yaml.safe_load_all((DEPLOY / "workload-queueing" / "admission-policy.yaml").read_text()))


if __name__ == "__main__":
    json.dump({"schemas": schemas(), "policies": policies()}, sys.stdout, indent=1)
    print()
