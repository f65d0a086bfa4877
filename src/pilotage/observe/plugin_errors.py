"""Errors of plugins: each counted, each kind logged once with its traceback.

A plugin that fails for every pod would otherwise fill the log with the same traceback; what it did to a pod is in the
pod's Event, and how often it fails in the metric.
"""

from __future__ import annotations

import logging
from typing import Final

from pilotage.observe.metrics import Metrics

log = logging.getLogger(__name__)

_MOST_KINDS: Final = 1000


class PluginErrors:
    """Records every error of every plugin."""

    def __init__(self, metrics: Metrics) -> None:
        self._total = metrics.plugin_errors_total
        self._logged: set[tuple[str, str, str]] = set()

    def note(self, plugin: str, point: str, error: BaseException, pod: str = "-") -> None:
        """`error` is what the plugin raised, or what was wrong with its answer; `pod` is whom it was asked about."""
        self._total.add(plugin)
        kind = (plugin, point, type(error).__name__)
        if kind in self._logged or len(self._logged) >= _MOST_KINDS:
            return
        self._logged.add(kind)
        log.error(
            "plugin failed, further errors of this kind are only counted: plugin=%s point=%s pod=%s error=%s: %s",
            plugin,
            point,
            pod,
            type(error).__name__,
            error,
            exc_info=error,
        )
