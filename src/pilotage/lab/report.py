"""One page about one run or several: pictures, and the numbers behind each. It needs nothing but itself.

The page has no script and loads nothing; its policy for content allows its own style sheet alone.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from pilotage.escaping import visible
from pilotage.lab.comparison import Cell, Comparison, Group
from pilotage.lab.divergence import Divergence
from pilotage.lab.figures import Figure, figures
from pilotage.lab.results import ResultError
from pilotage.lab.significance import TEST
from pilotage.pictures import STYLE, amount, duration, percent

if TYPE_CHECKING:
    from jinja2 import Environment

_MOST_GROUPS: Final = 6
REPORT_STYLE: Final = (
    STYLE
    + """
.report { overflow-wrap: anywhere; } .report h3 { font-size: 14px; margin: 4px 0; } .report p { margin: 4px 0; }
.hint { color: var(--soft); font-size: 13px; } svg.picture { width: 100%; height: auto; min-width: 0; }
.runs-beside { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(440px, 100%), 1fr)); gap: 12px 32px; }
.runs-beside > section { min-width: 0; max-width: 900px; } .report .wide { overflow-x: auto; }
.report table { width: auto; border-collapse: collapse; font-size: 13px; overflow-wrap: normal; }
.report :is(th, td) { text-align: left; padding: 2px 14px 2px 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
.report :is(td + td, th + th) { text-align: right; font-variant-numeric: tabular-nums; }
.report .pods :is(td, th) { text-align: left; } .report td.clear { font-weight: 700; }
.report summary { cursor: pointer; color: var(--soft); }
@media print { .report :is(h2, section) { break-inside: avoid; } .report details:not([open]) { display: none; } }
"""
)
"""Of what stands inside `<main class="report">`."""
_PAGE_STYLE: Final = (
    REPORT_STYLE
    + """
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 8px 20px 40px; max-width: 1400px; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; } h2 { font-size: 17px; margin: 28px 0 4px; }
@media print { :root { --text: #000; --soft: #444; --line: #bbb; --back: #fff; } }
"""
)


def write_report(
    path: Path, comparison: Comparison, divergences: Sequence[tuple[str, Divergence]] = (), *, title: str = ""
) -> None:
    """Write the page; ResultError if it cannot be written."""
    try:
        path.write_text(report(comparison, divergences, title=title), encoding="utf-8")
    except OSError as error:
        raise ResultError(f"{path}: cannot be written: {error.strerror or error}") from error


def report(comparison: Comparison, divergences: Sequence[tuple[str, Divergence]] = (), *, title: str = "") -> str:
    """The page."""
    values = {
        "title": title or report_title(comparison),
        "policy": f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_PAGE_STYLE.encode()).digest()).decode()}'",
        "style": Markup(_PAGE_STYLE),
        "body": report_body(comparison, divergences),
    }
    return _environment().get_template("report.html").render(values)


def report_title(comparison: Comparison) -> str:
    return " and ".join(group.name for group in comparison.groups[:_MOST_GROUPS])


def report_body(comparison: Comparison, divergences: Sequence[tuple[str, Divergence]] = ()) -> Markup:
    """All below the title, for a page that has `REPORT_STYLE`.

    Of each group, the first run is drawn, and of more than six groups the first six.
    """
    drawn = comparison.groups[:_MOST_GROUPS]
    pictures = [figures(group.results[0]) for group in drawn]
    values = {
        "comparison": comparison,
        "facts": [(group.name, facts(group)) for group in comparison.groups],
        "reasons": [(group.name, group.results[0].totals["reasons"]) for group in drawn],
        "sections": _sections([group.name for group in drawn], pictures),
        "divergences": divergences,
        "left_out": len(comparison.groups) - len(drawn),
        "test": TEST,
    }
    return Markup(_environment().get_template("report_body.html").render(values))


def _sections(
    names: Sequence[str], drawn: Sequence[dict[str, Figure]]
) -> list[tuple[str, str, list[tuple[str, Figure | None]]]]:
    """For each kind of picture that a run has: title, hint and what each run has of it."""
    found = []
    for kind in dict.fromkeys(kind for one in drawn for kind in one):
        first = next(one[kind] for one in drawn if kind in one)
        figures_of_kind = [(name, one.get(kind)) for name, one in zip(names, drawn, strict=True)]
        title = first.title if len(drawn) == 1 else first.title.partition(" by ")[0]
        found.append((title, first.hint, figures_of_kind))
    return found


def facts(group: Group) -> list[tuple[str, str]]:
    """What a group of runs was made from."""
    totals: dict[str, Any] = group.results[0].totals
    return [
        ("trace", totals["trace"]["source"] or totals["trace"]["sha256"][:12]),
        ("length", duration(totals["seconds"])),
        ("seeds", ", ".join(map(str, group.seeds))),
        ("ties", totals["ties"]),
        ("complete", "yes" if all(result.totals["complete"] for result in group.results) else "no"),
        ("gaps", duration(totals["gapSeconds"])),
    ]


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("pilotage.lab"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.globals["value"] = shown_value
    environment.globals["difference"] = shown_difference
    environment.globals["p"] = shown_p
    environment.globals["placed"] = _placed
    environment.filters["duration"] = duration
    return environment


def _visible(value: object) -> object:
    """Text of objects never reorders or breaks what stands beside it."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


# --- cells ------------------------------------------------------------------------------------------------------------


def shown_value(measure: str, cell: Cell | None) -> str:
    """The mean, and the standard deviation if there are several runs."""
    if cell is None:
        return "-"
    around = f" ± {_number(measure, cell.deviation)}" if cell.deviation else ""
    return f"{_number(measure, cell.mean)}{around}"


def shown_difference(measure: str, cell: Cell | None) -> str:
    """To the first group, with the part of it that this is."""
    if cell is None or cell.difference is None:
        return "-"
    if abs(cell.difference) <= 1e-12:
        return "0"
    sign, before = "+" if cell.difference > 0 else "-", cell.mean - cell.difference
    if _is_share(measure):
        return f"{sign}{100 * abs(cell.difference):.1f} points"
    part = f" ({cell.difference / abs(before):+.1%})" if before else ""
    return f"{sign}{_number(measure, abs(cell.difference))}{part}"


def shown_p(cell: Cell | None) -> str:
    return "-" if cell is None or cell.p is None else f"{cell.p:.3f}"


def _number(measure: str, value: float) -> str:
    if measure.startswith("wait "):
        return duration(value)
    if _is_share(measure):
        return percent(value)
    return f"{value:.3f}" if measure == "fairness" else amount(value)


def _is_share(measure: str) -> bool:
    return measure.startswith(("used_", "stranded_"))


def _placed(bound: float | None, node: str | None) -> str:
    return "never" if bound is None else f"{node} at {duration(bound)}"
