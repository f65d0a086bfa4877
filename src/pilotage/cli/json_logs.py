"""Log lines as JSON objects, with the keys that Kubernetes components use: `ts` (milliseconds), `caller`, `msg`, `v`,
`err`.

Our messages are sentences with `name=value` pairs at their end; these become keys of their own, so that a log store
can be asked for `pod="default/a"`. They are found in the template of the message, not in its text: a value may contain
anything.
"""

from __future__ import annotations

import json
import logging
import re
from functools import lru_cache
from typing import Any, Final

from pilotage.escaping import visible_json
from pilotage.observe.verbosity import verbosity_of

_PLACE: Final = re.compile(r"%[-#0 +]*\d*(?:\.\d+)?[a-zA-Z]")
_PAIRS: Final = re.compile(rf"(?:^|\s+)(\w+=(?:{_PLACE.pattern})(?:\s+\w+=(?:{_PLACE.pattern}))*)$")
_RESERVED: Final = frozenset({"ts", "caller", "msg", "v", "err", "level", "logger"})


class JsonLines(logging.Formatter):
    """One object per record."""

    def format(self, record: logging.LogRecord) -> str:
        message, fields = taken_apart(record)
        level = _level_name(record.levelno)
        line: dict[str, Any] = {
            "ts": round(record.created * 1000, 3),
            "level": level,
            "logger": record.name,
            "caller": f"{record.filename}:{record.lineno}",
            "msg": message,
        }
        if level != "error":
            line["v"] = verbosity_of(record.levelno)
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            line["err"] = f"{type(error).__name__}: {error}"
        if record.exc_info and logging.getLogger().isEnabledFor(logging.DEBUG):
            line["stacktrace"] = self.formatException(record.exc_info)
        return visible_json(json.dumps(line | fields, ensure_ascii=False))


def _level_name(level: int) -> str:
    if level < logging.WARNING:
        return "info"
    return "warning" if level < logging.ERROR else "error"


def taken_apart(record: logging.LogRecord) -> tuple[str, dict[str, str]]:
    """The sentence of a record, and the pairs at its end."""
    names, sentence, places = _pairs_of(str(record.msg))
    arguments = record.args
    if not names or not isinstance(arguments, tuple) or len(arguments) < len(names):
        return record.getMessage(), {}
    split = len(arguments) - len(names)
    values = (place % value for place, value in zip(places, arguments[split:], strict=True))
    return sentence % arguments[:split], dict(zip(names, values, strict=True))


@lru_cache(maxsize=512)
def _pairs_of(template: str) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """Names of the pairs at the end of a template, what stands before them, and their conversions."""
    found = _PAIRS.search(template)
    if found is None:
        return (), template, ()
    pairs = [pair.split("=", 1) for pair in found[1].split()]
    names = tuple(f"{name}_" if name in _RESERVED else name for name, _ in pairs)
    return names, template[: found.start()].rstrip(" :"), tuple(place for _, place in pairs)
