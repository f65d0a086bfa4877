"""`--scheduler URL`: ask a running scheduler itself (`pilotage run` serves its pages on port 10259).

The identity is that of the kubeconfig. It is shown only to a server whose certificate was checked (or need not be, by
the user's own word), and never over plain HTTP.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from pilotage.cli.errors import bad_input
from pilotage.clock import Clock
from pilotage.kube.connection import Connection
from pilotage.kube.credentials import StaticCredentials
from pilotage.kube.errors import KubeconfigError
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.proxy import Proxies
from pilotage.kube.secrets import without_user_part
from pilotage.kube.source import Inline
from pilotage.kube.tls import TlsSettings

QUEUE_PAGE = "/debug/queue"
EXPLAIN_PAGE = "/debug/explain"
TIMELINE_PAGE = "/debug/timeline"
SANDBOX_QUEUE = "/pilotage/v1/queue"
"""At the API server of an embedded cluster, which serves the pages of its own scheduler."""
SANDBOX_TIMELINE = "/pilotage/v1/timeline"


@dataclass(frozen=True, slots=True)
class SchedulerAddress:
    """Where the scheduler is and how to check that it is the one."""

    url: str = ""
    authority_file: str = ""
    is_insecure: bool = False

    def __bool__(self) -> bool:
        return bool(self.url)

    def connection(self, kubeconfig: str | None, context_name: str | None, clock: Clock) -> Connection:
        """CommandError if the options do not fit together."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise bad_input(f"--scheduler {without_user_part(self.url)}: write it as https://HOST:10259")
        server, proxies = self.url.rstrip("/"), Proxies(environ=os.environ)
        try:
            if parts.scheme == "http":
                return Connection(server, TlsSettings(), StaticCredentials(), "--scheduler", proxies=proxies)
            credentials = load_connection(kubeconfig, context_name, clock=clock).credentials
            return Connection(server, self._tls(), credentials, "--scheduler", proxies=proxies)
        except KubeconfigError as error:
            raise bad_input(str(error)) from error

    def _tls(self) -> TlsSettings:
        if self.is_insecure:
            return TlsSettings(is_insecure=True)
        if not self.authority_file:
            return TlsSettings()
        try:
            return TlsSettings(authority=Inline(Path(self.authority_file).read_bytes()))
        except OSError as error:
            raise bad_input(
                f"--scheduler-ca {self.authority_file}: {(error.strerror or str(error)).lower()}"
            ) from error


def scheduler_address(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command gets them as one `address`."""

    @click.option("--scheduler", default="", metavar="URL", help="Ask this scheduler, e.g. https://localhost:10259.")
    @click.option("--scheduler-ca", default="", metavar="F", help="Authority that signed its certificate.")
    @click.option("--insecure-skip-tls-verify", is_flag=True, help="Do not check the scheduler's certificate.")
    @functools.wraps(command)
    def with_address(scheduler: str, scheduler_ca: str, insecure_skip_tls_verify: bool, **others: Any) -> Any:
        return command(address=SchedulerAddress(scheduler, scheduler_ca, insecure_skip_tls_verify), **others)

    return with_address
