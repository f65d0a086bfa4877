"""Run Kubernetes' own conformance suite against the sandbox, and hold the outcome against the list in the repository.

    make conformance                       # everything that is listed as passing
    make conformance SPECS=quick           # what of it takes no longer than a few seconds: five minutes in all
    make conformance SPECS=all             # what fails as well, and what is new; an hour or more
    make conformance SPECS='Job.*policy'   # specs whose name a regular expression matches
    .venv/bin/python -m tools.kubernetes_suite --update   # write the list anew from what was found

The suite is built once from its published Go modules, beside the programs of `make cluster-assets`. The sandbox is
started as its user would, with no flag but a number of nodes. `tests/data/kubernetes_suite.yaml` says of each spec
whether it passes, fails, or is not applicable and why: a spec that passed and now fails ends this program with 1.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tools.cluster_assets import BuildFailed, Program, build, missing_programs, say

from pilotage.bench.cluster_assets import KUBERNETES_VERSION, built_folder

LIST = Path(__file__).parent.parent / "tests" / "data" / "kubernetes_suite.yaml"
SUITE = {
    "e2e.test": Program("k8s.io/kubernetes/test/e2e", is_test=True),
    "ginkgo": Program("github.com/onsi/ginkgo/v2/ginkgo"),
}
NODES = 4
PROCESSES = 6
QUICK_SECONDS = 10.0
"""A spec that takes longer is left out of the quick ones."""
SPEC_SECONDS = 900
PASSED, FAILED, NOT_APPLICABLE = "passes", "fails", "not applicable"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a spec in this run."""

    name: str
    passed: bool
    seconds: float
    message: str

    @property
    def sig(self) -> str:
        return sig_of(self.name)


@dataclass(frozen=True, slots=True)
class Expected:
    """A spec in the list."""

    name: str
    state: str
    reason: str = ""
    seconds: float = 0.0


def main() -> int:
    options = parsed_options()
    expected = read_list(LIST)
    folder = built_folder(options.version, os.environ)
    try:
        missing = missing_programs(folder, SUITE)
        if missing:
            build(options.version, folder, missing)
    except BuildFailed as failure:
        say(str(failure))
        return 3
    names = chosen(expected, options.specs)
    if not names:
        say(f"no spec matches {options.specs!r}; `all`, `quick`, `passing` or a regular expression")
        return 2
    say(f"{len(names)} specs of Kubernetes {options.version} against a sandbox of {NODES} nodes")
    with tempfile.TemporaryDirectory(prefix="pilotage-suite-") as work, sandbox(Path(work)) as kubeconfig:
        outcomes = run_suite(folder, kubeconfig, names, Path(work))
    if options.update:
        LIST.write_text(written(expected, outcomes))
        say(f"{LIST.name} is written")
    return report(expected, outcomes, names)


def parsed_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("specs", nargs="?", default="passing", help="all, quick, passing, or a regular expression")
    parser.add_argument("--version", default=KUBERNETES_VERSION)
    parser.add_argument("--update", action="store_true", help="write the list from what this run found")
    return parser.parse_args()


def read_list(path: Path) -> dict[str, Expected]:
    document = yaml.safe_load(path.read_text())
    found = [Expected(name, PASSED, seconds=seconds) for name, seconds in document[PASSED].items()]
    found += [Expected(name, FAILED, reason or "") for name, reason in document[FAILED].items()]
    for reason, names in document[NOT_APPLICABLE].items():
        found += [Expected(name, NOT_APPLICABLE, reason) for name in names]
    return {one.name: one for one in found}


def chosen(expected: Mapping[str, Expected], specs: str) -> list[str]:
    match specs:
        case "passing":
            return [one.name for one in expected.values() if one.state == PASSED]
        case "quick":
            passing = (one for one in expected.values() if one.state == PASSED and "[Serial]" not in one.name)
            return [one.name for one in passing if one.seconds <= QUICK_SECONDS]
        case "all":
            return [one.name for one in expected.values() if one.state != NOT_APPLICABLE]
        case _:
            return [name for name in expected if re.search(specs, name)]


