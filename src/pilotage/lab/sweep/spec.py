"""What a sweep consists of: a YAML file becomes a list of runs.

    traces: [monday.jsonl.gz, tuesday.jsonl.gz]
    configurations:
      - name: default
      - name: packing
        config: packing.yaml
        arguments:
          NodeResourcesFit:
            - {scoringStrategy: {type: LeastAllocated}}
            - {scoringStrategy: {type: MostAllocated}}
    seeds: 10

Every trace is played with every configuration, with every combination of the arguments given for its plugins, with
every seed and every rule for ties. Files are found from the folder of the spec. A run is named by the content of
everything that it depends on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, Final

import msgspec

from pilotage import __version__
from pilotage.config.decode import decode
from pilotage.config.kinds import KIND
from pilotage.config.load import parse_configuration, read_text
from pilotage.config.located import read_documents
from pilotage.config.obsolete import API_VERSION
from pilotage.config.problems import ConfigError, Problem
from pilotage.framework.plugin_files import named_files
from pilotage.kube_yaml import YamlError, documents
from pilotage.lab.replay import TIES
from pilotage.model.durations import parse_duration

MOST_RUNS: Final = 100_000
_PROFILE: Final = {"schedulerName": "default-scheduler"}
_EVICTED: Final = ("restart", "resume")


@dataclass(frozen=True, slots=True)
class SweptConfiguration:
    """One scheduler of the spec; with arguments to try, several."""

    name: str
    config: str = ""
    plugins: tuple[str, ...] = ()
    arguments: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """By plugin, what its arguments are to be, one after the other."""


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """The file."""

    traces: tuple[str, ...]
    configurations: tuple[SweptConfiguration, ...] = (SweptConfiguration("default"),)
    seeds: int | tuple[int, ...] = 1
    """How many, from 0 on; or which."""
    ties: tuple[str, ...] = ("scheduler",)
    nodes: str = ""
    until: str = ""
    every: str = "1m"
    evicted: str = "restart"

    def problems(self) -> Iterator[tuple[str, str]]:
        for name in ("traces", "configurations", "ties"):
            if not getattr(self, name):
                yield name, "Required value: give at least one"
        if isinstance(self.seeds, int) and not 1 <= self.seeds <= MOST_RUNS:
            yield "seeds", f"Invalid value: {self.seeds}: must be a list, or how many: 1 to {MOST_RUNS:,}"
        if not isinstance(self.seeds, int) and (not self.seeds or min(self.seeds) < 0):
            yield "seeds", "Invalid value: must be numbers from 0 on, at least one"
        for at, ties in enumerate(self.ties):
            if ties not in TIES:
                yield f"ties[{at}]", f'Unsupported value: "{ties}": supported values: {", ".join(TIES)}'
        if self.evicted not in _EVICTED:
            yield "evicted", f'Unsupported value: "{self.evicted}": supported values: {", ".join(_EVICTED)}'
        for name in ("until", "every"):
            if (problem := _duration_problem(getattr(self, name))) is not None:
                yield name, problem
        names = [one.name for one in self.configurations]
        for at, one in enumerate(self.configurations):
            if one.name in names[:at]:
                yield f"configurations[{at}].name", f'Duplicate value: "{one.name}"'
            for plugin, values in one.arguments.items():
                if not values or not all(isinstance(value, Mapping) for value in values):
                    yield f"configurations[{at}].arguments[{plugin}]", "must be a list of objects, at least one"

    @property
    def seed_list(self) -> list[int]:
        return list(range(self.seeds)) if isinstance(self.seeds, int) else list(dict.fromkeys(self.seeds))

    @property
    def size(self) -> int:
        """How many runs there are."""
        variants = sum(math.prod(len(v) for v in one.arguments.values()) for one in self.configurations)
        return variants * len(dict.fromkeys(self.traces)) * len(self.seed_list) * len(dict.fromkeys(self.ties))


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One simulation of a sweep, with everything that it takes: it can be sent to another process or machine."""

    digest: str
    """Of the content of everything that the result depends on; its name."""
    label: str
    """Which configuration, with which arguments, as one line."""
    trace: str
    """As the spec names it."""
    trace_path: str
    trace_sha256: str
    config: str
    """The configuration, as JSON; the arguments are in it."""
    plugins: tuple[str, ...]
    """Paths."""
    nodes: str
    """A path; "" for those of the trace."""
    seed: int
    ties: str
    until: str
    every: str
    evicted: str


def read_spec(path: Path) -> list[Run]:
    """All runs, in the order of the spec: ConfigError with everything that is wrong with it."""
    found, problems = read_documents(read_text(path))
    if not problems and len(found) != 1:
        problems.append(Problem(0, "", f"has {len(found)} documents; a spec of a sweep is one, with `traces`"))
    spec = None if problems else decode(SweepSpec, found[0], problems)
    if spec is not None and spec.size > MOST_RUNS:
        problems.append(Problem(0, "", f"asks for {spec.size:,} runs; at most {MOST_RUNS:,} are taken: split it"))
    if spec is None or problems:
        raise ConfigError(str(path), problems)
    return _Runs(spec, path).all()


