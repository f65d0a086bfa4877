"""A volume is made for the chosen node before the pod is bound."""

from __future__ import annotations

from tests.examples.sandbox_world import sandbox

CLAIMS = "persistentvolumeclaims"


async def test_the_pod_is_bound_when_its_volume_is() -> None:
    async with sandbox("volume_provisioning") as world:
        assert world.nodes_of() == {"archive": "cellar", "clerk": "attic"}
        (claim,) = world.api.list(CLAIMS)
        assert claim["metadata"]["name"] == "archive-scratch" and claim["status"]["phase"] == "Bound"
        assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "cellar"


async def test_a_pod_whose_volume_does_not_come_goes_back_and_others_are_served() -> None:
    async with sandbox("volume_provisioning", manifest=False, nodes=1) as world:
        world.api.delete("storageclasses.storage.k8s.io", "", "standard")
        node = world.api.list("nodes")[0]
        node["metadata"]["labels"]["example.com/makes-volumes"] = "true"
        world.api.update("nodes", "", node["metadata"]["name"], node)
        container = {"name": "c", "image": "i"}
        wants = {"name": "wants", "annotations": {"example.com/scratch-space": "1Gi"}}
        world.api.create("pods", "default", {"metadata": wants, "spec": {"containers": [container]}})
        world.api.create("pods", "default", {"metadata": {"name": "plain"}, "spec": {"containers": [container]}})
        await world.after(5)
        assert world.nodes_of() == {"wants": "", "plain": node["metadata"]["name"]}
        await world.after(58)
        assert world.condition("wants")["message"] == "no volume after 60 s"
        claim = world.api.list(CLAIMS)[0]
        claim["status"] = {"phase": "Bound"}
        world.api.update(CLAIMS, "default", "wants-scratch", claim, subresource="status")
        await world.after(5)
        assert world.nodes_of("wants") == {"wants": node["metadata"]["name"]}


async def test_a_pod_waits_for_a_node_that_can_make_volumes() -> None:
    async with sandbox("volume_provisioning") as world:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "32"}}}
        metadata = {"name": "large", "annotations": {"example.com/scratch-space": "1Gi"}}
        world.api.create("pods", "default", {"metadata": metadata, "spec": {"containers": [container]}})
        await world.after(1)
        assert "1 node(s) cannot make volumes" in world.condition("large")["message"]
        node = world.api.get("nodes", "", "attic")
        node["metadata"]["labels"]["example.com/makes-volumes"] = "true"
        world.api.update("nodes", "", "attic", node)
        await world.after(5)
        assert world.nodes_of("large") == {"large": "attic"}
