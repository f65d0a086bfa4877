"""Simulations in the browser: the results below one folder, alone or compared, and pages that were written of them.

A result is drawn when it is opened, as `pilotage compare --report` draws it. A page that lies there is anybody's HTML:
it is shown in a sandbox of its own, in which nothing runs and nothing is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from pilotage.console.source import ConsoleSource
from pilotage.console.view import CSS, HEADERS, HTML, PageView
from pilotage.serve.console_door import CONSOLE, Sight
from pilotage.serve.page import PageAnswer, PageRequest, error_answer

WRITTEN: Final = f"{CONSOLE}/reports/written"
STYLE_SHEET: Final = "report.css"
_TOTALS: Final = "totals.json"
_DECISIONS: Final = "decisions.jsonl"
_MOST_FOLDERS: Final = 5_000
_MOST_ROWS: Final = 500
_MOST_RUNS: Final = 60
_MOST_DIVERGENCES: Final = 3
_MOST_BYTES: Final = 64 * 2**20
"""Of decisions or of a page: a browser should not wait for more."""
_RULES: Final = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
_HEADERS: Final = (("Content-Security-Policy", _RULES), ("Referrer-Policy", "no-referrer"))


class _Trace(Struct, frozen=True):
    sha256: str
    source: str = ""


class _Pods(Struct, frozen=True):
    pods: int
    bound: int


class RunTotals(Struct, frozen=True):
    """What the list says of a result."""

    trace: _Trace
    seconds: float
    seed: int
    complete: bool
    pods: _Pods
    waited: dict[str, float]


class RunRow(Struct, frozen=True):
    """A result, as a line of the list."""

    name: str
    totals: RunTotals | None
    problem: str = ""
    """Why it cannot be opened."""


class ReportFolder:
    """What lies below a folder. Names are paths within it; nothing outside can be named."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def results(self) -> list[str]:
        return sorted(name for name, is_result in self._found() if is_result)

    def written(self) -> list[str]:
        """Pages."""
        return sorted(name for name, is_result in self._found() if not is_result)

    def _found(self) -> Iterator[tuple[str, bool]]:
        for folder, below, files in islice(os.walk(self.folder), _MOST_FOLDERS):
            here = Path(folder).relative_to(self.folder)
            below[:] = sorted(name for name in below if not name.startswith("."))
            if _TOTALS in files:
                below.clear()
                yield str(here), True
            yield from ((str(here / name), False) for name in files if name.endswith((".html", ".htm")))


def reports_page(source: ConsoleSource, sight: Sight, request: PageRequest) -> PageView:
    """The list; or the results that `run` names, each once."""
    folder = _folder(source)
    if folder is None or sight != Sight():
        note = "No reports are shown here: pilotage console --reports DIR shows the results of simulations below DIR."
        return _note(note, 404)
    chosen = list(dict.fromkeys(request.query.get("run", ())))
    if chosen:
        return _report(folder, chosen)
    names, written = folder.results(), folder.written()
    values = {
        "runs": [_row(folder, name) for name in names[:_MOST_ROWS]],
        "hidden": max(0, len(names) - _MOST_ROWS),
        "written": written[:_MOST_ROWS],
        "hidden_pages": max(0, len(written) - _MOST_ROWS),
        "folder": str(folder.folder),
    }
    return PageView("Reports", {"reports": ("reports.html", values)}, is_live=False)


def written_page(source: ConsoleSource, sight: Sight, request: PageRequest) -> PageAnswer:
    """A page that lies in the folder, as it is."""
    folder, name = _folder(source), request.first("page")
    if folder is None or sight != Sight() or name not in folder.written():
        return error_answer(404, "NotFound", "no such report")
    path = folder.folder / name
    try:
        if path.stat().st_size > _MOST_BYTES:
            return error_answer(413, "TooLarge", f"{name} is too large to be shown here: open the file itself")
        return PageAnswer(200, path.read_bytes(), HTML, _HEADERS)
    except OSError as error:
        return error_answer(404, "NotFound", f"{name} cannot be read: {error.strerror or error}")


def style_sheet() -> PageAnswer:
    from pilotage.lab.report import REPORT_STYLE

    return PageAnswer(200, REPORT_STYLE.encode(), CSS, HEADERS)


def _folder(source: ConsoleSource) -> ReportFolder | None:
    return None if source.reports is None else ReportFolder(source.reports)


def _row(folder: ReportFolder, name: str) -> RunRow:
    # With the first report: the laboratory is nothing that a scheduler needs.
    from pilotage.lab.results import Result, ResultError

    try:
        return RunRow(name, msgspec.convert(Result(folder.folder / name).totals, RunTotals))
    except (ResultError, msgspec.ValidationError) as error:
        return RunRow(name, None, str(error))


def _report(folder: ReportFolder, chosen: list[str]) -> PageView:
    from pilotage.lab.comparison import compare, grouped
    from pilotage.lab.divergence import divergence
    from pilotage.lab.report import report_body, report_title
    from pilotage.lab.results import Result, ResultError

    unknown = sorted(set(chosen) - set(folder.results()))
    if unknown:
        return _note(f"There is no result {unknown[0]} in {folder.folder}.", 404)
    size = sum(_size(folder.folder / name / _DECISIONS) for name in chosen)
    if len(chosen) > _MOST_RUNS or size > _MOST_BYTES:
        return _note("That is too much for one page here: pilotage compare --report F writes it to a file.", 413)
    try:
        comparison = compare(grouped([Result(folder.folder / name) for name in chosen]))
        first, *others = [(group.name, group.results[0]) for group in comparison.groups]
        parted = [(f"{first[0]}, {name}", divergence(first[1], other)) for name, other in others[:_MOST_DIVERGENCES]]
        body = report_body(comparison, parted)
    except ResultError as error:
        return _note(str(error), 422)
    except (OSError, KeyError, ValueError, TypeError) as error:
        return _note(f"This result is damaged: {type(error).__name__}: {error}", 422)
    regions = {"report": ("report.html", {"body": body})}
    return PageView(report_title(comparison), regions, is_live=False, style_sheet=STYLE_SHEET)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _note(text: str, status: int) -> PageView:
    return PageView("Reports", {"reports": ("note.html", {"note": text})}, status=status, is_live=False)
