"""A browser, and a cluster with something of everything in it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.processes import Background, SandboxProcess, eventually

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NODES = 12
HOSTILE = "<img src=x onerror=document.title='owned'>\x1b[31m\u202e"
SCREENSHOTS = Path(__file__).parents[2] / "build" / "browser"
_MILLISECONDS = 60_000.0
"""Of patience: a machine on which everything is tested at once is slow."""
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_CLUSTER = """
apiVersion: v1
kind: Namespace
metadata: {name: research}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: std}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: shared}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: std, resources: [{name: cpu, nominalQuota: 1}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team, namespace: research}
spec: {clusterQueue: shared}
---
apiVersion: batch/v1
kind: Job
metadata: {name: queued, namespace: research, labels: {kueue.x-k8s.io/queue-name: team}}
spec:
  suspend: true
  parallelism: 2
  completions: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: giant}
spec:
  containers: [{name: c, image: i, resources: {requests: {cpu: 999}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: hostile, labels: {hostile: "true"}}
spec:
  containers: [{name: c, image: i}]
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
---
apiVersion: v1
kind: Pod
metadata: {name: gang-1}
spec:
  schedulingGroup: {podGroupName: gang}
  containers: [{name: c, image: i, resources: {requests: {cpu: 500}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: gang-2}
spec:
  schedulingGroup: {podGroupName: gang}
  containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]
"""
_PLUGIN = f"""
from pilotage.api import Filter, Plugin, Reason, Reject


class Hostile(Plugin, Filter):
    def filter(self, state, pod, node):
        return Reject(Reason('Hostile', {HOSTILE!r})) if pod.labels.get("hostile") else None
"""


def browser_program() -> str:
    """Where a Chromium of the system is; the test is skipped, with the way out, if there is none."""
    found = os.environ.get("PILOTAGE_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), "")
    if not found:
        pytest.skip("no Chromium: install it (apt-get install chromium), or name one in PILOTAGE_CHROMIUM")
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make install")
    program = browser_program()
    with api.sync_playwright() as playwright:
        # Its own sandbox needs rights that containers do not have; it only visits pages of this test.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def cluster(folder: Path) -> Iterator[SandboxProcess]:
    manifests, plugin = folder / "cluster.yaml", folder / "hostile.py"
    manifests.write_text(_CLUSTER)
    plugin.write_text(_PLUGIN)
    gates = ("--feature-gates", "GenericWorkload=true")
    sandbox = SandboxProcess(folder / "kubeconfig", "--nodes", str(NODES), "-f", manifests, "--plugin", plugin, *gates)
    try:
        eventually("web is bound", lambda: _said(sandbox, "web") == "True")
        eventually("others were tried", lambda: all(_said(sandbox, one) == "False" for one in ("giant", "hostile")))
        yield sandbox
    finally:
        sandbox.end()


def _said(sandbox: SandboxProcess, name: str) -> str:
    path = "jsonpath={.status.conditions[?(@.type=='PodScheduled')].status}"
    return sandbox.kubectl("get", "pod", name, "-o", path).stdout


def link_of(running: Background, lines: int = 3) -> str:
    """The link that the command prints among its first lines."""
    assert running.process.stdout is not None
    for _ in range(lines):
        found = re.search(r"console: (http://\S+)", running.process.stdout.readline())
        if found:
            return found[1]
    raise AssertionError("no link was printed")


def violations(page: Any) -> list[str]:
    """What axe-core finds, but for advice that no rule of WCAG asks for."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed")
    found = axe.Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]})
    return [
        f"{one['id']}: {one['help']}: {node['html']}" for one in found.response["violations"] for node in one["nodes"]
    ]


class Visitor:
    """Pages of one console in one browser; errors in them are kept."""

    def __init__(self, page: Page, link: str) -> None:
        self.page = page
        self.link = link
        self.root = link.partition("?")[0]
        self.errors: list[str] = []
        page.set_default_timeout(_MILLISECONDS)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._note)
        page.goto(link)

    def _note(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def open(self, path: str = "") -> Page:
        self.page.goto(self.root + path)
        return self.page

    def state(self) -> str:
        return self.page.inner_text("#state")

    def wait_for(self, selector: str, text: str) -> None:
        self.page.locator(selector, has_text=text).first.wait_for()

    def keep_picture(self, name: str) -> None:
        """For whoever wants to know what a test saw."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
