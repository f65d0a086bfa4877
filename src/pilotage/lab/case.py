"""One decision with the cluster around it, in a file that can be given away and played again.

    case.json        what it is about, what was decided, and what is not in it
    trace.jsonl      the cluster as a trace of one instant, redacted
    scheduler.yaml   the configuration, without pluginFiles and extenders; not there if it is the default one

Plugins are named with their hashes and are not in it: nobody should run the code of a stranger by looking at a case.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
import yaml

from pilotage.api.group_members import group_key
from pilotage.assembly import SchedulerOptions, options_from_configuration
from pilotage.cluster.state import Cluster
from pilotage.config.feature_gates import FeatureGates, parse_feature_gates
from pilotage.config.kinds import KIND, PILOTAGE_KIND
from pilotage.config.load import default_configuration, load_configuration
from pilotage.framework.plugin_files import installed_plugins, load_plugin_files
from pilotage.kube_yaml import YamlError, documents
from pilotage.lab.replay import ReplaySettings
from pilotage.lab.results import Result
from pilotage.lab.simulation import TraceInput, simulate
from pilotage.lab.trace.format import TraceHeader, Writer
from pilotage.lab.trace.of_cluster import object_documents, pod_document
from pilotage.model import Pod

VERSION: Final = 1
CASE, TRACE, CONFIG = "case.json", "trace.jsonl", "scheduler.yaml"
INSTANT: Final = 0.25
"""Seconds that a case is played for: before anything that an attempt leads to has come about."""
_MOST_BYTES: Final = 2**30


class CaseError(Exception):
    """A file that is no case, or a decision that cannot be captured."""


class Decision(msgspec.Struct, frozen=True):
    """What the first attempt came to."""

    node: str | None = None
    reason: str | None = None
    """Why it fits nowhere; None if it does."""


class Case(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What is written beside the cluster."""

    pilotage_case: int
    pod: str
    """ "namespace/name"."""
    decision: Decision = Decision()
    was_on: str = ""
    """The node on which the pod ran when the case was made."""
    feature_gates: str = ""
    plugins: dict[str, str] = {}
    """The plugins that took part, and the hashes of their files."""
    left_out: tuple[str, ...] = ()


class OpenedCase(msgspec.Struct, frozen=True):
    """A case whose files lie in a folder for a while."""

    case: Case
    trace: Path
    config: Path | None


# --- making one ------------------------------------------------------------------------------------------------------


class CaseFiles(msgspec.Struct, frozen=True):
    """What a case is made with, beside the cluster."""

    config: Path | None
    plugin_files: tuple[Path, ...]
    feature_gates: str
    start: str
    """Now, as RFC 3339."""


def capture(cluster: Cluster, pod: Pod, options: SchedulerOptions, files: CaseFiles, output: Path) -> Case:
    """Write a case about this pod; CaseError if it cannot be written, or does not play again."""
    left_out = []
    with tempfile.TemporaryDirectory(prefix="pilotage-case-") as name:
        folder = Path(name)
        waiting = _write_trace(folder / TRACE, cluster, pod, files.start)
        if waiting:
            left_out.append(f"other pods that wait ({waiting:,})")
        if files.config is not None:
            left_out += _write_config(folder / CONFIG, files.config)
        case = Case(
            pilotage_case=VERSION,
            pod=pod.key,
            was_on=pod.node_name,
            feature_gates=files.feature_gates,
            plugins={one.name: one.sha256 for one in options.origins},
            left_out=tuple(left_out),
        )
        config = folder / CONFIG if files.config is not None else None
        replayable = _options(config, files.plugin_files, files.feature_gates)
        decision = _decision(OpenedCase(case, folder / TRACE, config), replayable)
        case = msgspec.structs.replace(case, decision=decision)
        (folder / CASE).write_bytes(msgspec.json.format(msgspec.json.encode(case), indent=2) + b"\n")
        _pack(folder, output)
    return case


def _write_trace(path: Path, cluster: Cluster, subject: Pod, start: str) -> int:
    """The cluster with this pod as if it had just come; returns how many other pods that wait are not in it."""
    pods: Mapping[str, Pod] = cluster.objects("Pod")
    others = [pod for pod in pods.values() if pod.key != subject.key]
    kept = [pod for pod in others if pod.node_name or (group_key(pod) and group_key(pod) == group_key(subject))]
    with Writer(path, TraceHeader(pilotage_trace=1, start=start, source=f"case of {subject.key}")) as trace:
        for document in object_documents(cluster):
            trace.put(0.0, document)
        for pod in kept:
            trace.put(0.0, pod_document(pod, keeps_node=True))
        trace.put(0.0, pod_document(subject, keeps_node=False))
    return len(others) - len(kept)


def _write_config(path: Path, config: Path) -> list[str]:
    """Without what would have others run or ask something; returns what was left out."""
    left_out, kept = [], []
    for document in documents(config.read_bytes()):
        value = document.value
        for kind, field in ((PILOTAGE_KIND, "pluginFiles"), (KIND, "extenders")):
            if isinstance(value, dict) and value.get("kind") == kind and value.pop(field, None):
                left_out.append(f"{field} of the configuration")
        kept.append(value)
    path.write_text(yaml.safe_dump_all(kept, sort_keys=False), encoding="utf-8")
    return left_out


