"""The token that a pod gets of its ServiceAccount."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.rng import seeded
from pilotage.sandbox.api import Api
from pilotage.sandbox.storage.store import Store
from pilotage.testing.virtual_clock import VirtualClock

PLACE = "/var/run/secrets/kubernetes.io/serviceaccount"
OWN = {"name": "mine", "mountPath": PLACE}


@pytest.fixture
def api() -> Api:
    return Api(Store(history=100), clock=VirtualClock(), rng=seeded(1), mounts_tokens=True)


def a_pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def mounted(pod: dict[str, Any]) -> list[str]:
    """The names of the volumes where a token belongs, by container."""
    containers = [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
    return [m["name"] for one in containers for m in one.get("volumeMounts", []) if m["mountPath"] == PLACE]


def test_every_container_gets_the_token_of_the_account(api: Api) -> None:
    pod = api.create("pods", "default", a_pod(initContainers=[{"name": "first", "image": "i"}]))
    [volume] = pod["spec"]["volumes"]
    assert volume["name"].startswith("kube-api-access-") and mounted(pod) == [volume["name"]] * 3
    assert volume["projected"] == {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [
                        {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                    ]
                }
            },
        ],
    }


@pytest.mark.parametrize(("of_account", "of_pod", "count"), [(False, None, 0), (True, False, 0), (False, True, 2)])
def test_the_pod_has_the_last_word(api: Api, of_account: bool, of_pod: bool | None, count: int) -> None:
    account = {"metadata": {"name": "bob"}, "automountServiceAccountToken": of_account}
    api.create("serviceaccounts", "default", account)
    said = {} if of_pod is None else {"automountServiceAccountToken": of_pod}
    pod = api.create("pods", "default", a_pod(serviceAccountName="bob", **said))
    assert len(mounted(pod)) == count and len(pod["spec"].get("volumes", [])) == bool(count)


def test_a_container_with_something_else_there_keeps_it(api: Api) -> None:
    containers = [{"name": "a", "image": "i", "volumeMounts": [OWN]}, {"name": "b", "image": "i"}]
    pod = api.create("pods", "default", a_pod(containers=containers, volumes=[{"name": "mine", "emptyDir": {}}]))
    assert mounted(pod)[0] == "mine" and mounted(pod)[1].startswith("kube-api-access-")
    copied = a_pod("copy", **{field: pod["spec"][field] for field in ("containers", "volumes")})
    assert api.create("pods", "default", copied)["spec"]["volumes"] == pod["spec"]["volumes"]


def test_the_account_lends_its_pull_secrets(api: Api) -> None:
    api.create("serviceaccounts", "default", {"metadata": {"name": "bob"}, "imagePullSecrets": [{"name": "s"}]})
    assert api.create("pods", "default", a_pod(serviceAccountName="bob"))["spec"]["imagePullSecrets"] == [{"name": "s"}]
    own = a_pod("q", serviceAccountName="bob", imagePullSecrets=[{"name": "own"}])
    assert api.create("pods", "default", own)["spec"]["imagePullSecrets"] == [{"name": "own"}]


def test_accounts_of_two_namespaces_and_of_two_times_are_not_mixed_up(api: Api) -> None:
    api.create("namespaces", "", {"metadata": {"name": "other"}})
    api.create("serviceaccounts", "other", {"metadata": {"name": "default"}, "automountServiceAccountToken": False})
    made = [api.create("pods", space, a_pod(name)) for name in "pqr" for space in ("default", "other")]
    assert [len(mounted(pod)) for pod in made] == [2, 0] * 3
    changed = api.get("serviceaccounts", "other", "default")
    changed["automountServiceAccountToken"] = True
    api.update("serviceaccounts", "other", "default", changed)
    assert len(mounted(api.create("pods", "other", a_pod("s")))) == 2
