"""Services and who stands behind them: Endpoints and EndpointSlices of the pods that a selector matches.

Nothing routes to these addresses; clients and controllers read them. Which pods a service selects is kept from changes.
A pod counts once it has an address, and is ready when its Ready condition says so (`publishNotReadyAddresses`: at
once); one that is being deleted is terminating. Slices are planned in `endpoint_slices`. Endpoints that someone writes
for a service without a selector are mirrored into a slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from pilotage.sandbox.life.controllers.controller import CHILD_DELAY, ControllerContext, Due, Interest, Object
from pilotage.sandbox.life.controllers.endpoint_slices import PortGroup, plan_slices, ports_key
from pilotage.sandbox.life.facts import PodFacts
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.storage.store import Key

SERVICES: Final = "services"
ENDPOINTS: Final = "endpoints"
SLICES: Final = "endpointslices.discovery.k8s.io"
SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
SLICE_CONTROLLER: Final = "endpointslice-controller.k8s.io"

_MIRRORING: Final = "endpointslicemirroring-controller.k8s.io"
_SKIP_MIRROR: Final = "endpointslice.kubernetes.io/skip-mirror"
_MOST_ADDRESSES: Final = 1000
"""In an Endpoints object: what is beyond is found in slices only."""
_PER_SECOND: Final = 5_000
"""A service of many pods is looked at less often."""


class _Selected(msgspec.Struct):
    """What one service selects."""

    selector: Mapping[str, str]
    pods: dict[Key, None] = msgspec.field(default_factory=dict)

    def matches(self, pod: PodFacts) -> bool:
        return all(pod.labels.get(key) == value for key, value in self.selector.items())


class _ServiceSpec(msgspec.Struct):
    selector: dict[str, str] | None = None


class _Service(msgspec.Struct):
    spec: _ServiceSpec | None = None


class EndpointsController:
    name = "endpoints"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._selected: dict[str, dict[Key, _Selected]] = {}

    def interests(self) -> Mapping[str, Interest]:
        return {SERVICES: self._service_seen, "pods": self._pod_seen, ENDPOINTS: _service_of, SLICES: _service_of}

    def reconcile(self, key: Key) -> float | None:
        service = self._context.read(key)
        selected = self._selected.get(key.namespace, {}).get(key)
        if service is None or "deletionTimestamp" in service["metadata"]:
            self._clear(key)
            return None
        if service["spec"].get("type") == "ExternalName":
            return None
        if selected is None:
            self._mirror(key, service)
            return None
        pods = [pod for name in selected.pods if (pod := self._context.index.pod(name)) is not None]
        groups = self._groups(service, [pod for pod in pods if pod.ip and not pod.is_finished])
        self._write_slices(key, service, groups, SLICE_CONTROLLER)
        self._write_endpoints(key, service, groups)
        return None

    def _service_seen(self, seen: ObservedChange) -> Iterable[Due]:
        key = seen.key
        services = self._selected.setdefault(key.namespace, {})
        record = self._context.api.store.get(key) if seen.new is not None else None
        if record is None:
            services.pop(key, None)
            return (Due(key),)
        selector = _selector(record.body)
        known = services.get(key)
        if selector is None:
            services.pop(key, None)
        elif known is None or known.selector != selector:
            services[key] = selected = _Selected(selector)
            for one in self._context.api.store.list("pods", key.namespace):
                pod = self._context.index.pod(one.key)
                if pod is not None and selected.matches(pod):
                    selected.pods[one.key] = None
        return (Due(key),)

    def _pod_seen(self, seen: ObservedChange) -> Iterable[Due]:
        services = self._selected.get(seen.key.namespace)
        if not services:
            return ()
        pod = seen.new if isinstance(seen.new, PodFacts) else None
        is_same = pod is not None and isinstance(seen.old, PodFacts) and _shown(seen.old) == _shown(pod)
        if is_same:
            return ()
        dues: list[Due] = []
        for key, selected in services.items():
            if pod is not None and selected.matches(pod):
                selected.pods[pod.key] = None
            elif selected.pods.pop(seen.key, seen) is seen:
                continue
            dues.append(Due(key, CHILD_DELAY + len(selected.pods) / _PER_SECOND))
        return dues

    def _groups(self, service: Object, pods: Sequence[PodFacts]) -> list[PortGroup]:
        ports = service["spec"].get("ports") or ()
        is_named = any(isinstance(port.get("targetPort"), str) for port in ports)
        groups: dict[bytes, tuple[list[Object], list[Object]]] = {}
        for pod in pods:
            own = [_port(port, self._number(port, pod) if is_named else port.get("targetPort")) for port in ports]
            found = [port for port in own if port["port"] is not None]
            if ports and not found:
                continue
            group = groups.setdefault(ports_key(found), (found, []))
            group[1].append(self._endpoint(service, pod))
        return [PortGroup(*group) for group in groups.values()]

    def _number(self, port: Object, pod: PodFacts) -> int | None:
        """The port of this pod that a service means, perhaps by name."""
        target = port.get("targetPort")
        if not isinstance(target, str):
            return target
        obj = self._context.read(pod.key) or {"spec": {"containers": ()}}
        for container in obj["spec"]["containers"]:
            for one in container.get("ports") or ():
                if one.get("name") == target and one.get("protocol", "TCP") == port.get("protocol", "TCP"):
                    return int(one["containerPort"])
        return None

    def _endpoint(self, service: Object, pod: PodFacts) -> Object:
        is_ready = pod.is_ready or bool(service["spec"].get("publishNotReadyAddresses"))
        node = self._context.index.node(pod.node_name)
        zone = node.labels.get("topology.kubernetes.io/zone") if node is not None else None
        target = {"kind": "Pod", "namespace": pod.key.namespace, "name": pod.key.name, "uid": pod.uid}
        endpoint: Object = {
            "addresses": [pod.ip],
            "conditions": {
                "ready": is_ready and not pod.is_deleting,
                "serving": is_ready,
                "terminating": pod.is_deleting,
            },
            "targetRef": target,
            "nodeName": pod.node_name,
        }
        if zone:
            endpoint["zone"] = zone
        return endpoint

    def _write_slices(self, key: Key, service: Object, groups: Sequence[PortGroup], manager: str) -> None:
        existing = [obj for obj in self._slices(key, service) if obj["metadata"]["labels"].get(MANAGED_BY) == manager]
        changes = plan_slices(existing, groups)
        for obj in changes.delete:
            self._delete(Key(SLICES, key.namespace, obj["metadata"]["name"]))
        for obj in changes.update:
            self._context.write(Key(SLICES, key.namespace, obj["metadata"]["name"]), obj)
        for group in changes.create:
            self._context.create(SLICES, key.namespace, _new_slice(service, group, manager))

    def _slices(self, key: Key, service: Object) -> list[Object]:
        dependents = self._context.index.dependents(service["metadata"]["uid"])
        keys = [facts.key for facts in dependents if facts.key.resource == SLICES and not facts.is_deleting]
        return [obj for one in keys if (obj := self._context.read(one)) is not None]

    def _write_endpoints(self, key: Key, service: Object, groups: Sequence[PortGroup]) -> None:
        name = Key(ENDPOINTS, key.namespace, key.name)
        subsets = _subsets(groups)
        labels = dict(service["metadata"].get("labels") or {})
        labels[MANAGED_BY.replace("endpointslice.", "endpoints.")] = "endpoint-controller"
        if service["spec"].get("clusterIP") == "None":
            labels["service.kubernetes.io/headless"] = ""
        known = self._context.read(name)
        if known is None:
            obj: Object = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": key.name, "labels": labels}}
            self._context.create(ENDPOINTS, key.namespace, {**obj, **({"subsets": subsets} if subsets else {})})
        elif (known.get("subsets") or []) != subsets:
            known["subsets"] = subsets
            known["metadata"]["labels"] = labels
            self._context.write(name, known)

    def _mirror(self, key: Key, service: Object) -> None:
        """Endpoints of the user's own appear as slices too."""
        endpoints = self._context.read(Key(ENDPOINTS, key.namespace, key.name))
        labels = (endpoints["metadata"].get("labels") or {}) if endpoints is not None else {}
        if endpoints is None or labels.get(_SKIP_MIRROR) == "true":
            for obj in self._slices(key, service):
                if obj["metadata"]["labels"].get(MANAGED_BY) == _MIRRORING:
                    self._delete(Key(SLICES, key.namespace, obj["metadata"]["name"]))
            return
        groups = [
            PortGroup(
                [{"name": "", "protocol": "TCP", **port} for port in subset.get("ports") or ()],
                [
                    _mirrored(address, is_ready)
                    for field, is_ready in (("addresses", True), ("notReadyAddresses", False))
                    for address in subset.get(field) or ()
                ],
            )
            for subset in endpoints.get("subsets") or ()
        ]
        self._write_slices(key, service, groups, _MIRRORING)

    def _clear(self, key: Key) -> None:
        """Slices go with their service as its dependents, Endpoints by name."""
        endpoints = self._context.read(Key(ENDPOINTS, key.namespace, key.name))
        labels = (endpoints["metadata"].get("labels") or {}) if endpoints is not None else {}
        if MANAGED_BY.replace("endpointslice.", "endpoints.") in labels:
            self._delete(Key(ENDPOINTS, key.namespace, key.name))

    def _delete(self, key: Key) -> None:
        facts = self._context.index.get(key)
        if facts is not None:
            self._context.delete(facts)


