"""What every namespace has: the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`.

Both come back when someone removes them, and the certificate when someone changes it. Without TLS there is no authority
that clients could trust, and the ConfigMap says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.life.controllers.controller import ControllerContext, Due, Interest
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.storage.store import Key

NAMESPACES: Final = "namespaces"
ACCOUNTS: Final = "serviceaccounts"
CONFIG_MAPS: Final = "configmaps"
ROOT_CA: Final = "kube-root-ca.crt"

_DEFAULT: Final = "default"
_NO_AUTHORITY: Final = "# this sandbox is served without TLS: there is no certificate authority\n"
_ABOUT: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class ServiceAccountController:
    name = "service-accounts"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context

    def interests(self) -> Mapping[str, Interest]:
        return {NAMESPACES: _namespace_seen, ACCOUNTS: _default_gone, CONFIG_MAPS: _root_ca_seen}

    def reconcile(self, key: Key) -> float | None:
        facts = self._context.index.get(key)
        if facts is None or facts.is_deleting:
            return None
        try:
            if self._context.api.store.get(Key(ACCOUNTS, key.name, _DEFAULT)) is None:
                self._context.create(ACCOUNTS, key.name, {"metadata": {"name": _DEFAULT}})
            self._publish_root_ca(key.name)
        except ApiError as error:
            if error.code != 403:  # the namespace has begun to go
                raise
        return None

    def _publish_root_ca(self, namespace: str) -> None:
        data = {"ca.crt": self._context.authority or _NO_AUTHORITY}
        key = Key(CONFIG_MAPS, namespace, ROOT_CA)
        known = self._context.read(key)
        if known is None:
            metadata = {"name": ROOT_CA, "annotations": {"kubernetes.io/description": _ABOUT}}
            self._context.create(CONFIG_MAPS, namespace, {"metadata": metadata, "data": data})
        elif known.get("data") != data:
            known["data"] = data
            self._context.write(key, known)


def _namespace_seen(seen: ObservedChange) -> Iterable[Due]:
    return (Due(seen.key),) if seen.old is None and seen.new is not None else ()


def _default_gone(seen: ObservedChange) -> Iterable[Due]:
    is_lost = seen.new is None and seen.key.name == _DEFAULT
    return (Due(Key(NAMESPACES, "", seen.key.namespace)),) if is_lost else ()


def _root_ca_seen(seen: ObservedChange) -> Iterable[Due]:
    return (Due(Key(NAMESPACES, "", seen.key.namespace)),) if seen.key.name == ROOT_CA else ()
