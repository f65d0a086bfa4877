"""Apply on the server, in the words of the API server. `tests/real_cluster/test_apply.py` compares with a real one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sandbox.api_world import MERGE, World, config_map, definition, deployment

APPLY = "application/apply-patch+yaml"
MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"

Json = dict[str, Any]


@pytest.fixture
def world() -> World:
    return World()


def apply(world: World, path: str, config: Json | str, by: str = "ann", *, force: bool = False, **query: str) -> Json:
    answer = world.send("PATCH", path, _body(config), content_type=APPLY, query=_query(by, force, query))
    assert answer.status in (200, 201), answer.body
    found: Json = json.loads(answer.body)
    return found


def refused(world: World, path: str, config: Json | str, by: str = "ann", **query: str) -> Json:
    return world.refused("PATCH", path, _body(config), content_type=APPLY, query=_query(by, False, query))


def _body(config: Json | str) -> bytes:
    return (config if isinstance(config, str) else json.dumps(config)).encode()


def _query(by: str, force: bool, more: dict[str, str]) -> dict[str, str]:
    return {"fieldManager": by, **({"force": "true"} if force else {}), **more}


def owned(obj: Json) -> dict[tuple[str, str], Any]:
    entries = obj["metadata"].get("managedFields", [])
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in entries}


def test_what_is_applied_is_created_and_owned(world: World) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: {app: web}}\ndata: {a: '1'}\n"
    answer = world.send("PATCH", f"{MAPS}/c", text.encode(), content_type=APPLY, query={"fieldManager": "ann"})
    assert answer.status == 201
    made = json.loads(answer.body)
    [entry] = made["metadata"]["managedFields"]
    assert entry == {
        "manager": "ann",
        "operation": "Apply",
        "apiVersion": "v1",
        "time": made["metadata"]["creationTimestamp"],
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {"f:app": {}}}},
    }
    again = world.send("PATCH", f"{MAPS}/c", text.encode(), content_type=APPLY, query={"fieldManager": "ann"})
    assert again.status == 200 and json.loads(again.body) == made, "nothing is written when nothing changes"


def test_what_is_no_longer_applied_goes_unless_somebody_else_owns_it(world: World) -> None:
    apply(world, f"{MAPS}/c", config_map("c", a="1", b="1", c="1"))
    apply(world, f"{MAPS}/c", config_map("c", b="1"), "bob")
    world.ok("PATCH", f"{MAPS}/c", {"data": {"d": "1"}}, content_type=MERGE, query={"fieldManager": "cid"})
    assert apply(world, f"{MAPS}/c", config_map("c", c="2"))["data"] == {"b": "1", "c": "2", "d": "1"}


def test_a_conflict_names_who_owns_what_and_force_takes_it(world: World) -> None:
    world.ok("POST", MAPS, config_map("c", a="1", b="1"), query={"fieldManager": "bob"})
    status = refused(world, f"{MAPS}/c", config_map("c", a="2"))
    assert status["message"] == 'Apply failed with 1 conflict: conflict with "bob" using v1: .data.a'
    assert (status["code"], status["reason"]) == (409, "Conflict")
    assert status["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "bob" using v1', "field": ".data.a"}
    ]
    apply(world, f"{MAPS}/c", config_map("c", b="1"), "cid")
    status = refused(world, f"{MAPS}/c", config_map("c", a="2", b="2"))
    assert status["message"] == (
        'Apply failed with 3 conflicts: conflicts with "bob" using v1:\n- .data.a\n- .data.b\n'
        'conflicts with "cid":\n- .data.b'
    )
    forced = apply(world, f"{MAPS}/c", config_map("c", a="2", b="2"), force=True)
    assert forced["data"] == {"a": "2", "b": "2"}
    assert owned(forced) == {
        ("ann", "Apply"): {"f:data": {"f:a": {}, "f:b": {}}},
        ("bob", "Update"): {"f:data": {}},
    }


def test_lists_with_keys_merge_and_others_are_one_value(world: World) -> None:
    apply(world, f"{DEPLOYMENTS}/web", deployment())
    sidecar = {"name": "s", "image": "j", "args": ["x"], "env": [{"name": "K", "value": "1"}]}
    more = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    more["spec"] = {"template": {"spec": {"containers": [sidecar]}}}
    both = apply(world, f"{DEPLOYMENTS}/web", more, "bob")
    assert [container["name"] for container in both["spec"]["template"]["spec"]["containers"]] == ["c", "s"]
    theirs = owned(both)["bob", "Apply"]["f:spec"]["f:template"]["f:spec"]["f:containers"]
    assert theirs == {
        'k:{"name":"s"}': {
            ".": {},
            "f:args": {},
            "f:env": {'k:{"name":"K"}': {".": {}, "f:name": {}, "f:value": {}}},
            "f:image": {},
            "f:name": {},
        }
    }
    changed = deployment()
    changed["spec"]["template"]["spec"]["containers"].append({"name": "s", "args": ["y"]})
    status = refused(world, f"{DEPLOYMENTS}/web", changed)
    assert status["details"]["causes"][0]["field"] == '.spec.template.spec.containers[name="s"].args'


def test_a_custom_kind_merges_as_its_schema_says(world: World) -> None:
    part = {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}}
    keyed = {"type": "array", "items": part, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    tags = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    spec = {"type": "object", "properties": {"parts": keyed, "tags": tags}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    world.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(schema=schema))
    path = "/apis/example.com/v1/namespaces/default/widgets/w"

    def widget(**spec: Any) -> Json:
        return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}

    apply(world, path, widget(parts=[{"name": "a", "n": 1}], tags=["x"]))
    both = apply(world, path, widget(parts=[{"name": "b"}], tags=["y"]), "bob")
    assert both["spec"] == {"parts": [{"name": "a", "n": 1}, {"name": "b"}], "tags": ["x", "y"]}
    assert owned(both)["bob", "Apply"]["f:spec"]["f:tags"] == {'v:"y"': {}}
    status = refused(world, path, widget(sise=1))
    assert status["message"].startswith("failed to create typed patch object (/w; example.com/v1, Kind=Widget): ")
    assert status["message"].endswith(": .spec.sise: field not declared in schema")
    status = refused(world, path, widget(parts=[{"name": "a"}, {"name": "a"}]))
    assert 'duplicate entries for key [name="a"]' in status["message"]


def test_status_and_scale_are_applied_below_the_object(world: World) -> None:
    apply(world, f"{DEPLOYMENTS}/web", deployment())
    status = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    status["status"] = {"conditions": [{"type": "Nice", "status": "True"}]}
    done = apply(world, f"{DEPLOYMENTS}/web/status", status, "bob")
    [entry] = [entry for entry in done["metadata"]["managedFields"] if entry["manager"] == "bob"]
    assert entry["subresource"] == "status" and done["spec"]["replicas"] == 2
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 5}}
    refusal = refused(world, f"{DEPLOYMENTS}/web/scale", scale, "cid")
    assert refusal["message"] == 'Apply failed with 1 conflict: conflict with "ann": .spec.replicas'
    assert apply(world, f"{DEPLOYMENTS}/web/scale", scale, "cid", force=True)["spec"]["replicas"] == 5
    after = world.ok("GET", f"{DEPLOYMENTS}/web")
    assert "f:replicas" not in owned(after)["ann", "Apply"]["f:spec"]
    assert owned(after)["cid", "Apply"] == {"f:spec": {"f:replicas": {}}}


def test_kubectl_goes_on_from_client_side_apply_without_conflicts(world: World) -> None:
    name = "kubectl.kubernetes.io/last-applied-configuration"
    config = config_map("c", a="1")
    annotated = config_map("c", a="1")
    annotated["metadata"]["annotations"] = {name: json.dumps(config)}
    world.ok("POST", MAPS, annotated, query={"fieldManager": "kubectl-client-side-apply"})
    config["data"] = {"a": "2"}
    assert refused(world, f"{MAPS}/c", config, "ann")["code"] == 409
    done = apply(world, f"{MAPS}/c", config, "kubectl")
    assert done["data"] == {"a": "2"}
    assert json.loads(done["metadata"]["annotations"][name])["data"] == {"a": "2"}


def test_an_object_of_our_own_belongs_to_before_first_apply(world: World) -> None:
    world.api.create("configmaps", "default", config_map("c", a="1"))
    assert "managedFields" not in world.ok("GET", f"{MAPS}/c")["metadata"]
    status = refused(world, f"{MAPS}/c", config_map("c", a="2"))
    assert 'conflict with "before-first-apply" using v1: .data.a' in status["message"]
    assert owned(apply(world, f"{MAPS}/c", config_map("c", a="1")))["before-first-apply", "Update"] == {
        "f:data": {".": {}, "f:a": {}}
    }


def test_who_creates_and_updates_is_named_after_its_program(world: World) -> None:
    from pilotage.sandbox.http.exchange import Request

    headers = {"content-type": "application/json", "user-agent": "curl/8.5.0"}
    body = json.dumps(config_map("c", a="1")).encode()
    made = json.loads(world.server.handle(Request("POST", MAPS, {}, headers, body)).body)  # type: ignore[union-attr]
    assert owned(made) == {("curl", "Update"): {"f:data": {".": {}, "f:a": {}}}}


def test_managers_can_be_taken_away_and_given(world: World) -> None:
    made = apply(world, f"{MAPS}/c", config_map("c", a="1"))
    kept = made["metadata"]["managedFields"]
    cleared = world.ok("PATCH", f"{MAPS}/c", {"metadata": {"managedFields": [{}]}}, content_type=MERGE)
    assert "managedFields" not in cleared["metadata"]
    given = world.ok("PATCH", f"{MAPS}/c", {"metadata": {"managedFields": kept}}, content_type=MERGE)
    assert given["metadata"]["managedFields"] == kept


async def test_eleven_managers_become_ten(world: World) -> None:
    world.ok("POST", MAPS, config_map("c", a="0"), query={"fieldManager": "m0"})
    for number in range(1, 13):
        await world.clock.advance(1)
        change = {"data": {f"k{number}": "1"}}
        world.ok("PATCH", f"{MAPS}/c", change, content_type=MERGE, query={"fieldManager": f"m{number}"})
    managers = owned(world.ok("GET", f"{MAPS}/c"))
    assert len(managers) == 10
    assert managers["ancient-changes", "Update"] == {"f:data": {".": {}, "f:a": {}, "f:k1": {}, "f:k2": {}, "f:k3": {}}}


def test_a_dry_run_tells_and_writes_nothing(world: World) -> None:
    apply(world, f"{MAPS}/c", config_map("c", a="1"))
    tried = apply(world, f"{MAPS}/c", config_map("c", a="2"), dryRun="All")
    assert tried["data"] == {"a": "2"}
    assert world.ok("GET", f"{MAPS}/c")["data"] == {"a": "1"}


@pytest.mark.parametrize(
    ("config", "query", "code", "told"),
    [
        (config_map("c"), {"fieldManager": ""}, 422, "fieldManager: Required value: is required for apply patch"),
        (config_map("c"), {"fieldManager": "x" * 129}, 422, "fieldManager: Too long: may not be more than 128 bytes"),
        (config_map("d"), {}, 400, "the name of the object (d) does not match the name on the URL (c)"),
        ({"kind": "ConfigMap", "metadata": {"name": "c"}}, {}, 400, "invalid object type"),
        ({**config_map("c"), "metadata": {"name": "c", "managedFields": []}}, {}, 400, "must be nil"),
        ({**config_map("c"), "dta": {}}, {}, 500, ".dta: field not declared in schema"),
        ({**config_map("c"), "metadata": {"name": "c", "uid": "u"}}, {}, 409, "Precondition failed: UID"),
        ("a: [", {}, 400, "error decoding YAML"),
        ("- a", {}, 400, "must be one JSON object"),
    ],
)
def test_what_cannot_be_applied(world: World, config: Any, query: dict[str, str], code: int, told: str) -> None:
    status = world.refused(
        "PATCH", f"{MAPS}/c", _body(config), content_type=APPLY, query={"fieldManager": "ann", **query}
    )
    assert status["code"] == code and told in status["message"], status


def test_force_is_for_apply_alone(world: World) -> None:
    world.api.create("configmaps", "default", config_map("c"))
    status = world.refused("PATCH", f"{MAPS}/c", {}, content_type=MERGE, query={"force": "true"})
    assert "force: Forbidden: may not be specified for non-apply patch" in status["message"]


def test_an_equal_pod_belongs_to_its_author_in_the_same_way(world: World) -> None:
    """Specs that were sent before take a shorter way through creation."""
    from tests.sandbox.api_world import PODS, labelled, pod

    made = [
        world.ok("POST", PODS, labelled(pod(f"p{number}"), app="x"), query={"fieldManager": "ann"})
        for number in range(3)
    ]
    assert owned(made[0]) == owned(made[1]) == owned(made[2])
    fields = owned(made[2])["ann", "Update"]
    assert fields["f:metadata"] == {"f:labels": {".": {}, "f:app": {}}}
    assert "f:image" in fields["f:spec"]["f:containers"]['k:{"name":"c"}']
