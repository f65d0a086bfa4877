"""`pilotage record`: what happens in a cluster becomes a trace that the laboratory can replay."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from pilotage.cli.durations import DURATION, short_duration
from pilotage.cli.errors import CommandError, ExitCode, bad_input
from pilotage.cli.event_loop import run as run_loop
from pilotage.cli.event_loop import until_interrupted
from pilotage.cli.logs import is_verbose, say
from pilotage.cli.options import common_options
from pilotage.cli.status_line import StatusLine
from pilotage.clock import Clock, SteadyClock, SystemClock, rfc3339_micro
from pilotage.kube.client import KubeClient
from pilotage.kube.connection import Connection
from pilotage.kube.errors import KubeconfigError
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.preflight import Refused, await_server, has_kind
from pilotage.kube.reflector import Reflector
from pilotage.lab.trace.content import RECORDED, Redaction, recorded_kinds
from pilotage.lab.trace.dump import DumpError, trace_of_dump
from pilotage.lab.trace.finishing import finish
from pilotage.lab.trace.following import TraceTime, cluster_uid, follow
from pilotage.lab.trace.format import VERSION, TraceError, TraceHeader, Writer
from pilotage.lab.trace.recording import Recording, TraceState, continued
from pilotage.model.kinds import KindInfo
from pilotage.model.suggestions import suggestion
from pilotage.rng import fresh_seed, seeded
from pilotage.tasks import sole_error

_EPILOG: Final = """\b
Examples:
  pilotage record -o monday.jsonl.gz
  pilotage record --kubeconfig prod.yaml --for 1d -o monday.jsonl.gz --hash-images
  pilotage record --from-dump pods.json nodes.json events.json -o now.jsonl.gz
"""
_FILE: Final = click.Path(path_type=Path)
_SAME_OUTAGE_SECONDS: Final = 60.0
_MOST_REASONS: Final = 100

log = logging.getLogger(__name__)


@click.command(epilog=_EPILOG)
@click.argument("files", nargs=-1, type=_FILE, metavar="[FILE]...")
@click.option("-o", "--output", required=True, type=_FILE, metavar="TRACE", help="Where to: *.jsonl.gz or *.jsonl.")
@click.option("--kubeconfig", metavar="F", help="Kubeconfig file.  [default: as kubectl: $KUBECONFIG, ~/.kube/config]")
@click.option("--context", "context_name", metavar="C", help="Context in it.  [default: its current context]")
@click.option("--from-dump", is_flag=True, help="Make a trace of FILEs that `kubectl get -o json` or `-o yaml` wrote.")
@click.option("--for", "seconds", type=DURATION, metavar="T", help="End after this time.  [default: at Ctrl-C]")
@click.option("--without", multiple=True, metavar="KIND", help="Leave out a kind, by its plural; may be repeated.")
@click.option(
    "--keep-annotation",
    "annotations",
    multiple=True,
    metavar="PREFIX",
    help="Keep annotations whose key begins so; may be repeated.",
)
@click.option("--hash-images", is_flag=True, help="Write hashes instead of the names of images.")
@common_options
def record(
    files: tuple[Path, ...],
    output: Path,
    kubeconfig: str | None,
    context_name: str | None,
    from_dump: bool,
    seconds: float | None,
    without: tuple[str, ...],
    annotations: tuple[str, ...],
    hash_images: bool,
) -> None:
    """Record what happens in a cluster until Ctrl-C: a trace for the laboratory.

    Everything that scheduling reads: nodes, pods, volumes, claims, devices, queues, budgets, classes; how they came,
    changed and ended. Nothing else: no environment, arguments, commands or annotations. If TRACE is there already, it
    is continued, and what was missed is a gap in it.
    """
    if output.suffixes[-1:] != [".jsonl"] and output.suffixes[-2:] != [".jsonl", ".gz"]:
        raise bad_input(f"{output}: a trace is called *.jsonl.gz (compressed) or *.jsonl")
    redaction = Redaction(annotations, hash_images)
    if from_dump:
        _from_dump(files, output, redaction)
        return
    if files:
        raise click.UsageError(f"{files[0]}: files are read with --from-dump only")
    kinds = _chosen(without, redaction)
    clock = SteadyClock(SystemClock())
    try:
        connection = load_connection(kubeconfig, context_name, clock=clock)
        run_loop(_record(connection, kinds, output, clock, seconds))
    except KubeconfigError as error:
        raise bad_input(str(error)) from error
    except TraceError as error:
        raise CommandError(ExitCode.FAILED, str(error)) from error


def _chosen(without: Sequence[str], redaction: Redaction) -> list[KindInfo]:
    for plural in without:
        if plural not in RECORDED:
            hint = suggestion(plural, RECORDED) or f"; there are: {', '.join(RECORDED)}"
            raise click.UsageError(f"--without {plural}: no such kind is recorded{hint}")
    return [kind for kind in recorded_kinds(redaction) if kind.plural not in without]


def _from_dump(files: tuple[Path, ...], output: Path, redaction: Redaction) -> None:
    if not files:
        raise click.UsageError("--from-dump: give the files that kubectl wrote")
    if output.exists():
        raise bad_input(f"{output}: is there already; choose another name, or remove it")
    try:
        dump = trace_of_dump(files, redaction)
        with Writer(output, dump.header) as out:
            for entry in dump.records():
                out.write(entry)
    except (DumpError, TraceError) as error:
        raise bad_input(str(error)) from error
    say(f"{output}: {dump.summary}")


async def _record(
    connection: Connection, kinds: Sequence[KindInfo], output: Path, clock: Clock, seconds: float | None
) -> None:
    transport = HttpTransport(connection)
    session = _Session(output, clock, seconds)
    try:
        with sole_error():
            await until_interrupted(session.run(KubeClient(transport), connection, kinds))
    except Refused as error:
        problems = (f"{problem} ({connection.origin})" for problem in error.problems)
        raise CommandError(ExitCode.UNREACHABLE, *problems) from error
    finally:
        session.close()
        await transport.close()
    session.finish()


class _OnceForAllKinds(logging.Filter):
    """Thirty watches lose the same server at once, and say the same of it."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if is_verbose():
            return True
        reason = record.getMessage().partition(": ")[2]
        now, last = self._clock.monotonic(), self._said.get(reason, -math.inf)
        if len(self._said) < _MOST_REASONS or reason in self._said:
            self._said[reason] = now
        return now - last > _SAME_OUTAGE_SECONDS


