"""Every command that docs/kubectl.md lists works with kubectl as it is installed with us."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tools.kubectl_page import tried_commands

from tests.e2e.processes import KUBECTL

from .conftest import Sandbox

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map, labels: {app: map}}\ndata: {a: '1'}\n"


def test_the_commands_of_the_page_work_one_after_the_other(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "map.yaml").write_text(MAP)
    monkeypatch.setenv("EDITOR", """sed -i 's/"1"/"2"/'""")
    failed = []
    for command in (one for group in tried_commands().values() for one in group):
        program, *arguments = shlex.split(command.run)
        assert program == "kubectl"
        done = sandbox.attempt([KUBECTL, *arguments], cwd=tmp_path)
        if done.returncode or command.shows not in done.stdout:
            failed.append(f"{command.run}: {done.returncode} {done.stdout} {done.stderr}")
    assert not failed, "\n".join(failed)