class _Runs:
    """Puts the runs of a spec together; reads each file once."""

    def __init__(self, spec: SweepSpec, path: Path) -> None:
        self._spec = spec
        self._path = path
        self._digests: dict[Path, str] = {}

    def all(self) -> list[Run]:
        spec = self._spec
        traces = [(name, self._folder / name) for name in dict.fromkeys(spec.traces)]
        nodes = str(self._folder / spec.nodes) if spec.nodes else ""
        return [
            self._run(trace, variant, seed, ties, nodes)
            for trace in traces
            for one in spec.configurations
            for variant in self._variants(one)
            for seed in spec.seed_list
            for ties in dict.fromkeys(spec.ties)
        ]

    @property
    def _folder(self) -> Path:
        return self._path.parent.absolute()

    def _variants(self, one: SweptConfiguration) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Label, configuration and plugin files."""
        path = self._folder / one.config if one.config else None
        for values in product(*one.arguments.values()):
            arguments = dict(zip(one.arguments, values, strict=True))
            config = _with_arguments(path, arguments)
            folder = self._folder if path is None else path.parent
            read = parse_configuration(config, str(path or self._path))
            paths = named_files(read.additions.plugin_files, folder, [self._folder / name for name in one.plugins])
            label = one.name + "".join(f" {name}={_line(value)}" for name, value in arguments.items())
            yield label, config, tuple(map(str, paths))

    def _run(
        self, trace: tuple[str, Path], variant: tuple[str, str, tuple[str, ...]], seed: int, ties: str, nodes: str
    ) -> Run:
        spec, (name, path), (label, config, plugins) = self._spec, trace, variant
        rest: dict[str, Any] = {
            "seed": seed,
            "ties": ties,
            "until": spec.until,
            "every": spec.every,
            "evicted": spec.evicted,
        }
        trace_sha256 = self._digest(path)
        content = {
            "version": __version__,
            "trace": trace_sha256,
            "config": config,
            "plugins": [self._digest(Path(one)) for one in plugins],
            "nodes": self._digest(Path(nodes)) if nodes else "",
            **rest,
        }
        return Run(
            digest=sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:32],
            label=label,
            trace=name,
            trace_path=str(path),
            trace_sha256=trace_sha256,
            config=config,
            plugins=plugins,
            nodes=nodes,
            **rest,
        )

    def _digest(self, path: Path) -> str:
        if path not in self._digests:
            self._digests[path] = file_digest(path, str(self._path))
        return self._digests[path]


def file_digest(path: Path, source: str) -> str:
    """SHA-256 of a file; ConfigError of `source` if it cannot be read."""
    digest = sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(2**20):
                digest.update(chunk)
    except OSError as error:
        message = f"{path}: cannot be read: {(error.strerror or str(error)).lower()}"
        raise ConfigError(source, [Problem(0, "", message)]) from error
    return digest.hexdigest()


def _with_arguments(path: Path | None, arguments: Mapping[str, Any]) -> str:
    """The configuration as JSON documents, with these arguments in every profile instead of those that it has."""
    try:
        found = [] if path is None else [one.value for one in documents(read_text(path))]
    except YamlError as error:
        raise ConfigError(str(path), [Problem(0, "", str(error))]) from error
    schedulers = [one for one in found if isinstance(one, dict) and one.get("kind") == KIND]
    if not schedulers:
        schedulers = [{"apiVersion": API_VERSION, "kind": KIND}]
        found += schedulers
    for scheduler in schedulers if arguments else ():
        at_top = "plugins" in scheduler or "pluginConfig" in scheduler
        profiles = [scheduler] if at_top else scheduler.setdefault("profiles", [dict(_PROFILE)])
        for profile in profiles if isinstance(profiles, list) else ():
            if isinstance(profile, dict):
                profile["pluginConfig"] = _merged(profile.get("pluginConfig") or (), arguments)
    return "\n---\n".join(_line(one) for one in found)


def _merged(known: Iterable[Any], arguments: Mapping[str, Any]) -> list[Any]:
    """Fields that are given replace those that are there."""
    left, merged = dict(arguments), []
    for entry in known:
        given = left.pop(str(entry.get("name")), None) if isinstance(entry, dict) else None
        merged.append(entry if given is None else {**entry, "args": {**(entry.get("args") or {}), **given}})
    return merged + [{"name": name, "args": given} for name, given in left.items()]


def _line(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _duration_problem(text: str) -> str | None:
    try:
        return None if not text or parse_duration(text) > 0 else f"Invalid value: {text}: must be more than nothing"
    except ValueError as error:
        return str(error)