class _Session:
    """One recording, from the first list to the finished trace."""

    def __init__(self, output: Path, clock: Clock, seconds: float | None) -> None:
        self._output = output
        self._clock = clock
        self._seconds = seconds
        self._status = StatusLine(clock)
        self._out: Writer | None = None
        self._recording: Recording | None = None
        self._told = ""

    async def run(self, client: KubeClient, connection: Connection, kinds: Sequence[KindInfo]) -> None:
        server = await await_server(client, kinds, self._clock, self._report_waiting)
        served = [kind for kind in kinds if await has_kind(client, kind)]
        if absent := sorted({kind.plural for kind in kinds} - {kind.plural for kind in served}):
            log.info("not served there, and not in the trace: %s", ", ".join(absent))
        self._out, state = self._opened(await cluster_uid(client))
        time = TraceTime(self._clock, state.at)
        self._recording = Recording(self._out, time.now, state)
        logging.getLogger(Reflector.__module__).addFilter(_OnceForAllKinds(self._clock))
        say(f"recording {connection.shown} ({server.git_version}) into {self._output}; Ctrl-C ends it")
        end = math.inf if self._seconds is None else self._clock.monotonic() + self._seconds

        def tick() -> bool:
            self._show(time.now())
            return self._clock.monotonic() >= end

        try:
            await follow(client, served, self._recording, time, self._clock, seeded(fresh_seed()), tick)
        except TraceError as error:
            kept = "what was written before is kept: the same command goes on there"
            raise CommandError(ExitCode.FAILED, f"{error}; {kept}") from error

    def _opened(self, cluster: str | None) -> tuple[Writer, TraceState]:
        now = self._clock.time()
        header = TraceHeader(pilotage_trace=VERSION, start=rfc3339_micro(now), source="record", recording=True)
        if not self._output.exists() or not self._output.stat().st_size:
            return Writer(self._output, header), TraceState()
        say(f"{self._output} is there already: reading it, to go on where it ends")
        out, state, missed = continued(self._output, now, header, cluster)
        say(f"going on after {short_duration(state.at)}; {short_duration(missed)} were missed, which the trace says")
        return out, state

    def _report_waiting(self, problem: str, pause: float) -> None:
        if problem != self._told:
            say(f"waiting for the API server: {problem}")
            self._told = problem

    def _show(self, seconds: float) -> None:
        if self._recording is not None and self._out is not None and self._status.is_due:
            recording = self._recording
            self._status.show(
                f"{short_duration(seconds)}: {recording.records:,} records, {recording.pods:,} pods, "
                f"{recording.running_pods:,} on nodes, {self._out.size / 1e6:,.1f} MB"
            )

    def close(self) -> None:
        self._status.clear()
        if self._out is not None:
            try:
                self._out.close()
            except TraceError as error:
                log.warning("%s", error)

    def finish(self) -> None:
        """Work out the lifetimes."""
        if self._recording is None:
            raise CommandError(ExitCode.UNREACHABLE, "nothing was recorded: the API server did not answer")
        say(f"{self._recording.records:,} records, {self._recording.pods:,} pods; working out lifetimes ...")
        finish(self._output)
        say(f"{self._output}: complete; `pilotage trace info {self._output}` shows what is in it")
