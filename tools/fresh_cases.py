"""Ask kube-scheduler and Pilotage about problems that nobody recorded.

    .venv/bin/python tools/fresh_cases.py ../shared/parity --theme affinity --cases 500 --seed 7

The recorded cases show that both decide alike where somebody looked. This makes new ones out of them by chance, has
them answered by the scheduling code of a published kube-scheduler (`kube_scheduler_answers`, built with Go once: some
ten minutes on two cores) and by `pilotage conformance`, and shows where the answers differ. Recorded cases that this
release answers otherwise than they were recorded, because the recording is of another version, are not altered.

Some altered problems have no single answer: images of one name and different sizes, for instance. Look at a difference
before believing it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from case_alterations import Case, altered
from cluster_assets import BuildFailed, follow, go_mod, say

from pilotage.bench.cluster_assets import KUBERNETES_VERSION, built_folder

SOURCE = Path(__file__).parent / "kube_scheduler_answers" / "main.go"
THEMES = ("affinity", "configs", "dra", "hints", "mixed", "preemption", "resources", "spread", "volumes")
GATES = (
    "DRAConsumableCapacity=true,DRADeviceBindingConditions=true,DRADeviceTaintRules=true,DRADeviceTaints=true,"
    "DRAExtendedResource=true,DRAPartitionableDevices=true,NodeDeclaredFeatures=true,StorageCapacityScoring=true"
)
"""On in the version that was recorded, but not in every release."""
SHOWN = 20
Answer = dict[str, Any]
Difference = tuple[str, Any, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recorded", type=Path, help="the folder with the recorded cases")
    parser.add_argument("--theme", action="append", choices=THEMES, help="what they are about (default: everything)")
    parser.add_argument("--cases", type=int, default=300, help="new cases of each theme (default 300)")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    try:
        program = built()
    except BuildFailed as failure:
        say(str(failure))
        return 1
    different = sum(
        explored(program, given.recorded, theme, given.cases, given.seed) for theme in given.theme or THEMES
    )
    return 1 if different else 0


def built() -> Path:
    """The program that answers as kube-scheduler does, made if it is not there or older than its source."""
    program = built_folder(KUBERNETES_VERSION, os.environ) / "kube-scheduler-answers"
    if program.exists() and program.stat().st_mtime > SOURCE.stat().st_mtime:
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pilotage-fresh-cases-") as work:
        module = Path(work)
        (module / "go.mod").write_text(go_mod(KUBERNETES_VERSION))
        (module / "main.go").write_text(SOURCE.read_text())
        follow(program.name, ["go", "build", "-mod=mod", "-buildvcs=false", "-v", "-o", str(program), "."], module)
    return program


def explored(program: Path, recorded: Path, theme: str, count: int, seed: int) -> int:
    """How many new cases of a theme are answered differently."""
    cases = list(_read(recorded / f"{theme}.jsonl.gz"))
    theirs = asked(program, cases)
    same = [case for case in cases if not differences(case, theirs[case["name"]], case["expected"])]
    fresh = list(islice(altered(same, seed), count))
    theirs, ours = asked(program, fresh), own_answers(fresh)
    found = [
        (case, problems) for case in fresh if (problems := differences(case, theirs[case["name"]], ours[case["name"]]))
    ]
    for case, problems in found[:SHOWN]:
        place, expected, actual = problems[0]
        print(f"{theme} {case['name']}: {place}\n  kube-scheduler {expected}\n  pilotage       {actual}")
    print(f"{theme}: {len(cases)} recorded, {len(same)} of them so answered by {KUBERNETES_VERSION}; ", end="")
    print(f"{len(fresh)} new, {len(found)} answered differently", flush=True)
    return len(found)


def _read(path: Path) -> Iterator[Case]:
    with gzip.open(path) as lines:
        yield from map(json.loads, lines)


def asked(program: Path, cases: Iterable[Case]) -> dict[str, Answer]:
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    environment = {**os.environ, "FEATURE_GATES": GATES}
    done = subprocess.run(
        [program],
        input=lines,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        env=environment,
    )
    return _by_name(done.stdout)


def own_answers(cases: Iterable[Case]) -> dict[str, Answer]:
    with tempfile.TemporaryDirectory(prefix="pilotage-fresh-cases-") as work:
        problems, answers = Path(work, "cases.jsonl"), Path(work, "answers.jsonl")
        problems.write_text("".join(json.dumps({**case, "expected": {}}) + "\n" for case in cases))
        command = [sys.executable, "-m", "pilotage", "conformance", str(problems), "--answers", str(answers)]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        return _by_name(answers.read_text())


def _by_name(lines: str) -> dict[str, Answer]:
    return {line["name"]: line["expected"] for line in map(json.loads, lines.splitlines())}


# --- where two answers differ -----------------------------------------------------------------------------------------


def differences(case: Case, theirs: Answer, ours: Answer) -> list[Difference]:
    """In what their program can tell: (what, theirs, ours)."""
    if "cannot" in theirs:
        return []  # an object that this release does not know
    failed = [isinstance(answer.get("error"), str) for answer in (theirs, ours)]
    if any(failed):
        return [] if all(failed) else [("error", theirs.get("error"), ours.get("error"))]
    compared = {"filter-score": _decision, "preemption": _eviction, "hint": _hint}[case["kind"]]
    return [(what, one, other) for what, one, other in compared(theirs, ours) if one != other]


def _decision(theirs: Answer, ours: Answer) -> Iterator[Difference]:
    for field in ("code", "plugin", "nodeNames"):
        yield f"preFilter.{field}", theirs["preFilter"][field], ours["preFilter"][field]
    for field in ("reasons", "skipped"):
        yield f"preFilter.{field}", _sorted(theirs["preFilter"][field]), _sorted(ours["preFilter"][field])
    yield from _verdicts(theirs, ours)
    yield "unschedulablePlugins", _sorted(theirs["unschedulablePlugins"]), _sorted(ours["unschedulablePlugins"])
    for node in sorted(theirs["scores"].keys() | ours["scores"].keys()):
        one, other = (answer["scores"].get(node, {}).get("plugins") for answer in (theirs, ours))
        yield f"scores of {node}", one, other
    yield "message", theirs["message"], ours["message"]


def _eviction(theirs: Answer, ours: Answer) -> Iterator[Difference]:
    if "postFilter" not in theirs:
        return  # it fits: nobody would ask
    yield from _verdicts(theirs, ours)
    yield "message", theirs["message"], ours["filterMessage"]
    yield "code", theirs["postFilter"]["code"], ours["code"]
    chosen = theirs["postFilter"]["nominatedNode"]
    yield "nominated node", chosen, chosen if chosen in ours["tied"] else ours["nominatedNode"]


def _hint(theirs: Answer, ours: Answer) -> Iterator[Difference]:
    yield f"hint to {', '.join(ours['events'])}", theirs["hint"], ours["hint"]


def _verdicts(theirs: Answer, ours: Answer) -> Iterator[Difference]:
    for node in sorted(theirs["filter"].keys() | ours["filter"].keys()):
        one, other = ({**(answer["filter"].get(node) or {})} for answer in (theirs, ours))
        for verdict in (one, other):
            verdict["reasons"] = _sorted(verdict.get("reasons"))
        yield f"filter of {node}", one, other


def _sorted(names: list[str] | None) -> list[str]:
    return sorted(names or ())


if __name__ == "__main__":
    sys.exit(main())