def _subsets(groups: Sequence[PortGroup]) -> list[Object]:
    subsets: list[Object] = []
    left = _MOST_ADDRESSES
    for ports, endpoints in groups:
        living = [one for one in endpoints if not one["conditions"]["terminating"]][:left]
        left -= len(living)
        subset: Object = {}
        for field, is_ready in (("addresses", True), ("notReadyAddresses", False)):
            found = [_address(one) for one in living if one["conditions"]["ready"] == is_ready]
            if found:
                subset[field] = found
        if subset:
            subsets.append({**subset, **({"ports": list(ports)} if ports else {})})
    return subsets


def _address(endpoint: Object) -> Object:
    return {"ip": endpoint["addresses"][0], "nodeName": endpoint["nodeName"], "targetRef": endpoint["targetRef"]}


def _mirrored(address: Object, is_ready: bool) -> Object:
    endpoint: Object = {"addresses": [address["ip"]], "conditions": {"ready": is_ready}}
    for field in ("hostname", "nodeName", "targetRef"):
        if address.get(field):
            endpoint[field] = address[field]
    return endpoint


def _new_slice(service: Object, group: PortGroup, manager: str) -> Object:
    metadata = service["metadata"]
    labels = {**(metadata.get("labels") or {}), SERVICE_NAME: metadata["name"], MANAGED_BY: manager}
    if service["spec"].get("clusterIP") == "None":
        labels["service.kubernetes.io/headless"] = ""
    owner = {"apiVersion": "v1", "kind": "Service", "name": metadata["name"], "uid": metadata["uid"]}
    addresses = [address for endpoint in group.endpoints for address in endpoint["addresses"]]
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{metadata['name']}-",
            "labels": labels,
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "addressType": "IPv6" if addresses and ":" in addresses[0] else "IPv4",
        "ports": list(group.ports),
        "endpoints": list(group.endpoints),
    }


def _port(port: Object, number: int | None) -> Object:
    named: Object = {"name": port.get("name") or "", "protocol": port.get("protocol", "TCP"), "port": number}
    if port.get("appProtocol"):
        named["appProtocol"] = port["appProtocol"]
    return named


def _shown(pod: PodFacts) -> tuple[Any, ...]:
    return pod.ip, pod.is_ready, pod.is_deleting, pod.is_finished, pod.labels, pod.node_name


def _service_of(seen: ObservedChange) -> Iterable[Due]:
    """A slice or Endpoints that someone else changed or removed is put right."""
    name = seen.key.name if seen.key.resource == ENDPOINTS else seen.facts.labels.get(SERVICE_NAME)
    return (Due(Key(SERVICES, seen.key.namespace, name), CHILD_DELAY),) if name else ()


def _selector(body: bytes) -> dict[str, str] | None:
    try:
        spec = msgspec.json.decode(body, type=_Service).spec
    except msgspec.DecodeError:
        return None
    return spec.selector or None if spec is not None else None
