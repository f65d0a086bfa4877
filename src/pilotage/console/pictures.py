"""Pictures as SVG: lines over time, and shares of a whole. Colours come from the style sheet by class."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from markupsafe import Markup, escape

from pilotage.pictures import amount, duration

_WIDTH, _HEIGHT = 640, 160
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 4, 8, 20
_UNITS = (86400.0, 3600.0, 60.0)
_STEPS = (1, 2, 4, 6, 10)
"""Halves of them read well too."""
_MOST_LISTED = 8
"""Parts of a bar that are read aloud."""


def lines(
    label: str,
    times: Sequence[float],
    series: Mapping[str, Sequence[float | None]],
    form: Callable[[float], str] = amount,
) -> Markup:
    """Values over time, one line per name, with a gap where there is None; the scale begins at 0.

    What `charts.js` needs to say the values below the mouse stands beside them.
    """
    if len(times) < 2:
        return Markup("<p class=hint>{}</p>").format("Two samples are needed for a picture: look again in ten seconds.")
    most = {name: max((value for value in values if value is not None), default=0.0) for name, values in series.items()}
    top, span = _round_top(max(most.values(), default=0.0), form), (times[-1] - times[0]) or 1.0
    base = _HEIGHT - _BOTTOM

    def at(time: float, value: float) -> tuple[str, str]:
        x = _LEFT + (time - times[0]) / span * (_WIDTH - _LEFT - _RIGHT)
        return f"{x:.1f}", f"{_TOP + (1 - value / top) * (base - _TOP):.1f}"

    def now(values: Sequence[float | None]) -> str:
        return "-" if values[-1] is None else form(values[-1])

    drawn = Markup("").join(
        Markup('<polyline class="line s{}{}" data-name="{}" points="{}"><title>{}</title></polyline>').format(
            number % 6, "" if " " in points else " dot", name, points if " " in points else f"{points} {points}", name
        )
        for number, (name, values) in enumerate(series.items())
        for points in _pieces(times, values, at)
    )
    legend = Markup("").join(
        Markup(
            '<li data-name="{}"><svg class=key viewBox="0 0 10 10" aria-hidden=true>'
            '<rect class="s{}" width=10 height=10 /></svg>'
        ).format(name, number % 6)
        + Markup("{} <b>{}</b>, most {}</li>").format(name, now(values), form(most[name]))
        for number, (name, values) in enumerate(series.items())
    )
    summary = "; ".join(f"{name}: now {now(values)}, most {form(most[name])}" for name, values in series.items())
    return Markup(
        '<figure class=chart data-top="{top}" data-form="{form}" data-begin="{begin}" data-end="{end}">'
        '<svg viewBox="0 0 {w} {h}" role=img aria-label="{label}: {summary}">{grid}{ticks}{drawn}</svg>'
        "<ul class=legend>{legend}<li class=when hidden></li></ul></figure>"
    ).format(
        top=top, form="duration" if form is duration else "amount", begin=times[0], end=times[-1], w=_WIDTH, h=_HEIGHT,
        label=label, summary=summary, grid=_grid(top, form), ticks=_ticks(span), drawn=drawn, legend=legend,
    )  # fmt: skip


def _round_top(most: float, form: Callable[[float], str]) -> float:
    """Where the scale ends: the next number that people count in."""
    if most <= 0:
        return 1.0
    unit = next((one for one in _UNITS if form is duration and most >= 2 * one), 1.0)
    power = 10.0 ** math.floor(math.log10(most / unit))
    return unit * next(step * power for step in _STEPS if step * power >= most / unit * (1 - 1e-9))


def _grid(top: float, form: Callable[[float], str]) -> Markup:
    base = _HEIGHT - _BOTTOM
    return Markup("").join(
        Markup(
            '<line class=axis x1={left} x2={w} y1="{y}" y2="{y}" />'
            '<text class="tick end" x={at} y="{y}" dy=4>{n}</text>'
        ).format(left=_LEFT, w=_WIDTH, y=f"{base - share * (base - _TOP):g}", at=_LEFT - 6, n=form(share * top))
        for share in (0.0, 0.5, 1.0)
    )


def _ticks(span: float) -> Markup:
    """How long ago: at the begin, after a third, after two thirds; and now."""
    texts = []
    for part, css in enumerate(("", " middle", " middle")):
        ago = duration(float(round(span * (3 - part) / 3)))
        texts.append((_LEFT + (_WIDTH - _LEFT - _RIGHT) * part / 3, css, f"{ago} ago"))
    return Markup("").join(
        Markup('<text class="tick{}" x="{:g}" y={} dy=-3>{}</text>').format(css, x, _HEIGHT, text)
        for x, css, text in [*texts, (float(_WIDTH), " end", "now")]
    )


def _pieces(
    times: Sequence[float], values: Sequence[float | None], at: Callable[[float, float], tuple[str, str]]
) -> Iterator[str]:
    """The points of each unbroken piece of a line; of those that stand at one height, only the first and the last."""
    known = zip(times, values, strict=True)
    for is_there, piece in groupby(known, key=lambda one: one[1] is not None):
        if not is_there:
            continue
        points = [at(time, value) for time, value in piece if value is not None]
        level = [[*same] for _, same in groupby(points, key=lambda point: point[1])]
        yield " ".join(f"{x},{y}" for same in level for x, y in (same[:1] if len(same) == 1 else (same[0], same[-1])))


def bar(
    label: str,
    whole: float,
    parts: Sequence[tuple[str, str, float]],
    form: Callable[[float], str] = amount,
    css: str = "",
) -> Markup:
    """Parts of a whole side by side: (name, class, amount). What is beyond the whole makes the bar longer."""
    total = max(whole, sum(size for _, _, size in parts)) or 1.0
    drawn, x = [], 0.0
    for name, kind, size in parts:
        if size <= 0:
            continue
        width = size / total * 100
        drawn.append(
            Markup('<rect class="{}" x="{}" y=0 width="{}" height=10><title>{}: {}</title></rect>').format(
                kind, f"{x:.2f}", f"{width:.2f}", name, form(size)
            )
        )
        x += width
    mark = Markup("")
    if 0 < whole < total:
        mark = Markup('<line class=limit x1="{0}" x2="{0}" y1=0 y2=10 />').format(f"{whole / total * 100:.2f}")
    shown = [f"{name} {form(size)}" for name, _, size in parts if size > 0]
    more = f" and {len(shown) - _MOST_LISTED} more" if len(shown) > _MOST_LISTED else ""
    listed = ", ".join(shown[:_MOST_LISTED]) + more
    return Markup(
        '<svg class="bar {}" viewBox="0 0 100 10" preserveAspectRatio=none role=img '
        'aria-label="{}: {} of {}">{}{}</svg>'
    ).format(css, label, listed or "nothing", form(whole), Markup("").join(drawn), mark)


def lanes(label: str, rows: Sequence[tuple[str, Sequence[tuple[float, str, str]]]]) -> Markup:
    """What happened when, a lane per kind: (time, class, title). The same moments stand below each other."""
    moments = [time for _, marks in rows for time, _, _ in marks]
    if not moments:
        return Markup("")
    begin, span = min(moments), (max(moments) - min(moments)) or 1.0
    height = 26 * len(rows) + 18
    drawn = []
    for number, (name, marks) in enumerate(rows):
        y = 13 + 26 * number
        drawn.append(Markup("<text class=lane x=0 y={}>{}</text>").format(y + 4, name))
        drawn.append(Markup("<line class=axis x1=110 x2=640 y1={0} y2={0} />").format(y))
        for time, css, title in marks:
            x = 116 + (time - begin) / span * 516
            drawn.append(
                Markup('<circle class="{}" cx="{}" cy={} r=5><title>{}</title></circle>').format(
                    css, f"{x:.1f}", y, title
                )
            )
    return Markup(
        '<svg class=lanes viewBox="0 0 640 {h}" role=img aria-label="{label}">{drawn}'
        "<text class=tick x=110 y={h} dy=-3>0 s</text>"
        '<text class="tick end" x=640 y={h} dy=-3>{span}</text></svg>'
    ).format(h=height, label=label, drawn=Markup("").join(drawn), span=duration(span))


def quantile(before: Sequence[tuple[float, int]], now: Sequence[tuple[float, int]], share: float) -> float | None:
    """Of what was counted between two cumulative distributions; None if nothing was."""
    old = dict(before)
    counts = [(bound, count - old.get(bound, 0)) for bound, count in now]
    total = counts[-1][1] if counts else 0
    if total <= 0:
        return None
    wanted = share * total
    lower, below = 0.0, 0
    for bound, count in counts:
        if count >= wanted:
            if bound == float("inf"):
                return lower
            return lower + (bound - lower) * ((wanted - below) / ((count - below) or 1))
        lower, below = bound, count
    return lower


def rates(times: Sequence[float], totals: Sequence[float]) -> list[float]:
    """How much a total grew per second; as many values as totals."""
    steps = [
        max(0.0, after - before) / ((later - earlier) or 1.0)
        for (earlier, later), (before, after) in zip(pairwise(times), pairwise(totals), strict=True)
    ]
    return [steps[0] if steps else 0.0, *steps]


def shown(text: str) -> Markup:
    return Markup(escape(text))
