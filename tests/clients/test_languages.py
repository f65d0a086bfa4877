"""Programs in Go, JavaScript, Java and Python that use the cluster by the clients of their language."""

from __future__ import annotations

import os
import sys

from .conftest import Sandbox, build, needs, workshop


def test_go_by_client_go_and_controller_runtime(sandbox: Sandbox) -> None:
    needs("go")
    folder = workshop("go")
    build(["go", "build", "-mod=readonly", "-o", "client", "."], folder)
    assert sandbox.run([folder / "client"]).strip() == "done"


def test_javascript(sandbox: Sandbox) -> None:
    needs("node", "npm")
    folder = workshop("javascript")
    if not (folder / "node_modules").exists():
        build(["npm", "install", "--no-audit", "--no-fund"], folder)
    assert sandbox.run(["node", "client.mjs"], folder).strip() == "done"


def test_java_by_fabric8(sandbox: Sandbox) -> None:
    needs("java", "mvn")
    folder = workshop("java")
    build(["mvn", "-q", "-B", "package", "dependency:copy-dependencies"], folder)
    path = os.pathsep.join(("target/*", "target/dependency/*"))
    assert sandbox.run(["java", "-cp", path, "SandboxClient"], folder).strip() == "done"


def test_python_by_kubernetes_kr8s_lightkube_and_kopf(sandbox: Sandbox) -> None:
    folder = workshop("python")
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        build([sys.executable, "-m", "venv", "venv"], folder)
    build([python, "-m", "pip", "install", "--quiet", "-r", "requirements.txt"], folder)
    assert sandbox.run([python, "client.py"], folder).strip() == "done"