@contextlib.contextmanager
def sandbox(work: Path) -> Iterator[str]:
    """A sandbox of its own; yields its kubeconfig."""
    command = [sys.executable, "-m", "pilotage", "sandbox", "--ephemeral", "--nodes", str(NODES)]
    with (
        (work / "sandbox.log").open("wb") as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        kubeconfig = process.stdout.readline().strip()
        try:
            yield kubeconfig
        finally:
            process.stdin.close()


def run_suite(folder: Path, kubeconfig: str, names: list[str], work: Path) -> list[Outcome]:
    """Run these specs; what they print goes to a file that is shown if there is no report."""
    report_file = work / "report.json"
    focus = "|".join(re.escape(name) for name in names)
    command = [
        str(folder / "ginkgo"),
        f"--procs={PROCESSES}",
        "--no-color",
        "--succinct",
        "--timeout=3h",
        f"--focus={focus}",
        "--json-report=report.json",
        f"--output-dir={work}",
        str(folder / "e2e.test"),
        "--",
        f"--kubeconfig={kubeconfig}",
        "--provider=skeleton",
        "--allowed-not-ready-nodes=0",
        "--disable-log-dump=true",
        "--dump-logs-on-failure=false",
        f"--num-nodes={NODES}",
    ]
    log = work / "suite.log"
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output, cwd=work) as process:
        follow(process, log, len(names))
    if not report_file.exists():
        sys.stderr.write(log.read_text("utf-8", errors="replace")[-4000:])
        raise SystemExit("the suite left no report; its last words are above")
    return outcomes_in(json.loads(report_file.read_bytes()))


def follow(process: subprocess.Popen[bytes], log: Path, specs: int) -> None:
    begin = told = time.monotonic()
    while process.poll() is None:
        time.sleep(1)
        if time.monotonic() - told > 30:
            told = time.monotonic()
            ended = log.read_text("utf-8", errors="replace").count("•")
            say(f"about {ended} of {specs} specs, {told - begin:.0f} s")


def outcomes_in(reports: list[dict[str, Any]]) -> list[Outcome]:
    found = []
    for spec in reports[0]["SpecReports"] or ():
        if spec["LeafNodeType"] != "It" or (spec["State"] in ("skipped", "pending") and not spec.get("Failure")):
            continue
        name = " ".join([*(spec.get("ContainerHierarchyTexts") or ()), spec["LeafNodeText"]])
        message = (spec.get("Failure") or {}).get("Message", "")
        found.append(Outcome(name, spec["State"] == "passed", spec["RunTime"] / 1e9, message))
    return found


def report(expected: Mapping[str, Expected], outcomes: list[Outcome], names: list[str]) -> int:
    """A line per special interest group; 1 if something that passed fails."""
    broken = [one for one in outcomes if not one.passed and expected[one.name].state == PASSED]
    mended = [one for one in outcomes if one.passed and expected[one.name].state != PASSED]
    lost = set(names) - {one.name for one in outcomes}
    passed, failed = (
        Counter(one.sig for one in outcomes if one.passed),
        Counter(one.sig for one in outcomes if not one.passed),
    )
    aside = Counter(sig_of(one.name) for one in expected.values() if one.state == NOT_APPLICABLE)
    print(f"{'SIG':24} {'PASSED':>7} {'FAILED':>7} {'NOT APPLICABLE':>15}")
    for sig in sorted({sig_of(name) for name in expected}):
        print(f"{sig:24} {passed[sig]:7} {failed[sig]:7} {aside[sig]:15}")
    print(f"{'all':24} {passed.total():7} {failed.total():7} {aside.total():15}")
    known = [one for one in outcomes if not one.passed and one not in broken]
    for title, found in (("fails now", broken), ("fails as before", known), ("passes now", mended)):
        for one in found:
            print(f"{title}: {one.name}" + (f"\n    {' '.join(one.message.split())[:300]}" if one.message else ""))
    for name in sorted(lost):
        print(f"did not run: {name}")
    print(f"{passed.total()} passed, {len(broken) + len(lost)} failed, {failed.total() - len(broken)} known to fail")
    return 1 if broken or lost else 0


def sig_of(name: str) -> str:
    found = re.match(r"\[(sig-[\w-]+)\]", name)
    return found[1] if found else "other"


def written(expected: Mapping[str, Expected], outcomes: list[Outcome]) -> str:
    """The list after this run; what was not run stays as it is."""
    now = dict(expected)
    for one in outcomes:
        reason = " ".join(one.message.split())[:160]
        now[one.name] = Expected(one.name, PASSED if one.passed else FAILED, reason, round(one.seconds, 1))
    ordered = sorted(now.values(), key=lambda one: one.name)
    aside: dict[str, list[str]] = {}
    for one in ordered:
        if one.state == NOT_APPLICABLE:
            aside.setdefault(one.reason, []).append(one.name)
    document = {
        PASSED: {one.name: one.seconds for one in ordered if one.state == PASSED},
        FAILED: {one.name: one.reason for one in ordered if one.state == FAILED},
        NOT_APPLICABLE: dict(sorted(aside.items())),
    }
    head = LIST.read_text().partition("\n\n")[0] if LIST.exists() else ""
    return f"{head}\n\n{yaml.safe_dump(document, width=1000, sort_keys=False, allow_unicode=True)}"


if __name__ == "__main__":
    sys.exit(main())
