"""Random histories of objects that several clients apply, update and patch, and how the outcome is told."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from .client import Client, Json, Refused

APPLY: Final = "application/apply-patch+yaml"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
MANAGERS: Final = ("ann", "bob", "kubectl")

WIDGETS: Final[Json] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.apply.example.com"},
    "spec": {
        "group": "apply.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
                },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer"},
                                    "tags": {
                                        "type": "array",
                                        "items": {"type": "string"},
                                        "x-kubernetes-list-type": "set",
                                    },
                                    "order": {"type": "array", "items": {"type": "string"}},
                                    "parts": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name", "side"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {
                                                "name": {"type": "string"},
                                                "side": {"type": "string", "default": "left"},
                                                "count": {"type": "integer"},
                                            },
                                        },
                                    },
                                    "where": {
                                        "type": "object",
                                        "x-kubernetes-map-type": "atomic",
                                        "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
                                    },
                                    "notes": {"type": "object", "additionalProperties": {"type": "string"}},
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {
                                    "phase": {"type": "string"},
                                    "conditions": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["type"],
                                        "items": {
                                            "type": "object",
                                            "required": ["type"],
                                            "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
                                        },
                                    },
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}


class Step(NamedTuple):
    """One request of a client."""

    verb: str
    by: str
    body: Json
    force: bool = False
    subresource: str = ""

    def __str__(self) -> str:
        where = f"/{self.subresource}" if self.subresource else ""
        return f"{self.by}: {self.verb}{where}{' by force' if self.force else ''} {self.body}"


class Kind(NamedTuple):
    api_version: str
    kind: str
    path: str


KINDS: Final = {
    "ConfigMap": Kind("v1", "ConfigMap", "/api/v1/namespaces/default/configmaps"),
    "Deployment": Kind("apps/v1", "Deployment", "/apis/apps/v1/namespaces/default/deployments"),
    "Service": Kind("v1", "Service", "/api/v1/namespaces/default/services"),
    "Widget": Kind("apply.example.com/v1", "Widget", "/apis/apply.example.com/v1/namespaces/default/widgets"),
}


def histories(kind: str, seed: int, length: int = 8) -> Iterator[Step]:
    """What happens to one object; nothing that fails on purpose but conflicts."""
    rng = random.Random(f"{kind} {seed}")
    for at in range(length):
        yield _step(rng, kind, is_first=at == 0)


def _step(rng: random.Random, kind: str, *, is_first: bool) -> Step:
    by = rng.choice(MANAGERS)
    if is_first:
        return Step(rng.choice(("apply", "create")), by, _content(rng, kind))
    verb = rng.choice(("apply", "apply", "apply", "merge", "put", "strategic" if kind != "Widget" else "merge"))
    if kind in ("Deployment", "Widget") and rng.random() < 0.2:
        return _below(rng, kind, by)
    return Step(verb, by, _content(rng, kind), force=verb == "apply" and rng.random() < 0.4)


def _below(rng: random.Random, kind: str, by: str) -> Step:
    # A real API server cannot apply the scale of a custom kind, and loses sight of who else has set it.
    if kind != "Widget" and rng.random() < 0.5:
        scale = {"spec": {"replicas": rng.randrange(4)}}
        if rng.random() < 0.5:
            return Step("merge", by, scale, subresource="scale")
        config = {"apiVersion": "autoscaling/v1", "kind": "Scale", **scale}
        return Step("apply", by, config, force=rng.random() < 0.5, subresource="scale")
    conditions = [{"type": name, "status": rng.choice(("True", "False"))} for name in _some(rng, "AB")]
    status: Json = {"conditions": conditions}
    if kind == "Widget":
        status |= {"phase": rng.choice("xyz")} if rng.random() < 0.5 else {}
    else:
        # Where they are left out, a real API server says that they are null.
        moment = "2026-01-01T00:00:00Z"
        status["conditions"] = [{**one, "lastTransitionTime": moment, "lastUpdateTime": moment} for one in conditions]
    verb = rng.choice(("apply", "merge"))
    return Step(verb, by, {"status": status}, force=verb == "apply" and rng.random() < 0.5, subresource="status")


def _content(rng: random.Random, kind: str) -> Json:
    metadata: Json = {}
    if rng.random() < 0.5:
        metadata["labels"] = {name: rng.choice("12") for name in _some(rng, "ab")}
    if rng.random() < 0.2:
        metadata["finalizers"] = [f"example.com/{name}" for name in _some(rng, "fg")]
    body = {"ConfigMap": _config_map, "Deployment": _deployment, "Service": _service, "Widget": _widget}[kind](rng)
    return {**body, "metadata": metadata} if metadata else body


def _config_map(rng: random.Random) -> Json:
    return {"data": {name: rng.choice("123") for name in _some(rng, "abcd")}}


def _deployment(rng: random.Random) -> Json:
    containers = [_container(rng, name) for name in _some(rng, "cde", least=1)]
    template: Json = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": containers}}
    if rng.random() < 0.3:
        template["spec"]["nodeSelector"] = {"disk": rng.choice("12")}
    spec: Json = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
    if rng.random() < 0.5:
        spec["replicas"] = rng.randrange(3)
    if rng.random() < 0.2:
        spec["strategy"] = {"type": "Recreate"}
    return {"spec": spec}


def _container(rng: random.Random, name: str) -> Json:
    container: Json = {"name": name, "image": f"i:{rng.randrange(2)}"}
    if rng.random() < 0.4:
        container["env"] = [{"name": key, "value": rng.choice("12")} for key in _some(rng, "KLM")]
    if rng.random() < 0.3:
        container["args"] = _some(rng, "xy")
    if rng.random() < 0.3:
        container["ports"] = [{"containerPort": port} for port in (80, 81)[: rng.randrange(1, 3)]]
    if rng.random() < 0.3:
        container["resources"] = {"requests": {"cpu": rng.choice(("1", "2"))}}
    return container


def _service(rng: random.Random) -> Json:
    ports = [{"name": name, "port": {"p": 80, "q": 81, "r": 82}[name]} for name in _some(rng, "pqr", least=1)]
    for port in ports:
        if rng.random() < 0.3:
            port["targetPort"] = rng.choice((8080, "http"))
    return {"spec": {"selector": {"app": rng.choice("12")}, "ports": ports}}


def _widget(rng: random.Random) -> Json:
    spec: Json = {}
    if rng.random() < 0.5:
        spec["size"] = rng.randrange(3)
    if rng.random() < 0.4:
        spec["tags"] = _some(rng, "tuv")
    if rng.random() < 0.3:
        spec["order"] = _some(rng, "tuv")
    if rng.random() < 0.4:
        spec["parts"] = [
            {"name": name, **({"side": "right"} if rng.random() < 0.3 else {}), "count": rng.randrange(2)}
            for name in _some(rng, "ab")
        ]
    if rng.random() < 0.3:
        spec["where"] = {"x": rng.randrange(2)}
    if rng.random() < 0.3:
        spec["notes"] = {name: rng.choice("12") for name in _some(rng, "mn")}
    if rng.random() < 0.3:
        spec["free"] = {"a": {"b": rng.randrange(2)}, "l": [1, rng.randrange(2)]}
    return {"spec": spec}


def _some(rng: random.Random, names: str, least: int = 0) -> list[str]:
    return rng.sample(names, rng.randint(least, len(names)))


def played(client: Client, kind: str, name: str, steps: list[Step]) -> Iterator[Json]:
    """After each step: what the client was told, and the object."""
    for step in steps:
        try:
            done = _carry_out(client, KINDS[kind], name, step)
            told: Json = {"kind": done["kind"]}
        except Refused as refused:
            causes = sorted((cause.get("field", ""), cause.get("message", "")) for cause in refused.causes)
            told = {"code": refused.code, "reason": refused.reason, "causes": causes, "message": _lines(refused)}
        yield {"told": told, "object": _stored(client, KINDS[kind], name)}


def _carry_out(client: Client, kind: Kind, name: str, step: Step) -> Json:
    path = f"{kind.path}/{name}" + (f"/{step.subresource}" if step.subresource else "")
    by = f"fieldManager={step.by}"
    body = {"apiVersion": kind.api_version, "kind": kind.kind, **step.body}
    body["metadata"] = {"name": name, **(step.body.get("metadata") or {})}
    if step.verb == "apply":
        return client.request("PATCH", f"{path}?{by}{'&force=true' if step.force else ''}", body, APPLY)
    if step.verb == "create":
        return client.request("POST", f"{kind.path}?{by}", body)
    if step.verb == "put":
        body["metadata"]["resourceVersion"] = client.request("GET", path)["metadata"]["resourceVersion"]
        return client.request("PUT", f"{path}?{by}", body)
    return client.request("PATCH", f"{path}?{by}", step.body, MERGE if step.verb == "merge" else STRATEGIC)


def _lines(refused: Refused) -> list[str]:
    """Of several conflicts with one manager the order is by chance."""
    text = str(refused)
    return sorted(text.splitlines()) if "conflict" in text else [text.partition(":")[0]]


def _stored(client: Client, kind: Kind, name: str) -> Json:
    try:
        obj = client.request("GET", f"{kind.path}/{name}")
    except Refused as refused:
        return {"code": refused.code}
    metadata = obj["metadata"]
    for field in ("uid", "resourceVersion", "creationTimestamp"):
        metadata.pop(field, None)
    for entry in metadata.get("managedFields", ()):
        entry["time"] = "time" in entry
    metadata.get("managedFields", []).sort(key=_rank)
    for field in ("clusterIP", "clusterIPs"):
        (obj.get("spec") or {}).pop(field, None)
    return obj


def _rank(entry: Json) -> tuple[Any, ...]:
    return tuple(entry.get(field, "") for field in ("operation", "manager", "subresource", "apiVersion"))
