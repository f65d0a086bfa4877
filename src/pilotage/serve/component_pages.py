"""`/statusz`, `/flagz`, `/configz`: what this process is, how it was started, and what it was configured with.

Text for people; JSON for programs that ask for it (`Accept: application/json`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from pilotage.clock import Clock, rfc3339
from pilotage.config.kinds import KIND, PILOTAGE_API_VERSION, PILOTAGE_KIND, SchedulerConfiguration
from pilotage.config.obsolete import API_VERSION
from pilotage.config.render import plain
from pilotage.escaping import visible
from pilotage.framework.plugin_files import LoadedPlugin
from pilotage.kube.secrets import without_user_part
from pilotage.observe.skipped_objects import SkippedObjects
from pilotage.serve.page import Page, PageAnswer, PageRequest, json_answer, text_answer

if TYPE_CHECKING:
    from pilotage.jobs.configuration.kinds import QueueingConfiguration

COMPONENT: Final = "kube-scheduler"
"""The name under which tools know these pages."""
_NOTICE: Final = "For people, not for programs: the layout may change."
_GROUP_VERSION: Final = "config.k8s.io/v1alpha1"


class About(Struct, frozen=True):
    """What the process says of itself."""

    version: str
    """Of Pilotage."""
    kubernetes_version: str
    """Whose scheduler it equals."""
    python_version: str
    started_at: float


def statusz(
    about: About,
    clock: Clock,
    paths: Callable[[], Sequence[str]],
    skipped: SkippedObjects,
    plugins: Sequence[LoadedPlugin] = (),
) -> Page:
    """What runs since when, and which objects it has to do without. `plugins`: those that are not built in."""

    def answer(request: PageRequest) -> PageAnswer:
        up = int(clock.time() - about.started_at)
        if request.accepts_json:
            facts = {
                "startTime": rfc3339(about.started_at),
                "uptimeSeconds": up,
                "binaryVersion": about.version,
                "emulationVersion": about.kubernetes_version,
                "pythonVersion": about.python_version,
                "paths": list(paths()),
                "plugins": [{"name": one.name, "origin": one.origin, "sha256": one.sha256} for one in plugins],
                "skippedObjects": [
                    {"kind": one.kind, "object": one.key, "stage": one.stage, "error": one.error} for one in skipped
                ],
            }
            return json_answer(_document("Statusz", facts))
        hours, rest = divmod(up, 3600)
        lines = [
            f"{COMPONENT} statusz",
            _NOTICE,
            "",
            f"Started: {rfc3339(about.started_at)}",
            f"Up: {hours} hr {rest // 60:02} min {rest % 60:02} sec",
            f"Binary version: pilotage {about.version}",
            f"Emulation version: {about.kubernetes_version}",
            f"Python version: {about.python_version}",
            f"Paths: {' '.join(paths())}",
            *(visible(f"Plugin: {one.name} from {one.origin} (sha256 {one.sha256 or 'unknown'})") for one in plugins),
            f"Skipped objects: {len(skipped)}",
            *(visible(f"  {one.sentence}") for one in skipped),
        ]
        return text_answer("\n".join(lines) + "\n")

    return answer


def flagz(flags: Mapping[str, str]) -> Page:
    """Every flag with the value that is in force; a password in an address is not shown."""
    flags = {name: without_user_part(value) for name, value in sorted(flags.items())}

    def answer(request: PageRequest) -> PageAnswer:
        if request.accepts_json:
            return json_answer(_document("Flagz", {"flags": flags}))
        shown = (visible(f"{name}={value}") for name, value in flags.items())
        lines = [f"{COMPONENT} flagz", _NOTICE, "", *shown]
        return text_answer("\n".join(lines) + "\n")

    return answer


def configz(configuration: SchedulerConfiguration, queueing: QueueingConfiguration | None = None) -> Page:
    """The whole configuration: kube-scheduler's under its name, and what only Pilotage has beside it."""
    additions = {"apiVersion": PILOTAGE_API_VERSION, "kind": PILOTAGE_KIND, **plain(configuration.additions)}
    document = {
        "componentconfig": {"apiVersion": API_VERSION, "kind": KIND, **plain(configuration.scheduler)},
        "pilotage": additions,
    }
    if queueing is not None:
        document["queueing"] = plain(queueing)

    def answer(request: PageRequest) -> PageAnswer:
        return json_answer(document)

    return answer


def _document(kind: str, facts: dict[str, Any]) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": _GROUP_VERSION, "metadata": {"name": COMPONENT}, **facts}
