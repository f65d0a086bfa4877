"""Write the schemas of Kueue's kinds for the sandbox, which has these kinds built in.

    .venv/bin/python tools/kueue_schemas.py > src/pilotage/sandbox/kinds/kueue_schemas.json

They are those of the definitions in deploy/crds, so that both servers know the same fields. Rules that the sandbox does
not read from schemas (x-kubernetes-validations) are left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

CRDS = Path(__file__).parents[1] / "deploy" / "crds"


def schemas() -> dict[str, Any]:
    """Kind -> schema of the stored version."""
    found = {}
    for path in sorted(CRDS.glob("*.yaml")):
        spec = yaml.safe_load(path.read_text())["spec"]
        stored = next(version for version in spec["versions"] if version["storage"])
        found[spec["names"]["kind"]] = _without_rules(stored["schema"]["openAPIV3Schema"])
    return found


def _without_rules(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_rules(below) for key, below in value.items() if key != "x-kubernetes-validations"}
    return [_without_rules(one) for one in value] if isinstance(value, list) else value


if __name__ == "__main__":
    json.dump(schemas(), sys.stdout, indent=1)
    print()
