"""Kueue's kinds at either server: by deploy/crds at the real one, built in at the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from .client import Client, Refused
from .servers import Server, eventually

CRDS = Path(__file__).parents[2] / "deploy" / "crds"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "/apis/kueue.x-k8s.io/v1beta2"


@contextmanager
def queueing_kinds(server: Server) -> Iterator[Client]:
    """The kinds are served inside of the block; with the definitions their objects go."""
    client = Client(server.admin)
    definitions = [yaml.safe_load(path.read_text()) for path in sorted(CRDS.glob("*.yaml"))]
    if server.name == "sandbox":
        definitions = []
    for definition in definitions:
        client.request("POST", DEFINITIONS, definition)
    plurals = [path.stem for path in CRDS.glob("*.yaml")]
    try:
        eventually("all kinds are served", lambda: all(_is_served(client, plural) for plural in plurals))
        yield client
    finally:
        for plural in plurals:
            _release(client, plural)
        for definition in definitions:
            client.request("DELETE", f"{DEFINITIONS}/{definition['metadata']['name']}", {})
        eventually("the kinds are gone", lambda: not definitions or not any(_is_served(client, one) for one in plurals))


def _is_served(client: Client, plural: str) -> bool:
    try:
        client.request("GET", f"{GROUP}/{plural}")
    except Refused:
        return False
    return True


def _release(client: Client, plural: str) -> None:
    """Delete all objects, also those that somebody holds by a finalizer."""
    for obj in client.request("GET", f"{GROUP}/{plural}")["items"]:
        metadata = obj["metadata"]
        scope = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
        path = f"{GROUP}{scope}/{plural}/{metadata['name']}"
        if metadata.get("finalizers"):
            client.request("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
        client.request("DELETE", path, {})
