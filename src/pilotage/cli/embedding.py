"""An embedded cluster for a command: what can go wrong on the way becomes a line and an exit code."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pilotage.cli.errors import bad_input, unreachable
from pilotage.clock import Clock
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions, OutputPathError
from pilotage.sandbox.http.asgi import PortInUse
from pilotage.sandbox.life.node_templates import TemplateError
from pilotage.sandbox.life.pod_rules import PodRulesError
from pilotage.sandbox.manifests import ManifestError
from pilotage.sandbox.storage.data_dir import DataDirError
from pilotage.sandbox.storage.journal import JournalError


@asynccontextmanager
async def started(options: EmbeddedOptions, clock: Clock, rng: random.Random) -> AsyncIterator[EmbeddedCluster]:
    """`EmbeddedCluster.running`, with errors for people."""
    try:
        async with EmbeddedCluster.running(options, clock, rng) as cluster:
            yield cluster
    except ManifestError as error:
        raise bad_input(error.problems) from error
    except (TemplateError, PodRulesError, OutputPathError) as error:
        raise bad_input(str(error)) from error
    except (DataDirError, JournalError) as error:
        raise unreachable(str(error)) from error
    except PortInUse as error:
        raise unreachable(error.strerror or str(error)) from error
    except PermissionError as error:
        raise unreachable(f"port {options.port}: {(error.strerror or '').lower()}; choose one above 1023") from error
