"""The environment of a simulated container, as a kubelet makes it.

    variables of services -> envFrom (ConfigMaps, Secrets) -> env: values, fields of the pod, resources, keys

Later ones replace earlier ones of the same name. A ConfigMap, Secret or key that is not there adds nothing.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from pilotage.model.quantity import parse_quantity
from pilotage.sandbox.rules.json_fields import dict_or_empty, dicts_in, nested

Object = dict[str, Any]

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_REFERENCE: Final = re.compile(r"\$(\$|\(([^()\s]+)\))")
_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


class EnvSources(Protocol):
    """What is read of the cluster around the pod."""

    def find(self, resource: str, namespace: str, name: str) -> Object | None: ...

    def list(self, resource: str, namespace: str | None = None) -> Sequence[Object]: ...


def container_env(pod: Object, container: Object, around: EnvSources) -> Callable[[], Mapping[str, str]]:
    """The environment, put together when it is asked for."""
    return lambda: _environment(pod, container, around)


def _environment(pod: Object, container: Object, around: EnvSources) -> dict[str, str]:
    env = {"PATH": _PATH, "HOSTNAME": str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63]}
    env.update(_of_services(pod, around))
    namespace = pod["metadata"].get("namespace", "")
    for source in dicts_in(container, "envFrom"):
        prefix = str(source.get("prefix") or "")
        for field, resource in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
            name = nested(source, field, "name")
            if name:
                env.update({prefix + key: value for key, value in _data(around, resource, namespace, name).items()})
    for variable in dicts_in(container, "env"):
        value = _value(pod, container, variable, around)
        if value is not None:
            env[str(variable["name"])] = _REFERENCE.sub(lambda match: _referred(match, env), value)
    return {**env, "HOME": env.get("HOME", "/root")}


def _referred(match: re.Match[str], env: Mapping[str, str]) -> str:
    return "$" if match[1] == "$" else env.get(match[2], match[0])


def _value(pod: Object, container: Object, variable: Object, around: EnvSources) -> str | None:
    source = variable.get("valueFrom")
    if not source:
        return str(variable.get("value") or "")
    if source.get("fieldRef"):
        return field_value(pod, str(source["fieldRef"].get("fieldPath")))
    if source.get("resourceFieldRef"):
        return _resource(pod, container, source["resourceFieldRef"], around)
    namespace = pod["metadata"].get("namespace", "")
    for field, resource in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
        if source.get(field):
            return _data(around, resource, namespace, source[field].get("name", "")).get(source[field].get("key", ""))
    return None


def field_value(pod: Object, path: str) -> str:
    """A field of the pod by its path, such as `status.podIP` or `metadata.labels['app']`."""
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript is not None:
        return str((pod["metadata"].get(subscript[1]) or {}).get(subscript[2], ""))
    if path in ("status.podIPs", "status.hostIPs"):
        return ",".join(str(one.get("ip")) for one in dicts_in(pod.get("status"), path.partition(".")[2]))
    value = nested(pod, *path.split("."))
    return value if isinstance(value, str) else ""


def _data(around: EnvSources, resource: str, namespace: str, name: str) -> dict[str, str]:
    """What a ConfigMap or a Secret holds, as text."""
    found = around.find(resource, namespace, name) or {}
    data = {key: str(value) for key, value in dict_or_empty(found.get("data")).items()}
    return {key: _decoded(value) for key, value in data.items()} if resource == "secrets" else data


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text).decode("utf-8", errors="replace")
    except (ValueError, binascii.Error):
        return ""


def _resource(pod: Object, container: Object, reference: Object, around: EnvSources) -> str | None:
    """An amount of the container or, of a limit that it does not have, of its node; in units of the divisor."""
    of = reference.get("containerName")
    if of:
        containers = [*dicts_in(pod["spec"], "containers"), *dicts_in(pod["spec"], "initContainers")]
        container = next((one for one in containers if one["name"] == of), container)
    kind, _, resource = str(reference.get("resource")).partition(".")
    amount = nested(container, "resources", kind, resource)
    if amount is None and kind == "limits":
        node = around.find("nodes", "", str(pod["spec"].get("nodeName")))
        amount = nested(node, "status", "allocatable", resource)
    divisor = parse_quantity(reference.get("divisor") or "1") or 1
    return str(-(-parse_quantity(amount or 0) // divisor))


def _of_services(pod: Object, around: EnvSources) -> Iterator[tuple[str, str]]:
    namespace = pod["metadata"].get("namespace", "")
    has_links = pod["spec"].get("enableServiceLinks") is not False
    services = [*(around.list("services", namespace) if has_links else ())]
    if namespace != "default" or not has_links:
        services += [one for one in around.list("services", "default") if one["metadata"]["name"] == "kubernetes"]
    for service in services:
        address, ports = nested(service, "spec", "clusterIP"), dicts_in(service.get("spec"), "ports")
        if not address or address == "None" or not ports:
            continue
        prefix = service["metadata"]["name"].upper().replace("-", "_")
        yield f"{prefix}_SERVICE_HOST", address
        yield f"{prefix}_SERVICE_PORT", str(ports[0]["port"])
        for port in ports:
            if port.get("name"):
                yield f"{prefix}_SERVICE_PORT_{port['name'].upper().replace('-', '_')}", str(port["port"])
        yield f"{prefix}_PORT", _url(address, ports[0])
        for port in ports:
            protocol = str(port.get("protocol") or "TCP")
            name = f"{prefix}_PORT_{port['port']}_{protocol}"
            yield name, _url(address, port)
            yield f"{name}_PROTO", protocol.lower()
            yield f"{name}_PORT", str(port["port"])
            yield f"{name}_ADDR", address


def _url(address: str, port: Object) -> str:
    host = f"[{address}]" if ":" in address else address
    return f"{str(port.get('protocol') or 'TCP').lower()}://{host}:{port['port']}"
