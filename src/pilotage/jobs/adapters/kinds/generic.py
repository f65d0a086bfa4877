"""Any kind with a `spec.suspend` and templates of pods, named in `integrations.externalFrameworks`.

Nothing is known of such a kind but how such kinds usually look. Templates of pods are found by their form; how many
pods each makes is read from the nearest count above it. The status is read by the words that most operators use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from pilotage.jobs.adapters.facts import JobEnding
from pilotage.jobs.adapters.kinds.custom import CustomKind, Standing, condition_of
from pilotage.jobs.adapters.kinds.pods_in_spec import Json, Path, PodsInSpec, number_at, text_at
from pilotage.model.custom_jobs import CustomJob, custom_kind

_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9]*\.v[a-z0-9]+(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_COUNTS: Final = ("replicas", "parallelism", "completions", "instances", "count", "size")
_DEEPEST: Final = 24
_MOST_TEMPLATES: Final = 64
_SUCCEEDED: Final = ("Complete", "Completed", "Succeeded", "Finished", "SuccessCriteriaMet")
_FAILED: Final = ("Failed", "FailureTarget")
_READY: Final = ("Ready", "PodsReady", "Running", "Available", "AllReplicasReady")
_PHASES: Final = ("phase", "state", "jobStatus")
_ENDED: Final = frozenset(map(str.lower, (*_SUCCEEDED, *_FAILED)))
_AT_REST: Final = frozenset({"", "suspended", "pending", "inactive", "stopped"}) | _ENDED


def is_kind_name(name: str) -> bool:
    """Whether a kind is named as `Kind.version.group`."""
    return _NAME.fullmatch(name) is not None


def generic_kind(name: str) -> CustomKind:
    """A kind by its name in the configuration: `Kind.version.group`, such as `Workflow.v1alpha1.example.com`."""
    kind, version, group = name.split(".", 2)
    return CustomKind(
        framework=name,
        resource=custom_kind(group, version, kind),
        pods=lambda job: templates_in(job.spec, ()),
        standing=_standing,
    )


def templates_in(value: Any, path: Path) -> list[PodsInSpec]:
    """The templates of pods below a value, named by where they are."""
    found: list[PodsInSpec] = []
    for where, count in _search(value, path, 1, 0):
        found.append(PodsInSpec(_name(where, {one.name for one in found}), count, where))
        if len(found) == _MOST_TEMPLATES:
            break
    return found


def _search(value: Any, path: Path, count: int, depth: int) -> Iterator[tuple[Path, int]]:
    if depth > _DEEPEST:
        return
    if type(value) is dict:
        if _is_template(value):
            yield path, count
            return
        count *= _count(value)
        for key in sorted(value):
            yield from _search(value[key], (*path, key), count, depth + 1)
    elif type(value) is list:
        for index, one in enumerate(value):
            yield from _search(one, (*path, index), count, depth + 1)


def _is_template(value: Json) -> bool:
    spec = value.get("spec")
    return type(spec) is dict and type(spec.get("containers")) is list and bool(spec["containers"])


def _count(value: Json) -> int:
    """How often what is below is made: the least of the counts that stand there together."""
    return min((one for name in _COUNTS if type(one := value.get(name)) is int), default=1)


def _name(path: Path, taken: set[str]) -> str:
    """The last word of the path that says more than that a template follows."""
    words = [str(one) for one in path if one not in ("template", "spec", "metadata") and type(one) is str]
    stem = "".join(letter if letter.isalnum() else "-" for letter in (words[-1] if words else "main").lower())
    stem = stem[:50].strip("-") or "main"
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    return name


def _standing(job: CustomJob) -> Standing:
    phase = next((text for name in _PHASES if (text := text_at(job.status, name))), "").lower()
    ready = condition_of(job, *_READY) is not None or phase in ("running", "ready")
    is_suspended = condition_of(job, "Suspended") is not None
    return Standing(
        is_active=not is_suspended and (number_at(job.status, 0, "active") > 0 or ready or phase not in _AT_REST),
        are_pods_ready=ready,
        ending=_ending(job, phase),
    )


def _ending(job: CustomJob, phase: str) -> JobEnding | None:
    failed, succeeded = condition_of(job, *_FAILED), condition_of(job, *_SUCCEEDED)
    message = str((failed or succeeded or {}).get("message") or text_at(job.status, "message"))
    if failed is not None or phase in ("failed", "error"):
        return JobEnding(False, message or "Job failed")
    if succeeded is not None or phase in ("succeeded", "completed", "complete"):
        return JobEnding(True, message or "Job finished successfully")
    return None
