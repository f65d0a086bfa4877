"""Pictures as SVG: lines, heat maps and bars over time. They stand in a page or alone, in light and in dark.

Colours come from `STYLE` by class. Names and titles are escaped, and cut where they are longer than a picture is wide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from markupsafe import Markup

from pilotage.escaping import visible

_WIDTH, _HEIGHT = 640, 140
_LEFT, _FOOT, _ROW = 50, 18, 16
_LANE: Final = 190
_LONGEST: Final = 80
_LONGEST_LANE: Final = 28
LEVELS: Final = 10

STYLE: Final = """
:root { color-scheme: light dark; --text: #1d2430; --soft: #5b6573; --line: #d5dae1; --back: #fff;
  --c0: #1f6feb; --c1: #d97706; --c2: #2da44e; --c3: #8250df; --c4: #bf3989; --c5: #6e7781; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e9f0; --soft: #a0acba; --line: #2f3946; --back: #10151c;
  --c0: #58a6ff; --c1: #f0a63a; --c2: #56d364; --c3: #b392f0; --c4: #f778ba; --c5: #9aa6b2; } }
svg.picture { font: 11px system-ui, sans-serif; }
.picture text { fill: var(--soft); } .picture .end { text-anchor: end; }
.picture .axis { stroke: var(--line); } .picture polyline { fill: none; stroke-width: 1.8; }
rect.s0 { fill: var(--c0); } rect.s1 { fill: var(--c1); } rect.s2 { fill: var(--c2); }
rect.s3 { fill: var(--c3); } rect.s4 { fill: var(--c4); } rect.s5 { fill: var(--c5); }
polyline.s0 { stroke: var(--c0); } polyline.s1 { stroke: var(--c1); } polyline.s2 { stroke: var(--c2); }
polyline.s3 { stroke: var(--c3); } polyline.s4 { stroke: var(--c4); } polyline.s5 { stroke: var(--c5); }
.heat { fill: var(--c0); } .waits { fill: var(--c1); } .runs { fill: var(--c2); }
""" + "".join(f".h{level} {{ fill-opacity: {(level + 1) / LEVELS:g}; }}\n" for level in range(LEVELS))  # fmt: skip


class Span(NamedTuple):
    """A piece of a lane."""

    begin: float
    end: float
    css: str
    title: str


def lines(
    label: str,
    xs: Sequence[float],
    series: Mapping[str, Sequence[float]],
    *,
    ends: tuple[str, str],
    form: Callable[[float], str] | None = None,
    notes: Mapping[str, str] | None = None,
) -> Markup:
    """Values along an axis, one line per name; the scale begins at 0. `ends` is what the axis begins and ends with.

    `notes` stand behind the names; by default, the last value and the largest one.
    """
    form = form or amount
    notes = notes or {
        name: f"last {form(values[-1])}, most {form(max(values))}" if len(values) else ""
        for name, values in series.items()
    }
    top = max((max(values) for values in series.values() if len(values)), default=0.0) or 1.0
    base, height = _HEIGHT - _FOOT, _HEIGHT + _ROW * len(series)
    parts = [
        Markup('<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(_LEFT, _WIDTH, base, base),
        _text(_LEFT - 6, 14, form(top), "end"),
        _text(_LEFT - 6, base, "0", "end"),
        _text(_LEFT, _HEIGHT - 4, ends[0]),
        _text(_WIDTH, _HEIGHT - 4, ends[1], "end"),
    ]
    for number, (name, values) in enumerate(series.items()):
        css, y = f"s{number % 6}", _HEIGHT + _ROW * number
        points = _points(xs, values, top, base)
        parts.append(Markup('<polyline class="{}" points="{}"><title>{}</title></polyline>').format(
            css, points, _cut(name)
        ))  # fmt: skip
        parts.append(Markup('<rect class="{}" x="{}" y="{}" width="10" height="10"/>').format(css, _LEFT, y + 2))
        parts.append(_text(_LEFT + 16, y + 11, f"{_cut(name)}   {notes.get(name, '')}"))
    summary = "; ".join(f"{_cut(name)}: {notes.get(name, '')}" for name in series)
    return _svg(f"{label}. {summary}", height, parts)


def _points(xs: Sequence[float], values: Sequence[float], top: float, base: int) -> str:
    if not len(xs):
        return ""
    begin, span = xs[0], (xs[-1] - xs[0]) or 1.0
    scale = (_WIDTH - _LEFT - 4) / span
    return " ".join(
        f"{_LEFT + (x - begin) * scale:.1f},{6 + (1 - value / top) * (base - 6):.1f}"
        for x, value in zip(xs, values, strict=True)
    )


def heat_map(
    label: str, rows: Sequence[tuple[str, Sequence[float]]], *, ends: tuple[str, str], tall: int = 12
) -> Markup:
    """A row per name, a cell per value between 0 and 1: the darker the more. NaN is left out, as 0 is."""
    parts: list[Markup] = []
    for number, (name, values) in enumerate(rows):
        y, width = tall * number, (_WIDTH - _LANE) / max(1, len(values))
        parts.append(_text(_LANE - 6, y + tall - 3, _cut(name, _LONGEST_LANE), "end", name))
        at = 0
        for level, cells in groupby(values, key=_level):
            count = len(list(cells))
            if level is not None:
                parts.append(
                    Markup('<rect class="heat h{}" x="{}" y="{}" width="{}" height="{}"/>').format(
                        level, f"{_LANE + at * width:.1f}", y, f"{count * width:.1f}", tall - 1
                    )
                )
            at += count
    foot = tall * len(rows) + 14
    parts += [_text(_LANE, foot, ends[0]), _text(_WIDTH, foot, ends[1], "end")]
    return _svg(label, foot + 4, parts)


def _level(value: float) -> int | None:
    """Which of the shades; None for nothing, and for what is not known."""
    return min(LEVELS - 1, int(value * LEVELS)) if value > 0 else None


def lanes(
    label: str, rows: Sequence[tuple[str, Sequence[Span]]], *, span: tuple[float, float], ends: tuple[str, str]
) -> Markup:
    """A row per name, with bars from one time to another."""
    begin, scale = span[0], (_WIDTH - _LANE) / ((span[1] - span[0]) or 1.0)
    parts: list[Markup] = []
    for number, (name, pieces) in enumerate(rows):
        y = _ROW * number
        parts.append(_text(_LANE - 6, y + 11, _cut(name, _LONGEST_LANE), "end", name))
        for piece in pieces:
            parts.append(
                Markup('<rect class="{}" x="{}" y="{}" width="{}" height="10"><title>{}</title></rect>').format(
                    piece.css,
                    f"{_LANE + (piece.begin - begin) * scale:.1f}",
                    y + 2,
                    f"{max(0.5, (piece.end - piece.begin) * scale):.1f}",
                    _cut(piece.title),
                )
            )
    foot = _ROW * len(rows) + 14
    parts += [_text(_LANE, foot, ends[0]), _text(_WIDTH, foot, ends[1], "end")]
    return _svg(label, foot + 4, parts)


def standalone(picture: Markup) -> str:
    """A picture as a file of its own."""
    head, _, rest = str(picture).partition(">")
    return f"{head}><style>{STYLE}</style>{rest}"


def _svg(label: str, height: int, parts: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" class="picture" viewBox="0 0 {} {}" role="img" aria-label="{}">'
        "{}</svg>"
    ).format(_WIDTH, height, visible(label), Markup("").join(parts))


def _text(x: float, y: float, text: str, css: str = "", title: str = "") -> Markup:
    more = Markup("<title>{}</title>").format(_cut(title, 300)) if title and title != text else Markup("")
    return Markup('<text class="{}" x="{}" y="{}">{}{}</text>').format(css, x, y, more, visible(text))


def _cut(text: str, longest: int = _LONGEST) -> str:
    text = visible(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def amount(value: float) -> str:
    """A number as people read it: 1,234 or 0.25."""
    if value == int(value) or abs(value) >= 100:
        return f"{round(value):,}"
    return f"{value:.2g}" if abs(value) < 10 else f"{value:.1f}"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def duration(seconds: float | None) -> str:
    """4 d, 2.5 h, 3 min, 5 s, 64 ms, 20 us."""
    if seconds is None:
        return "-"
    for unit, name in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.3g} {name}"
    if seconds >= 0.1 or seconds == 0:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 0.001 else f"{seconds * 1e6:.3g} us"
