"""A witness: watches all pods and remembers on which nodes each was ever seen."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from http.client import HTTPException

from .client import Client, Json


class BindingsSeen:
    """Used as a context; the watch runs in a thread and takes up again where it was cut."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._version = ""
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch_on, name="bindings seen", daemon=True)
        self.nodes_of: dict[str, set[str]] = defaultdict(set)
        """By UID."""

    def __enter__(self) -> BindingsSeen:
        self._version = self._client.request("GET", "/api/v1/pods")["metadata"]["resourceVersion"]
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(timeout=10)

    def bound_more_than_once(self) -> dict[str, set[str]]:
        return {uid: nodes for uid, nodes in self.nodes_of.items() if len(nodes) > 1}

    def _watch_on(self) -> None:
        while not self._is_over.is_set():
            path = f"/api/v1/pods?watch=true&resourceVersion={self._version}&timeoutSeconds=2"
            try:
                for line in self._client.lines(path):
                    event = json.loads(line)
                    self.note(event["type"], event["object"])
            except (OSError, HTTPException):
                self._is_over.wait(0.1)

    def note(self, change: str, pod: Json) -> None:
        """An event of the watch, in the order in which the server has them."""
        metadata, node_name = pod["metadata"], pod["spec"].get("nodeName")
        self._version = metadata["resourceVersion"]
        if node_name:
            self.nodes_of[metadata["uid"]].add(node_name)
