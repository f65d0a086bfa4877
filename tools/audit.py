"""Ask for known vulnerabilities of everything that is locked.

    python tools/audit.py PIP_AUDIT LOCK...

Exits with 0 if none is known of any package, with 1 if there is one, and with 3 if no database could be asked, or not
about all packages: pip-audit itself says "no known vulnerabilities" then.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FOUND, UNKNOWN = 1, 3
_OPTIONS = ("--require-hashes", "--disable-pip", "--format", "json", "--progress-spinner", "off")


def verdict(lock: str, dependencies: list[dict[str, Any]]) -> tuple[int, list[str]]:
    """The exit code, and what to say, worst first."""
    known = [
        f"{lock}: {one['name']} {one['version']}: {flaw['id']}, fixed in {', '.join(flaw['fix_versions']) or 'nothing'}"
        for one in dependencies
        for flaw in one.get("vulns", ())
    ]
    skipped = [one["name"] for one in dependencies if "skip_reason" in one]
    if skipped:
        some = ", ".join(skipped[:3]) + (", ..." if len(skipped) > 3 else "")
        known.append(
            f"{lock}: {len(skipped)} of {len(dependencies)} packages could not be looked up ({some}): no vulnerability "
            "database knows them here; run this where pypi.org answers"
        )
    elif not dependencies:
        known.append(f"{lock}: nothing was looked up")
    if not known:
        return 0, [f"{lock}: no known vulnerability in {len(dependencies)} packages"]
    return UNKNOWN if (skipped or not dependencies) and len(known) == 1 else FOUND, known


def audit(program: str, lock: str) -> tuple[int, list[str]]:
    with tempfile.TemporaryDirectory() as directory:
        answer = Path(directory, "answer.json")
        command = [program, "-r", lock, *_OPTIONS, "-o", str(answer)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not answer.exists() or not answer.read_text().strip():
            last = (done.stderr.strip().splitlines() or ["no message"])[-1][:200]
            return UNKNOWN, [f"{lock}: nothing was audited, no vulnerability database can be reached ({last})"]
        return verdict(lock, json.loads(answer.read_text())["dependencies"])


def main(program: str, locks: list[str]) -> int:
    codes = []
    for lock in locks:
        code, lines = audit(program, lock)
        codes.append(code)
        print("\n".join(lines), file=sys.stderr if code else sys.stdout)
    return FOUND if FOUND in codes else max(codes, default=UNKNOWN)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
