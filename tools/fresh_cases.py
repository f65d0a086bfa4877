"""Ask kube-scheduler and Pilotage about problems that nobody recorded.

    .venv/bin/python tools/fresh_cases.py tests/data/parity --theme affinity --cases 500 --seed 7

The recorded cases show that both decide alike where somebody looked. This makes new ones out of them by chance
(`case_alterations`), has them answered by the scheduling code of a published kube-scheduler (`kube_scheduler_answers`,
built with Go once: a few seconds after `make cluster-assets`, ten minutes before) and by Pilotage, and shows where the
answers differ (`answer_differences`). Recorded cases that this release answers otherwise than they were recorded,
because the recording is of another version, are not altered.

Differences that are known and have a reason (`known_differences`) are counted apart, each under its reason.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from answer_differences import Answer, Difference, differences
from case_alterations import Case, altered
from cluster_assets import CONTROL_PLANE, BuildFailed, follow, go_mod, say
from known_differences import known_reason

from pilotage.bench.cluster_assets import KUBERNETES_VERSION, built_folder
from pilotage.conformance.cases import ConformanceCase
from pilotage.conformance.preemption import answer_preemption
from pilotage.conformance.replay import ANSWERERS, load
from pilotage.framework.errors import PluginError

SOURCE = Path(__file__).parent / "kube_scheduler_answers" / "main.go"
THEMES = ("affinity", "configs", "dra", "hints", "mixed", "preemption", "resources", "spread", "volumes")
GATES = {
    "DRAConsumableCapacity": True,
    "DRADeviceBindingConditions": True,
    "DRADeviceTaintRules": True,
    "DRADeviceTaints": True,
    "DRAExtendedResource": True,
    "DRAPartitionableDevices": True,
    "NodeDeclaredFeatures": True,
    "StorageCapacityScoring": True,
    "VolumeLimitScaling": True,
    "SchedulerAsyncPreemption": False,
}
"""On in the version that was recorded, but not in every release; and preemption has deleted when it answers."""
VERSIONS = {"DeviceTaintRule": "resource.k8s.io/v1beta2"}
"""Kinds that the release has in another version of their API, with the same fields."""
BATCH = 200
SHOWN = 20


@dataclass(slots=True)
class Tally:
    """What became of the new cases of a theme."""

    new: int = 0
    unanswered: int = 0
    """An object that this release does not know."""
    known: Counter[str] = field(default_factory=Counter)
    different: int = 0

    def __str__(self) -> str:
        same = self.new - self.unanswered - self.known.total() - self.different
        apart = {f"cannot be read by {KUBERNETES_VERSION}": self.unanswered, **self.known}
        lines = [f"{self.new} new: {same} answered alike, {self.different} differently"]
        return "\n  ".join([*lines, *(f"{count} {reason}" for reason, count in sorted(apart.items()) if count)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recorded", type=Path, help="the folder with the recorded cases")
    parser.add_argument("--theme", action="append", choices=THEMES, help="what they are about (default: everything)")
    parser.add_argument("--cases", type=int, default=300, help="new cases of each theme (default 300)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a file to which cases with an unknown difference are appended")
    given = parser.parse_args()
    try:
        program = built()
    except BuildFailed as failure:
        say(str(failure))
        return 1
    different = 0
    for theme in given.theme or THEMES:
        tally = explored(program, given.recorded, theme, given.cases, given.seed, given.keep)
        print(f"{theme}: {tally}", flush=True)
        different += tally.different
    return 1 if different else 0


def built() -> Path:
    """The program that answers as kube-scheduler does, made if it is not there or older than its source."""
    program = built_folder(KUBERNETES_VERSION, os.environ) / "kube-scheduler-answers"
    if program.exists() and program.stat().st_mtime > SOURCE.stat().st_mtime:
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pilotage-fresh-cases-") as work:
        module = Path(work)
        (module / "go.mod").write_text(go_mod(KUBERNETES_VERSION, CONTROL_PLANE.values()))
        (module / "main.go").write_text(SOURCE.read_text())
        # With the flags of `cluster_assets`: what was compiled for kube-scheduler is not compiled again.
        flags = ["-mod=mod", "-buildvcs=false", "-trimpath", "-v"]
        follow(program.name, ["go", "build", *flags, "-o", str(program), "."], module)
    return program


def explored(program: Path, recorded: Path, theme: str, count: int, seed: int, keep: Path | None) -> Tally:
    """Make new cases of a theme and compare the answers, batch by batch."""
    tally = Tally()
    fresh = islice(altered(_usable(program, recorded, theme), seed), count)
    while batch := list(islice(fresh, BATCH)):
        theirs = asked(program, batch)
        for case in batch:
            tally.new += 1
            _compare(theme, case, theirs[case["name"]], tally, keep)
    return tally


def _usable(program: Path, recorded: Path, theme: str) -> list[Case]:
    """The recorded cases that this release answers as they were recorded."""
    with gzip.open(recorded / f"{theme}.jsonl.gz") as lines:
        cases = [json.loads(line) for line in lines]
    theirs = asked(program, cases)
    same = [case for case in cases if not differences(case, theirs[case["name"]], case["expected"])]
    print(f"{theme}: {len(cases)} recorded, {len(same)} of them so answered by {KUBERNETES_VERSION}", flush=True)
    return same


def _compare(theme: str, case: Case, theirs: Answer, tally: Tally, keep: Path | None) -> None:
    if "cannot" in theirs:
        tally.unanswered += 1
        return
    ours = own_answer(case)
    problems = differences(case, theirs, ours)
    if not problems:
        return
    reason = known_reason(case, theirs, problems, own_answer)
    if reason is not None:
        tally.known[reason] += 1
        return
    tally.different += 1
    if tally.different <= SHOWN:
        _show(theme, case, problems)
    if keep is not None:
        with keep.open("a") as file:
            file.write(json.dumps({**case, "theirs": theirs, "ours": ours}) + "\n")


def _show(theme: str, case: Case, problems: Sequence[Difference]) -> None:
    place, expected, actual = problems[0]
    text = f"{theme} {case['name']}: {place}\n  kube-scheduler {expected}\n  pilotage       {actual}"
    print(text, flush=True)


def asked(program: Path, cases: Iterable[Case]) -> dict[str, Answer]:
    lines = "".join(json.dumps(_as_released(case)) + "\n" for case in cases)
    gates = ",".join(f"{name}={str(is_on).lower()}" for name, is_on in GATES.items())
    done = subprocess.run(
        [program],
        input=lines,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        env={**os.environ, "FEATURE_GATES": gates},
    )
    return {line["name"]: line["expected"] for line in map(json.loads, done.stdout.splitlines())}


def _as_released(case: Case) -> Case:
    """The same case with objects in the API versions of the release."""
    objects = [{**obj, "apiVersion": VERSIONS.get(obj["kind"], obj["apiVersion"])} for obj in case["objects"]]
    return {**case, "objects": objects}


def own_answer(case: Case) -> Answer:
    """What Pilotage says; whatever goes wrong there is a difference, and not the end."""
    own = ConformanceCase(
        name=case["name"],
        kind=case["kind"],
        objects=case["objects"],
        pod=case["pod"],
        expected={},
        config=case.get("config"),
        plugin=case.get("plugin", ""),
        event=case.get("event", {}),
        old_object=case.get("oldObject"),
        new_object=case.get("newObject"),
    )
    try:
        if own.kind == "preemption":
            return answer_preemption(load(own), searched_before=False)
        return ANSWERERS[own.kind](own)
    except PluginError as error:
        return {"error": str(error)}  # an error of the attempt, as kube-scheduler has them
    except Exception as error:
        return {"crash": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    sys.exit(main())
