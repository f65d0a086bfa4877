"""Takes the pictures of docs/console.md: a sandbox, a browser, and what a person would see.

python tools/console_pictures.py [FOLDER]
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import yaml
from playwright.sync_api import Page, sync_playwright

FOLDER: Final = Path(__file__).parents[1] / "docs" / "images"
PILOTAGE: Final = Path(sys.executable).parent / "pilotage"
NODES: Final = 90
MOST_BYTES: Final = 150_000
SETTLING_SECONDS: Final = 25
GROUPS: Final = "scheduling.k8s.io/v1beta1"
QUEUES: Final = "kueue.x-k8s.io/v1beta2"
SHAPES: Final = (
    "--shape",
    "cpu=4,memory=8Gi",
    "--shape",
    "cpu=1,memory=24Gi",
    "--shape",
    "cpu=14,memory=4Gi,weight=0.2",
)
PACKING: Final = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}},
                }
            ]
        }
    ],
}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        raise SystemExit("no Chromium here: apt-get install chromium")
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        manifests = Path(temporary) / "cluster.yaml"
        manifests.write_text(yaml.safe_dump_all(cluster()))
        results = simulated(Path(temporary) / "results")
        kubeconfig = Path(temporary) / "kubeconfig"
        sandbox, link = start(manifests, kubeconfig)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            time.sleep(SETTLING_SECONDS)  # until pods have come and gone, and the charts have some samples
            take_all(browser, link, folder)
            take_report(browser, kubeconfig, results, folder)
        finally:
            browser.close()
            sandbox.send_signal(signal.SIGTERM)
            sandbox.wait()


def start(manifests: Path, kubeconfig: Path) -> tuple[subprocess.Popen[str], str]:
    command = [PILOTAGE, "sandbox", "--nodes", str(NODES), "-f", manifests, "--kubeconfig", kubeconfig]
    gates = ["--feature-gates", "GenericWorkload=true"]
    sandbox = subprocess.Popen([*map(str, command), *gates], stdout=subprocess.PIPE, text=True)
    return sandbox, link_of(sandbox)


def link_of(running: subprocess.Popen[str]) -> str:
    assert running.stdout is not None
    for line in running.stdout:
        if found := re.search(r"console: (\S+)", line):
            return found[1]
    raise SystemExit("it did not start")


def simulated(folder: Path) -> Path:
    """A day in two configurations."""
    folder.mkdir()
    trace, packing = folder / "day.jsonl.gz", folder / "packing.yaml"
    packing.write_text(yaml.safe_dump(PACKING))
    run("trace", "generate", "-o", trace, "--arrivals", "poisson:rate=60/h", "--until", "6h", *SHAPES)
    for name, flags in {"spread": (), "packed": ("--config", packing)}.items():
        run("simulate", trace, "-o", folder / f"{name}.result", "--ties", "random", *flags)
    return folder


def run(*arguments: str | Path) -> None:
    subprocess.run([PILOTAGE, *map(str, arguments)], check=True, capture_output=True)


def take_report(browser: Any, kubeconfig: Path, results: Path, folder: Path) -> None:
    command = [PILOTAGE, "console", "--kubeconfig", kubeconfig, "--reports", results]
    console = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True)
    try:
        page = browser.new_page(viewport={"width": 1200, "height": 1000})
        page.goto(link_of(console))
        page.goto(page.url + "reports?run=spread.result&run=packed.result")
        page.locator("#region-report").wait_for()
        save(page, folder / "console-report.png")
    finally:
        console.send_signal(signal.SIGTERM)
        console.wait()


def take_all(browser: Any, link: str, folder: Path) -> None:
    root = link.partition("?")[0]
    for scheme, pages in {"light": PAGES, "dark": {"overview-dark": ("", 1200, 800)}}.items():
        for name, (path, width, height) in pages.items():
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            page = context.new_page()
            page.goto(link)
            page.goto(root + path)
            take(page, folder / f"console-{name}.png")
            context.close()


PAGES: Final = {
    "overview": ("", 1200, 1100),
    "waiting": ("waiting", 1200, 700),
    "pod": ("pods/research/picky", 1200, 900),
    "group": ("podgroups/research/training", 1200, 800),
    "queues": ("queues", 1200, 600),
    "phone": ("waiting", 390, 700),
}


def take(page: Page, path: Path) -> None:
    page.locator("#state", has_text="live").wait_for()
    save(page, path)


def save(page: Page, path: Path) -> None:
    page.screenshot(path=path)
    size = path.stat().st_size
    print(f"{path}: {size / 1000:.0f} kB")
    if size > MOST_BYTES:
        raise SystemExit(f"{path} is larger than {MOST_BYTES / 1000:.0f} kB")


def cluster() -> list[dict[str, Any]]:
    """Something of everything: what runs, what waits for resources, labels, its gang or its quota."""
    objects = [made("v1", "Namespace", "shop"), made("v1", "Namespace", "research")]
    for name, replicas, cpu in (("web", 120, "750m"), ("search", 40, "1500m"), ("cache", 60, "500m")):
        objects.append(made("apps/v1", "Deployment", name, "shop", deployment(name, replicas, cpu)))
    objects.append(made("apps/v1", "Deployment", "index", "shop", deployment("index", 4, "16")))
    picky = {**containers("2"), "nodeSelector": {"topology.kubernetes.io/zone": "zone-9"}}
    objects.append(made("v1", "Pod", "picky", "research", picky))
    gang = {"schedulingPolicy": {"gang": {"minCount": 6}}}
    objects.append(made(GROUPS, "PodGroup", "training", "research", gang))
    for number in range(6):
        member = {**containers("3" if number else "12"), "schedulingGroup": {"podGroupName": "training"}}
        objects.append(made("v1", "Pod", f"training-{number}", "research", member))
    objects += [made(QUEUES, "ResourceFlavor", "standard"), made(QUEUES, "Cohort", "company")]
    for name, quota in (("team-a", 6), ("team-b", 4)):
        flavor = {"name": "standard", "resources": [{"name": "cpu", "nominalQuota": quota}]}
        group = {"coveredResources": ["cpu"], "flavors": [flavor]}
        spec = {"cohortName": "company", "namespaceSelector": {}, "resourceGroups": [group]}
        objects.append(made(QUEUES, "ClusterQueue", name, "", spec))
        objects.append(made(QUEUES, "LocalQueue", name, "research", {"clusterQueue": name}))
    objects += [job(f"fit-{number}", "team-a" if number % 3 else "team-b") for number in range(9)]
    return objects


def made(version: str, kind: str, name: str, namespace: str = "", spec: Any = None) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec or {}}


def containers(cpu: str) -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": "registry.example/main", "resources": {"requests": {"cpu": cpu}}}]}


def deployment(name: str, replicas: int, cpu: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": containers(cpu)}
    return {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}


def job(name: str, queue: str) -> dict[str, Any]:
    template = {
        "metadata": {"annotations": {"sandbox.pilotage.dev/run-for": "1h"}},
        "spec": {**containers("1"), "restartPolicy": "Never"},
    }
    spec = {"suspend": True, "parallelism": 2, "completions": 2, "template": template}
    one = made("batch/v1", "Job", name, "research", spec)
    one["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue}
    return one


if __name__ == "__main__":
    main()