def _pack(folder: Path, output: Path) -> None:
    """Equal files make an equal archive."""
    try:
        with output.open("wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            for name in (CASE, CONFIG, TRACE):
                if (folder / name).exists():
                    content = (folder / name).read_bytes()
                    member = tarfile.TarInfo(name)
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
    except OSError as error:
        raise CaseError(f"{output}: cannot be written: {error.strerror or error}") from error


# --- playing one again -----------------------------------------------------------------------------------------------


def is_case(path: Path) -> bool:
    """By its name."""
    return path.name.endswith((".tar.gz", ".tgz"))


@contextmanager
def opened(path: Path) -> Iterator[OpenedCase]:
    """The files of a case; CaseError if it is none."""
    with tempfile.TemporaryDirectory(prefix="pilotage-case-") as name:
        folder = Path(name)
        try:
            _unpack(path, folder)
            case = msgspec.json.decode((folder / CASE).read_bytes(), type=Case)
        except (OSError, EOFError, tarfile.TarError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise CaseError(f"{path}: is no case that pilotage capture has made: {error}") from error
        if case.pilotage_case != VERSION:
            raise CaseError(f"{path}: is a case of version {case.pilotage_case}; this program reads {VERSION}")
        config = folder / CONFIG if (folder / CONFIG).exists() else None
        if config is not None:
            _reject_foreign_code(path, config)
        yield OpenedCase(case, folder / TRACE, config)


def _unpack(path: Path, folder: Path) -> None:
    """Only the files that a case has, and only as large as they may be."""
    left = _MOST_BYTES
    with tarfile.open(path, "r:gz") as archive:
        for member in archive:
            if member.name not in (CASE, TRACE, CONFIG) or not member.isfile() or member.size > left:
                raise CaseError(f"{path}: is no case: it has {member.name} of {member.size:,} bytes")
            left -= member.size
            content = archive.extractfile(member)
            assert content is not None
            (folder / member.name).write_bytes(content.read())


def _reject_foreign_code(path: Path, config: Path) -> None:
    try:
        found = [one.value for one in documents(config.read_bytes())]
    except YamlError as error:
        raise CaseError(f"{path}: {CONFIG}: {error}") from error
    for value in found:
        for field in ("pluginFiles", "extenders"):
            if isinstance(value, dict) and value.get(field):
                raise CaseError(f"{path}: its configuration names {field}, which no case does: it was changed")


def replay_case(path: Path | str, plugin_files: Sequence[Path | str] = ()) -> Decision:
    """What this version of Pilotage decides about the pod of a case, with these plugins.

    CaseError, ConfigError, TraceError or ProfileError if it cannot be played.
    """
    with opened(Path(path)) as one:
        options = _options(one.config, [Path(file) for file in plugin_files], one.case.feature_gates)
        check_plugins(one.case, options)
        return _decision(one, options)


def check_plugins(case: Case, options: SchedulerOptions) -> None:
    """CaseError if a plugin is missing that took part."""
    missing = sorted(case.plugins.keys() - {one.name for one in options.origins})
    if missing:
        raise CaseError(f"{', '.join(missing)} took part in the decision: give the file with --plugin")


def changed_plugins(case: Case, options: SchedulerOptions) -> list[str]:
    """Those that are not the same code any more."""
    known = {one.name: one.sha256 for one in options.origins}
    return sorted(name for name, digest in case.plugins.items() if known.get(name) != digest)


def _options(config: Path | None, plugin_files: Sequence[Path], feature_gates: str) -> SchedulerOptions:
    configuration = default_configuration() if config is None else load_configuration(config)
    gates = FeatureGates({**configuration.additions.feature_gates, **parse_feature_gates(feature_gates)})
    return options_from_configuration(configuration, load_plugin_files(plugin_files), gates, installed_plugins())


def _decision(one: OpenedCase, options: SchedulerOptions) -> Decision:
    with tempfile.TemporaryDirectory(prefix="pilotage-case-") as folder:
        settings = ReplaySettings(until=INSTANT)
        result = simulate(TraceInput(one.trace), options, settings, Path(folder) / "result")
        decision = decision_about(one.case.pod, result)
    if decision is None:
        known = ", ".join(options.profiles)
        text = f"nothing is decided about {one.case.pod}: it is held back, or no profile has its schedulerName"
        raise CaseError(f"{text} (there are: {known})")
    return decision


def decision_about(pod: str, result: Result) -> Decision | None:
    """What a result says of a pod; None if it was not tried."""
    for row in (result.pods["pod"] == pod).nonzero()[0].tolist():
        node, reason = (str(result.pods[name][row]) for name in ("node", "reason"))
        if node or reason:
            return Decision(node=node) if node else Decision(reason=reason)
    return None


def decision_text(decision: Decision) -> str:
    """As the end of a sentence about the pod."""
    return f"goes to {decision.node}" if decision.node else f"fits nowhere: {decision.reason}"
