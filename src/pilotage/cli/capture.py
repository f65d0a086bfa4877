"""`pilotage capture`: a decision with the cluster around it, to be kept, given away and played again."""

from __future__ import annotations

import json
import logging
import os
import re
from pathlib import Path
from typing import Final

import click

from pilotage.assembly import watched_kinds
from pilotage.cli.cluster_source import ClusterSource, cluster_options
from pilotage.cli.errors import bad_input
from pilotage.cli.logs import is_verbose
from pilotage.cli.options import common_options
from pilotage.cli.output import show
from pilotage.cli.scheduler_flags import SchedulerFlags, scheduler_flags
from pilotage.clock import SystemClock, rfc3339
from pilotage.config.problems import ConfigError
from pilotage.explain.subject import UnknownSubject, find_subject
from pilotage.framework.errors import ProfileError
from pilotage.lab.case import Case, CaseError, CaseFiles, decision_text, is_case
from pilotage.lab.case import capture as capture_case
from pilotage.lab.trace.format import TraceError

_FILE = click.Path(path_type=Path)
_EPILOG: Final = """\b
Examples:
  pilotage capture pod/web-7d4b9 -n shop -o case.tar.gz
  pilotage capture web-7d4b9 -f cluster/ -o case.tar.gz --pytest test_web.py
  pilotage simulate case.tar.gz
"""
_TEST: Final = '''"""{title}"""

from pathlib import Path

from pilotage.library import Decision, replay_case

HERE = Path(__file__).parent


def test_{name}() -> None:
    assert replay_case(HERE / {case}{plugins}) == Decision({decision})
'''


@click.command(epilog=_EPILOG)
@click.argument("subject", metavar="POD")
@cluster_options
@click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the pod.")
@click.option("-o", "--output", required=True, type=_FILE, metavar="F.tar.gz", help="Where the case goes.")
@click.option("--pytest", "test", type=_FILE, metavar="F.py", help="Write a test that asserts the decision, too.")
@scheduler_flags
@common_options
def capture(
    subject: str, source: ClusterSource, namespace: str, output: Path, test: Path | None, flags: SchedulerFlags
) -> None:
    """Keep the cluster around one decision, redacted, so that it can be played again.

    POD is a name, or pod/NAME, deploy/NAME and so on. The case has the nodes, the pods that run and everything else
    that scheduling reads; environment, arguments, commands and annotations that nothing schedules by are not in it.
    What is decided about the pod, as if it came now, is shown. `pilotage simulate` plays the case.
    """
    if not is_case(output):
        raise bad_input(f"-o: {output} is no name of a case: it ends in .tar.gz")
    if not is_verbose():
        logging.getLogger("pilotage").setLevel(logging.ERROR)
    configuration, options = flags.load()
    files = CaseFiles(
        config=flags.config,
        plugin_files=tuple(flags.plugin_paths(configuration)),
        feature_gates=flags.feature_gates,
        start=rfc3339(SystemClock().time()),
    )
    try:
        cluster = source.cluster(watched_kinds(options))
        pod = find_subject(cluster, subject, namespace)
        case = capture_case(cluster, pod, options, files, output)
    except ConfigError as error:
        raise bad_input(error.lines) from error
    except (UnknownSubject, CaseError, TraceError, ProfileError) as error:
        raise bad_input(str(error)) from error
    show(f"{output}: {case.pod}: {decision_text(case.decision)}")
    if case.was_on and case.was_on != case.decision.node:
        show(f"it runs on {case.was_on}: the cluster was another one when that was decided")
    for what in case.left_out:
        show(f"left out: {what}")
    if test is not None:
        _write_test(test, case, output, files.plugin_files)


def _write_test(path: Path, case: Case, archive: Path, plugin_files: tuple[Path, ...]) -> None:
    folder, reason = path.absolute().parent, case.decision.reason
    plugins = [f"HERE / {_literal(os.path.relpath(file.absolute(), folder))}" for file in plugin_files]
    text = _TEST.format(
        title=f"What is decided about {case.pod}.",
        name=re.sub(r"\W", "_", case.pod),
        case=_literal(os.path.relpath(archive.absolute(), folder)),
        plugins=f", [{', '.join(plugins)}]" if plugins else "",
        decision=f"node={_literal(node)}" if (node := case.decision.node) else f"reason={_literal(str(reason))}",
    )
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise bad_input(f"--pytest: {path}: cannot be written: {error.strerror or error}") from error
    show(f"{path}: pytest {path} asserts it")


def _literal(text: str) -> str:
    """As Python has it, in double quotes: JSON's escapes are Python's."""
    return json.dumps(text)
