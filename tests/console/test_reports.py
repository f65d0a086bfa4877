"""Results of simulations in the console: listed, drawn, compared; nothing outside of their folder is opened."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pilotage.serve.console_door import Sight
from pilotage.serve.page import PageRequest
from tests.lab.test_simulation import busy_day
from tests.lab.worlds import played

from .looked_at import LookedAt, looked_at
from .test_site import checked

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    below = tmp_path_factory.mktemp("results")
    for seed in range(2):
        run = played(tmp_path_factory.mktemp("run"), *busy_day(20), every=5.0, ties="random", seed=seed).directory
        shutil.copytree(run, below / "monday" / f"day-{seed}.result")
        shutil.copytree(run, below / f"{EVIL}-{seed}")
    (below / "broken").mkdir()
    (below / "broken" / "totals.json").write_text('{"pilotageResult": 1}')
    (below / "newer").mkdir()
    (below / "newer" / "totals.json").write_text('{"pilotageResult": 99}')
    cut = below / "cut"
    shutil.copytree(below / "monday" / "day-0.result", cut)
    (cut / "decisions.jsonl").write_bytes((cut / "decisions.jsonl").read_bytes()[:-20])
    (below / "page.html").write_text("<h1>Written</h1><script>document.title='owned'</script>")
    return below


def ask(seen: LookedAt, path: str, sight: Sight = Sight(), **query: list[str]) -> tuple[int, str, dict[str, str]]:  # noqa: B008
    answer = seen.console.answer(PageRequest(f"/console/{path}", query=query), sight)
    return answer.status, answer.body.decode(), dict(answer.headers)


async def test_the_list_has_every_result_and_says_which_cannot_be_opened(folder: Path) -> None:
    async with looked_at() as seen:
        seen.source.reports = folder
        status, page, _ = ask(seen, "reports")
        assert status == 200 and "monday/day-0.result" in checked(page) and "page.html" in page
        assert "Object missing required field" in page and "is of version 99" in page
        assert EVIL not in page and "&lt;img src=x onerror=alert(1)&gt;-0" in page
        assert "data-live" not in page and 'aria-current="page">Reports' in page


async def test_a_result_is_drawn_and_several_are_compared(folder: Path) -> None:
    async with looked_at() as seen:
        seen.source.reports = folder
        _, one, _ = ask(seen, "reports", run=["monday/day-0.result"])
        assert "<h1>day-0</h1>" in checked(one) and "Utilisation" in one and "Pod by pod" not in one
        assert "static/report.css" in one and ask(seen, "static/report.css")[0] == 200
        _, two, _ = ask(seen, "reports", run=["monday/day-0.result", f"{EVIL}-1"])
        assert "(n=2)" in checked(two), "they differ in their seed alone"


async def test_what_cannot_be_drawn_says_why(folder: Path) -> None:
    async with looked_at() as seen:
        seen.source.reports = folder
        cases = [
            (["nothing"], 404, "There is no result nothing"),
            (["../results/monday/day-0.result"], 404, "There is no result ../"),
            (["broken"], 422, "This result is damaged"),
            (["newer"], 422, "is of version 99"),
            (["cut"], 422, "This result is damaged"),
            (["monday/day-0.result", f"{EVIL}-0"], 422, "the same run is given twice"),
        ]
        for runs, expected, text in cases:
            status, page, _ = ask(seen, "reports", run=runs)
            assert (status, text in checked(page)) == (expected, True), (runs, status, page)


async def test_a_written_page_is_shown_where_nothing_runs_and_nothing_else_is(folder: Path) -> None:
    async with looked_at() as seen:
        seen.source.reports = folder
        status, page, headers = ask(seen, "reports/written", page=["page.html"])
        assert status == 200 and "<h1>Written</h1>" in page
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("sandbox; default-src 'none'") and "script" not in policy
        for name in ("../page.html", "/etc/passwd", "monday/day-0.result/totals.json", ""):
            assert ask(seen, "reports/written", page=[name])[0] == 404, name


async def test_reports_are_for_whoever_sees_everything_and_only_where_there_is_a_folder(folder: Path) -> None:
    async with looked_at() as seen:
        assert "Reports</a>" not in seen.text()
        status, page, _ = ask(seen, "reports")
        assert status == 404 and "pilotage console --reports DIR" in checked(page)
        seen.source.reports = folder
        assert "Reports</a>" in seen.text()
        for sight in (Sight(frozenset({"default"})), Sight(None, nodes=False)):
            assert ask(seen, "reports", sight)[0] == 404
            assert ask(seen, "reports/written", sight, page=["page.html"])[0] == 404


async def test_damage_of_every_kind_is_said_and_breaks_nothing(folder: Path, tmp_path: Path) -> None:
    whole = folder / "monday" / "day-0.result"
    totals = json.loads((whole / "totals.json").read_text())
    for at, damaged in enumerate([[], "text", 7, {**totals, "trace": None}, {**totals, "seconds": "long"}]):
        copy = tmp_path / str(at)
        shutil.copytree(whole, copy)
        (copy / "totals.json").write_text(json.dumps(damaged))
    (tmp_path / "no-file").mkdir()
    (tmp_path / "no-file" / "totals.json").write_text(json.dumps(totals))
    async with looked_at() as seen:
        seen.source.reports = tmp_path
        assert ask(seen, "reports")[0] == 200
        for name in [*"01234", "no-file"]:
            status, page, _ = ask(seen, "reports", run=[name])
            assert status == 422 and "<h1>Reports</h1>" in checked(page), name
