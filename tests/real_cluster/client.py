"""A small synchronous client of one API server, for tests: JSON in, JSON out."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import yaml

from pilotage.model import KINDS, kind_of
from pilotage.model.kinds import KindInfo

Json = dict[str, Any]
MERGE = "application/merge-patch+json"


class Refused(Exception):
    """The server said no."""

    def __init__(self, code: int, answer: Json) -> None:
        super().__init__(f"{code} {answer.get('message', answer)}")
        self.code = code
        self.reason = answer.get("reason", "")
        self.causes: list[Json] = (answer.get("details") or {}).get("causes") or []


class Client:
    """One connection, kept alive."""

    def __init__(self, kubeconfig: Path, kinds: Mapping[str, KindInfo] = KINDS) -> None:
        """`kinds` are those that the server has, in its versions."""
        self.kinds = kinds
        content = yaml.safe_load(kubeconfig.read_text())
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        self._trust = ssl.create_default_context(cafile=cluster["certificate-authority"])
        if "client-certificate" in user:
            self._trust.load_cert_chain(user["client-certificate"], user["client-key"])
        self._headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        self._address = urlsplit(cluster["server"]).netloc
        self._connection: http.client.HTTPSConnection | None = None
        self.created_in: set[str] = set()
        """The collections in which this client has created something."""

    def is_ready(self) -> bool:
        try:
            self.request("GET", "/readyz")
        except (OSError, http.client.HTTPException, Refused):
            return False
        return True

    def create(self, obj: Json) -> Json:
        """Create it and, for kinds whose status is written apart, set the status too."""
        kind = _kind(obj)
        metadata = obj["metadata"]
        made = self.request("POST", kind.path(metadata.get("namespace", _home(kind))), obj)
        if obj.get("status") and kind.kind in _STATUS_APART:
            path = kind.path(made["metadata"].get("namespace"), made["metadata"]["name"])
            return self.request("PATCH", f"{path}/status", {"status": obj["status"]}, MERGE)
        return made

    def get(self, plural: str, name: str, namespace: str = "default") -> Json | None:
        try:
            return self.request("GET", self.kinds[plural].path(namespace, name))
        except Refused as refused:
            if refused.code == 404:
                return None
            raise

    def list(self, plural: str, **query: str) -> list[Json]:
        """All objects of a kind in all namespaces."""
        path = self.kinds[plural].path()
        found: list[Json] = self.request("GET", f"{path}?{urlencode(query)}" if query else path)["items"]
        return found

    def patch(self, plural: str, name: str, change: Json, *, subresource: str = "", namespace: str = "default") -> Json:
        path = self.kinds[plural].path(namespace, name)
        return self.request("PATCH", f"{path}/{subresource}" if subresource else path, change, MERGE)

    def delete(self, plural: str, name: str, *, grace: int | None = None, namespace: str = "default") -> Json:
        options = {} if grace is None else {"gracePeriodSeconds": grace}
        return self.request("DELETE", self.kinds[plural].path(namespace, name), options)

    def delete_all(self, plural: str, namespace: str | None = None) -> None:
        self.request("DELETE", self.kinds[plural].path(namespace), {"gracePeriodSeconds": 0})

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", accept: str = ""
    ) -> Json:
        if method == "POST":
            self.created_in.add(path.rpartition("/")[2])
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers | ({} if data is None else {"Content-Type": content_type})
        headers |= {"Accept": accept} if accept else {}
        for attempt in (1, 2):
            connection = self._connected()
            try:
                connection.request(method, path, data, headers)
                response = connection.getresponse()
                answer = response.read()
                break
            except (OSError, http.client.HTTPException):
                # A kept connection may have been closed by the server; a fresh one that fails is news.
                connection.close()
                self._connection = None
                if attempt == 2:
                    raise
        try:
            told = json.loads(answer)
        except ValueError:
            told = {"message": answer.decode(errors="replace")}
        if response.status >= 400:
            raise Refused(response.status, told)
        return told if isinstance(told, dict) else {"answer": told}

    def lines(self, path: str) -> Iterator[bytes]:
        """The lines of an answer as they come, over a connection of its own."""
        connection = http.client.HTTPSConnection(self._address, context=self._trust, timeout=30)
        try:
            connection.request("GET", path, headers=self._headers)
            response = connection.getresponse()
            if response.status >= 400:
                raise Refused(response.status, json.loads(response.read()))
            yield from response
        finally:
            connection.close()

    def _connected(self) -> http.client.HTTPSConnection:
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(self._address, context=self._trust, timeout=30)
        return self._connection


_STATUS_APART = frozenset({"Pod", "PersistentVolumeClaim", "PersistentVolume", "ResourceClaim", "PodDisruptionBudget"})


def _kind(obj: Json) -> KindInfo:
    kind = kind_of(obj["kind"])
    assert kind is not None, obj["kind"]
    return kind


def _home(kind: KindInfo) -> str:
    return "default" if kind.namespaced else ""
