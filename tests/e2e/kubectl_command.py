"""kubectl, unmodified, as a user would type it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

KUBECTL = str(Path(sys.executable).parent / "kubectl")


class Kubectl:
    """Commands against one server, each with a cache of discovery of its own run."""

    def __init__(self, kubeconfig: Path) -> None:
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(kubeconfig.parent)}

    def __call__(self, command: str, *objects: Any) -> str:
        """The output of a command that must succeed; objects go to its standard input."""
        done = self.run(command, *objects)
        assert done.returncode == 0, f"kubectl {command}: {done.stderr}"
        return done.stdout

    def json(self, command: str, *objects: Any) -> Any:
        return json.loads(self(f"{command} -o json", *objects))

    def refused(self, command: str, *objects: Any) -> str:
        """What a command that must fail says."""
        done = self.run(command, *objects)
        assert done.returncode != 0, f"kubectl {command} should fail: {done.stdout}"
        return done.stderr

    def run(self, command: str, *objects: Any) -> subprocess.CompletedProcess[str]:
        text = yaml.safe_dump_all(objects) if objects else None
        return subprocess.run(
            [KUBECTL, *command.split()],
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=self._environment,
        )

    def start(self, command: str) -> subprocess.Popen[str]:
        """A command that does not end by itself."""
        return subprocess.Popen(
            [KUBECTL, *command.split()], stdout=subprocess.PIPE, text=True, env=self._environment, bufsize=1
        )
