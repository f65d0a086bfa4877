"""What goes wrong in plugins and in putting profiles together."""

from __future__ import annotations

from typing import Final

_LONGEST_ANSWER: Final = 200


class PluginError(Exception):
    """A plugin raised, or answered what it must not: the pod is retried, the process lives."""

    def __init__(self, plugin: str, point: str, message: str) -> None:
        super().__init__(message)
        self.plugin = plugin
        self.point = point


class ProfileError(ValueError):
    """A profile that cannot be built; the text names profile and plugin and the way out."""


def error_text(error: BaseException) -> str:
    """What an exception says, after its type; those of our own plugins say all that is to be said."""
    if type(error).__module__.startswith("pilotage."):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def shown(answer: object) -> str:
    """An answer that was not expected, for messages: short, whatever its author wrote into `__repr__`."""
    try:
        text = repr(answer)
    except Exception:
        text = f"a {type(answer).__name__}"
    return text if len(text) <= _LONGEST_ANSWER else f"{text[:_LONGEST_ANSWER]}..."
