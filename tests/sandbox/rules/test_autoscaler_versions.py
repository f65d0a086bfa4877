"""HorizontalPodAutoscalers in both versions: one object, whose target for cpu is a field or a metric."""

from __future__ import annotations

from tests.sandbox.api_world import World

V1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
V2 = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
METRICS = [
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}
]


def test_the_older_version_is_the_newer_one_with_one_metric() -> None:
    world = World()
    spec = {"scaleTargetRef": TARGET, "maxReplicas": 5, "targetCPUUtilizationPercentage": 70}
    made = world.ok("POST", V1, {"metadata": {"name": "web"}, "spec": spec})
    assert made["apiVersion"] == "autoscaling/v1" and made["spec"]["targetCPUUtilizationPercentage"] == 70
    assert world.ok("GET", f"{V2}/web")["spec"]["metrics"] == METRICS
    assert world.ok("GET", V1)["items"][0]["spec"] == made["spec"]


def test_what_the_older_version_has_no_field_for_is_left_out_of_it() -> None:
    world = World()
    memory = {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
    }
    spec = {"scaleTargetRef": TARGET, "maxReplicas": 5, "metrics": [*METRICS, memory], "behavior": {"scaleDown": {}}}
    world.ok("POST", V2, {"metadata": {"name": "web"}, "spec": spec})
    older = world.ok("GET", f"{V1}/web")["spec"]
    assert older["targetCPUUtilizationPercentage"] == 70 and not {"metrics", "behavior"} & older.keys()
    assert len(world.ok("GET", f"{V2}/web")["spec"]["metrics"]) == 2
