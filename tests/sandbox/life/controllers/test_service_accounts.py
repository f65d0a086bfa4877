"""Every namespace has its ServiceAccount and the certificate of the API server."""

from __future__ import annotations

from typing import Any

from tests.sandbox.living_cluster import LivingCluster


def namespace() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


async def test_new_namespace_gets_account_and_certificate() -> None:
    cluster = LivingCluster()
    cluster.create(namespace())
    await cluster.settle()
    assert cluster.find("ServiceAccount", "default", "shop") is not None
    assert "without TLS" in cluster.get("ConfigMap", "kube-root-ca.crt", "shop")["data"]["ca.crt"]


async def test_both_come_back_and_the_certificate_is_put_right() -> None:
    cluster = LivingCluster()
    await cluster.settle()
    before = cluster.get("ConfigMap", "kube-root-ca.crt")
    cluster.delete("ServiceAccount", "default")
    cluster.delete("ConfigMap", "kube-root-ca.crt")
    await cluster.settle()
    assert cluster.find("ServiceAccount", "default") is not None
    changed = cluster.get("ConfigMap", "kube-root-ca.crt")
    assert changed["data"] == before["data"]
    changed["data"] = {"ca.crt": "mine"}
    cluster.api.update("configmaps", "default", "kube-root-ca.crt", changed)
    await cluster.settle()
    assert cluster.get("ConfigMap", "kube-root-ca.crt")["data"] == before["data"]


async def test_namespace_that_goes_is_left_alone() -> None:
    cluster = LivingCluster()
    cluster.create(namespace())
    await cluster.settle()
    cluster.delete("Namespace", "shop")
    await cluster.settle()
    assert cluster.find("Namespace", "shop") is None
