"""What a pod gets of its ServiceAccount: a volume with a token, mounted into every container, and pull secrets.

    projected volume kube-api-access-...    token, ca.crt, namespace
    mounted at                              /var/run/secrets/kubernetes.io/serviceaccount

Nothing is added where the pod or its account does not want it (`automountServiceAccountToken: false`), nor to
containers that have something else there. An account that does not exist (yet) wants it: every namespace gets its
default one soon.
"""

from __future__ import annotations

import random
from typing import Final

from pilotage.rng import random_suffix
from pilotage.sandbox.rules.json_fields import Json, dict_or_empty, dicts_in
from pilotage.sandbox.rules.lookup import Lookup

ACCOUNTS: Final = "serviceaccounts"
_PLACE: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_PREFIX: Final = "kube-api-access-"
_MIRROR: Final = "kubernetes.io/config.mirror"


def mount_token(pod: Json, lookup: Lookup, rng: random.Random) -> None:
    """Complete a pod whose account is known by name."""
    spec, metadata = dict_or_empty(pod.get("spec")), dict_or_empty(pod.get("metadata"))
    if _MIRROR in dict_or_empty(metadata.get("annotations")):
        return
    account = lookup.get(ACCOUNTS, str(metadata.get("namespace")), str(spec.get("serviceAccountName"))) or {}
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(one) for one in dicts_in(account, "imagePullSecrets")]
    if _is_unwanted(spec) or (spec.get("automountServiceAccountToken") is None and _is_unwanted(account)):
        return
    containers = [*dicts_in(spec, "initContainers"), *dicts_in(spec, "containers")]
    lacking = [one for one in containers if all(m.get("mountPath") != _PLACE for m in dicts_in(one, "volumeMounts"))]
    if not lacking:
        return
    name = _volume_for_tokens(spec)
    if not name:
        name = _PREFIX + random_suffix(rng)
        spec["volumes"] = [*dicts_in(spec, "volumes"), {"name": name, "projected": _projection()}]
    for container in lacking:
        mount = {"name": name, "readOnly": True, "mountPath": _PLACE}
        container["volumeMounts"] = [*dicts_in(container, "volumeMounts"), mount]


def _is_unwanted(said: Json) -> bool:
    return said.get("automountServiceAccountToken") is False


def _volume_for_tokens(spec: Json) -> str:
    """The volume that a pod which was copied from a cluster has already."""
    for volume in dicts_in(spec, "volumes"):
        sources = dicts_in(volume.get("projected"), "sources")
        if str(volume.get("name")).startswith(_PREFIX) and any("serviceAccountToken" in source for source in sources):
            return str(volume["name"])
    return ""


def _projection() -> Json:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [namespace]}},
        ],
        "defaultMode": 420,
    }
