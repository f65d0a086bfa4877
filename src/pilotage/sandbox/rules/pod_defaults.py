"""What the API server fills in for pods and pod templates.

Defaults are set in place before admission and validation, on input that has not been checked yet: a value of the wrong
type is left alone for validation to name. `default_pod_spec` serves pods and all templates; `default_pod` adds what
belongs to a pod as an object: requests from limits and the initial status.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pilotage.sandbox.rules.effective_requests import container_requests, is_pod_level_resource
from pilotage.sandbox.rules.json_fields import Json, dict_or_empty, dicts_in, fill, nested
from pilotage.sandbox.rules.qos import qos_class

_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_SPEC: Final = (
    ("restartPolicy", "Always"),
    ("terminationGracePeriodSeconds", 30),
    ("dnsPolicy", "ClusterFirst"),
    ("schedulerName", "default-scheduler"),
)
_CONTAINER: Final = (
    ("terminationMessagePath", "/dev/termination-log"),
    ("terminationMessagePolicy", "File"),
)
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE: Final = (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3))
_VOLUME_MODE: Final = 0o644
_VOLUME_SOURCES: Final[Mapping[str, tuple[tuple[str, Any], ...]]] = {
    "secret": (("defaultMode", _VOLUME_MODE),),
    "configMap": (("defaultMode", _VOLUME_MODE),),
    "downwardAPI": (("defaultMode", _VOLUME_MODE),),
    "projected": (("defaultMode", _VOLUME_MODE),),
    "hostPath": (("type", ""),),
    "iscsi": (("iscsiInterface", "default"),),
    "rbd": (("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")),
    "azureDisk": (("cachingMode", "ReadWrite"), ("kind", "Shared"), ("fsType", "ext4"), ("readOnly", False)),
    "scaleIO": (("storageMode", "ThinProvisioned"), ("fsType", "xfs")),
}


def default_pod(pod: Json) -> None:
    """Defaults of a pod object."""
    spec = pod.get("spec")
    if type(spec) is not dict:
        return
    default_pod_spec(spec)
    fill(spec, (("enableServiceLinks", True),))
    for container in dicts_in(spec, "containers") + dicts_in(spec, "initContainers"):
        _requests_from_limits(container.get("resources"))
    if type(spec.get("resources")) is dict:
        _pod_level_requests(spec)
    _initial_status(pod, spec)


def default_pod_spec(spec: Json) -> None:
    """Defaults of the spec of a pod or a template."""
    fill(spec, _SPEC)
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    on_host = spec.get("hostNetwork") is True
    for container in dicts_in(spec, "containers"):
        _default_container(container, on_host)
    for field in ("initContainers", "ephemeralContainers"):
        if field in spec:
            for container in dicts_in(spec, field):
                _default_container(container, on_host)
    if "volumes" in spec:
        for volume in dicts_in(spec, "volumes"):
            _default_volume(volume)
    # The old name of the field is kept in step for old clients.
    if spec.get("serviceAccountName") is None and spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]


def _default_container(container: Json, on_host: bool) -> None:
    fill(container, _CONTAINER)
    if container.get("imagePullPolicy") is None:
        container["imagePullPolicy"] = _pull_policy(container.get("image"))
    if container.get("resources") is None:
        container["resources"] = {}
    if "ports" in container:
        for port in dicts_in(container, "ports"):
            _default_port(port, on_host)
    for name in _PROBES:
        probe = container.get(name)
        if type(probe) is dict:
            fill(probe, _PROBE)
            _default_handler(probe)
    if type(container.get("lifecycle")) is dict:
        for hook in ("postStart", "preStop"):
            handler = container["lifecycle"].get(hook)
            if type(handler) is dict:
                _default_handler(handler)
    if "env" in container:
        for variable in dicts_in(container, "env"):
            source = variable.get("valueFrom")
            if type(source) is dict:
                _default_field_ref(source)


def _pull_policy(image: Any) -> str:
    """Always for the tag `latest` (given or meant), IfNotPresent for any other tag and for a digest."""
    if not isinstance(image, str) or "@" in image:
        return "IfNotPresent"
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return "IfNotPresent" if colon and tag != "latest" else "Always"


def _default_port(port: Json, on_host: bool) -> None:
    if port.get("protocol") is None:
        port["protocol"] = "TCP"
    if on_host and not port.get("hostPort") and "containerPort" in port:
        port["hostPort"] = port["containerPort"]


def _default_handler(handler: Json) -> None:
    request = handler.get("httpGet")
    if type(request) is dict:
        fill(request, (("path", "/"), ("scheme", "HTTP")))
    call = handler.get("grpc")
    if type(call) is dict:
        fill(call, (("service", ""),))


def _default_field_ref(source: Json) -> None:
    reference = source.get("fieldRef")
    if type(reference) is dict:
        fill(reference, (("apiVersion", "v1"),))


def _default_volume(volume: Json) -> None:
    if len(volume) == 1 and "name" in volume:
        volume["emptyDir"] = {}
        return
    for name, defaults in _VOLUME_SOURCES.items():
        source = volume.get(name)
        if type(source) is dict:
            fill(source, defaults)
    for item in dicts_in(volume.get("downwardAPI"), "items"):
        _default_field_ref(item)
    for source in dicts_in(volume.get("projected"), "sources"):
        token = source.get("serviceAccountToken")
        if type(token) is dict:
            fill(token, (("expirationSeconds", 3600),))
        for item in dicts_in(source.get("downwardAPI"), "items"):
            _default_field_ref(item)
    template = dict_or_empty(dict_or_empty(volume.get("ephemeral")).get("volumeClaimTemplate"))
    if type(template.get("spec")) is dict:
        fill(template["spec"], (("volumeMode", "Filesystem"),))


def _requests_from_limits(resources: Any) -> None:
    if type(resources) is not dict:
        return
    limits = resources.get("limits")
    if type(limits) is not dict or not limits:
        return
    requests = resources.get("requests")
    if requests is None:
        resources["requests"] = dict(limits)
    elif type(requests) is dict:
        for name, limit in limits.items():
            requests.setdefault(name, limit)


def _pod_level_requests(spec: Json) -> None:
    """A pod-level limit without request: the sum of what the containers request, else the limit itself."""
    resources = spec["resources"]
    limits, requests = resources.get("limits"), resources.get("requests")
    if type(limits) is not dict or not limits or not (requests is None or type(requests) is dict):
        return
    filled: Json = dict(requests or {})
    for name, amount in container_requests(spec).items():
        if is_pod_level_resource(name):
            filled.setdefault(name, amount)
    for name, amount in limits.items():
        if is_pod_level_resource(name):
            filled.setdefault(name, amount)
    if filled:
        resources["requests"] = filled


def _initial_status(pod: Json, spec: Json) -> None:
    status = pod.get("status")
    if status is None:
        status = pod["status"] = {}
    if type(status) is not dict:
        return
    if status.get("phase") is None:
        status["phase"] = "Pending"
        if spec.get("schedulingGates") and not status.get("conditions"):
            created = nested(pod, "metadata", "creationTimestamp")
            status["conditions"] = [_GATED | ({"lastTransitionTime": created} if created else {})]
    if status.get("qosClass") is None:
        status["qosClass"] = qos_class(spec)


def merge_label_keys(pod: Json) -> None:
    """`matchLabelKeys` and `mismatchLabelKeys` of a new pod become part of the selectors beside them.

    The API server does this once, with the labels that the pod has when it is created, so that a scheduler need not
    know the keys and labels changed later do not matter. It runs after validation, which rejects keys that the author's
    own selector names.
    """
    spec = dict_or_empty(pod.get("spec"))
    if "affinity" not in spec and "topologySpreadConstraints" not in spec:
        return
    labels = dict_or_empty(nested(pod, "metadata", "labels"))
    for term in (*_affinity_terms(spec), *dicts_in(spec, "topologySpreadConstraints")):
        _add_to_selector(term, "matchLabelKeys", "In", labels)
        _add_to_selector(term, "mismatchLabelKeys", "NotIn", labels)


def _affinity_terms(spec: Json) -> Iterator[Json]:
    for direction in ("podAffinity", "podAntiAffinity"):
        affinity = nested(spec, "affinity", direction)
        yield from dicts_in(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
        for weighted in dicts_in(affinity, "preferredDuringSchedulingIgnoredDuringExecution"):
            yield dict_or_empty(weighted.get("podAffinityTerm"))


def _add_to_selector(term: Json, field: str, operator: str, labels: Mapping[str, str]) -> None:
    """One requirement per key that the pod has a label for; the other keys mean nothing."""
    requirements = [
        {"key": key, "operator": operator, "values": [labels[key]]} for key in term.get(field) or () if key in labels
    ]
    if requirements:
        selector = term["labelSelector"]
        selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *requirements]
