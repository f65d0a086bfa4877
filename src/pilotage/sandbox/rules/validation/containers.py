"""Containers and the volumes they mount."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pilotage.sandbox.rules.json_fields import Json
from pilotage.sandbox.rules.validation.field_rules import Rule, each, fields, nothing, one_of, optional
from pilotage.sandbox.rules.validation.names import label, port, port_name_problem
from pilotage.sandbox.rules.validation.problems import Errors, duplicate, invalid, not_found, required
from pilotage.sandbox.rules.validation.quantities import container_resources


def containers(spec: Json, path: str) -> Errors:
    """All containers of a pod, with names that are unique among them."""
    if not spec.get("containers"):
        return [required(f"{path}.containers")]
    rules = _CONTAINER_ON_HOST if spec.get("hostNetwork") is True else _CONTAINER
    seen: set[str] = set()
    errors: Errors = []
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            place = f"{path}.{field}[{index}]"
            errors += rules(container, place)
            errors += _mount_errors(spec, container, place)
            errors += _claim_errors(spec, container, place)
            name = container.get("name")
            if name in seen:
                errors.append(duplicate(f"{place}.name", name))
            seen.add(name or "")
    return errors


def volumes(volumes: Sequence[Json], path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        place, name = f"{path}[{index}]", volume.get("name")
        errors += _NAMED(volume, place)
        if name in seen:
            errors.append(duplicate(f"{place}.name", name))
        seen.add(name or "")
        errors += _SOURCES(volume, place)
    return errors


def _image(image: str, path: str) -> Errors:
    is_trimmed = image == image.strip()
    return [] if is_trimmed else [invalid(path, image, "must not have leading or trailing whitespace")]


def _environment_value(variable: Json, path: str) -> Errors:
    if variable.get("name") and variable.get("value") and variable.get("valueFrom"):
        return [invalid(f"{path}.valueFrom", "", "may not be specified when `value` is not empty")]
    return []


def _ports(rest: Rule) -> Rule:
    """The ports of a container: names that are unique among them, and the `rest`."""

    def check(ports: Sequence[Json], path: str) -> Errors:
        errors: Errors = []
        names: set[str] = set()
        for index, one in enumerate(ports):
            place, name = f"{path}[{index}]", one.get("name")
            if name:
                if problem := port_name_problem(name):
                    errors.append(invalid(f"{place}.name", name, problem))
                elif name in names:
                    errors.append(duplicate(f"{place}.name", name))
                names.add(name)
            errors += rest(one, place)
        return errors

    return check


def _same_on_host(one: Json, path: str) -> Errors:
    host_port = one.get("hostPort")
    if not host_port or port(host_port, path) or host_port == one.get("containerPort"):
        return []
    return [invalid(f"{path}.hostPort", host_port, "must match `containerPort` when `hostNetwork` is true")]


def _mount_errors(spec: Json, container: Json, path: str) -> Errors:
    mounts, devices = container.get("volumeMounts"), container.get("volumeDevices")
    if not mounts and not devices:
        return []
    errors: Errors = []
    targets: set[str] = set()
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    for field, target, used in (("volumeMounts", "mountPath", mounts), ("volumeDevices", "devicePath", devices)):
        for index, one in enumerate(used or ()):
            place = f"{path}.{field}[{index}]"
            errors += _target_errors(one.get(target), f"{place}.{target}", targets)
            name = one.get("name")
            if not name:
                errors.append(required(f"{place}.name"))
            elif name not in volumes:
                errors.append(not_found(f"{place}.name", name))
    return errors


def _target_errors(target: str | None, path: str, taken: set[str]) -> Errors:
    if not target:
        return [required(path)]
    if target in taken:
        return [invalid(path, target, "must be unique")]
    taken.add(target)
    return []


def _claim_errors(spec: Json, container: Json, path: str) -> Errors:
    used = (container.get("resources") or {}).get("claims")
    if not used:
        return []
    claims = {claim.get("name") for claim in spec.get("resourceClaims") or ()}
    return [
        not_found(f"{path}.resources.claims[{index}]", claim["name"])
        for index, claim in enumerate(used)
        if claim.get("name") and claim["name"] not in claims
    ]


def _container(port_rules: Rule) -> Rule:
    return fields(
        ("name!", label),
        ("image!", _image),
        ("imagePullPolicy", one_of("Always", "IfNotPresent", "Never")),
        ("terminationMessagePolicy", one_of("File", "FallbackToLogsOnError")),
        ("restartPolicy", one_of("Always", "Never", "OnFailure")),
        ("resources", container_resources),
        ("ports", _ports(port_rules)),
        ("env", each(fields(("name!", nothing), ("", _environment_value)))),
    )


_NUMBERS: Final = (("containerPort!", port), ("hostPort", optional(port)))
_PROTOCOL: Final = ("protocol!", one_of("TCP", "UDP", "SCTP"))
_CONTAINER: Final = _container(fields(*_NUMBERS, _PROTOCOL))
_CONTAINER_ON_HOST: Final = _container(fields(*_NUMBERS, ("", _same_on_host), _PROTOCOL))

_NAMED: Final = fields(("name!", label))
_SOURCES: Final = fields(
    ("persistentVolumeClaim", fields(("claimName!", nothing))),
    ("secret", fields(("secretName!", nothing))),
    ("configMap", fields(("name!", nothing))),
    ("hostPath", fields(("path!", nothing))),
    ("csi", fields(("driver!", nothing))),
    ("ephemeral", fields(("volumeClaimTemplate!", nothing))),
)
"""Fields without which a volume source points nowhere."""
