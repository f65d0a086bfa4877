"""A page and its live parts: templates that escape by default, and answers that say what has changed.

A page is made of regions. The browser asks for those that have changed since it last looked by server-sent events
that end after each answer (`retry` says when to ask again): whoever looks away costs nothing, and nothing is kept for
anybody. A page that is costly to make is asked for less often. `Last-Event-ID` has a short hash of each region that the
browser has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from hashlib import blake2s
from typing import TYPE_CHECKING, Any, Final

import msgspec
from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from pilotage.escaping import visible
from pilotage.pictures import amount, duration
from pilotage.serve.page import PageAnswer

if TYPE_CHECKING:
    from jinja2 import Environment

LOOK_AGAIN_MILLISECONDS: Final = 2000
_MOST_MILLISECONDS: Final = 60_000
_SHARE: Final = 0.01
"""Of the time of the scheduler that one viewer takes at most: what was costly to make is made less often."""
HTML: Final = "text/html; charset=utf-8"
CSS: Final = "text/css; charset=utf-8"
_EVENTS: Final = "text/event-stream"
_MOST_HASHES: Final = 32
_RULES: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = (
    ("Content-Security-Policy", _RULES),
    ("Referrer-Policy", "no-referrer"),
    ("X-Frame-Options", "DENY"),
)


class PageView(Struct, frozen=True):
    """What a page shows: `regions` by name, each a template with what stands in it."""

    title: str
    regions: Mapping[str, tuple[str, Mapping[str, Any]]]
    controls: tuple[str, Mapping[str, Any]] | None = None
    """A form that is not live: what is typed into it must stay."""
    controls_above: str = ""
    """The region above which it stands; by default, above all."""
    halves: frozenset[str] = frozenset()
    """Regions that stand side by side where there is room."""
    status: int = 200
    is_live: bool = True
    """Whether it changes by itself; otherwise it is as it was when it was opened."""
    style_sheet: str = ""
    """One more, by name."""


@cache
def _environment() -> Environment:
    # With the first page: whoever never looks does without.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("pilotage.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.filters["amount"] = amount
    environment.filters["duration"] = duration
    return environment


def _visible(value: object) -> object:
    """Text of objects never reorders or breaks what stands beside it."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def render(template: str, values: Mapping[str, Any]) -> Markup:
    return Markup(_environment().get_template(template).render(values))


class SchedulerState(Struct, frozen=True):
    """How the scheduler is, in the corner of every page."""

    text: str
    is_away: bool = False
    """What is shown is old."""
    decides: bool = True
    started: float = 0.0
    """Another value than before: the scheduler was restarted, or another one answers."""
    again_milliseconds: int = LOOK_AGAIN_MILLISECONDS
    """When the browser asks again."""


def page(view: PageView, around: Mapping[str, Any]) -> PageAnswer:
    """The whole page; `around` is what the layout needs: navigation and state of the scheduler."""
    regions = {name: render(*region) for name, region in view.regions.items()}
    controls = None if view.controls is None else render(*view.controls)
    known = _event_id({name: _hash(html) for name, html in regions.items()})
    body = render(
        "layout.html",
        {
            **around,
            "title": view.title,
            "regions": regions,
            "controls": controls,
            "controls_above": view.controls_above or next(iter(regions), ""),
            "known": known,
            "halves": view.halves,
            "is_live": view.is_live,
            "style_sheet": view.style_sheet,
        },
    )
    return PageAnswer(view.status, str(body).encode(), HTML, HEADERS)


def events(view: PageView, known: str, state: SchedulerState, spent: Callable[[], float]) -> PageAnswer:
    """The regions that are not as the browser has them, and how the scheduler is; `spent` says what that has cost."""
    has = dict(pair.split("=", 1) for pair in known.split(",")[:_MOST_HASHES] if "=" in pair)
    lines, now = [], {}
    for name, region in view.regions.items():
        html = render(*region)
        now[name] = _hash(html)
        if has.get(name) != now[name]:
            lines += [f"event: {name}", *(f"data: {line}" for line in str(html).split("\n")), ""]
    state = replace(state, again_milliseconds=_again_milliseconds(spent()))
    text = msgspec.json.encode(state).decode()
    lines += [f"retry: {state.again_milliseconds}", "event: alive", f"id: {_event_id(now)}", f"data: {text}", "", ""]
    return PageAnswer(200, "\n".join(lines).encode(), _EVENTS, HEADERS)


def _again_milliseconds(spent_seconds: float) -> int:
    wanted = round(spent_seconds * 1000 / _SHARE)
    return min(max(LOOK_AGAIN_MILLISECONDS, wanted), _MOST_MILLISECONDS)


def _hash(html: Markup) -> str:
    return blake2s(html.encode(), digest_size=6).hexdigest()


def _event_id(hashes: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in hashes.items())
