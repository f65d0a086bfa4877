"""Containers and the volumes they mount."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pilotage.sandbox.rules.validation.names import label_problem, port_name_problem, port_problem
from pilotage.sandbox.rules.validation.pod_shapes import Container, ContainerPort, PodSpec, Volume
from pilotage.sandbox.rules.validation.problems import Errors, duplicate, invalid, not_found, one_of, required
from pilotage.sandbox.rules.validation.quantities import resources_errors

_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")


def containers_errors(spec: PodSpec, path: str) -> Errors:
    """All containers of a pod, with names that are unique among them."""
    if not spec.containers:
        return [required(f"{path}.containers")]
    volumes = {volume.name for volume in spec.volumes} if spec.volumes else set()
    claims = {claim.name for claim in spec.resource_claims} if spec.resource_claims else set()
    seen: set[str] = set()
    errors: Errors = []
    for field, containers in (
        ("containers", spec.containers),
        ("initContainers", spec.init_containers),
        ("ephemeralContainers", spec.ephemeral_containers),
    ):
        for index, container in enumerate(containers or ()):
            place = f"{path}.{field}[{index}]"
            errors += _container_errors(container, place, on_host=spec.host_network is True)
            if container.volume_mounts or container.volume_devices:
                errors += _mount_errors(container, place, volumes)
            if container.resources is not None and container.resources.claims:
                errors += _claim_errors(container, place, claims)
            if container.name in seen:
                errors.append(duplicate(f"{place}.name", container.name))
            seen.add(container.name or "")
    return errors


def volumes_errors(volumes: Sequence[Volume], path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        place = f"{path}[{index}]"
        errors += _named(volume.name, f"{place}.name", label_problem)
        if volume.name in seen:
            errors.append(duplicate(f"{place}.name", volume.name))
        seen.add(volume.name or "")
        errors += _source_errors(volume, place)
    return errors


def _container_errors(container: Container, path: str, *, on_host: bool) -> Errors:
    errors = _named(container.name, f"{path}.name", label_problem)
    image = container.image
    if not image:
        errors.append(required(f"{path}.image"))
    elif image != image.strip():
        errors.append(invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))
    errors += one_of(f"{path}.imagePullPolicy", container.image_pull_policy, _PULL_POLICIES)
    errors += one_of(f"{path}.terminationMessagePolicy", container.termination_message_policy, _MESSAGE_POLICIES)
    errors += one_of(f"{path}.restartPolicy", container.restart_policy, _RESTART_POLICIES)
    if container.resources is not None:
        errors += resources_errors(container.resources, f"{path}.resources")
    if container.ports:
        errors += _ports_errors(container.ports, f"{path}.ports", on_host=on_host)
    for index, variable in enumerate(container.env or ()):
        if not variable.name:
            errors.append(required(f"{path}.env[{index}].name"))
        elif variable.value and variable.value_from:
            problem = "may not be specified when `value` is not empty"
            errors.append(invalid(f"{path}.env[{index}].valueFrom", "", problem))
    return errors


def _ports_errors(ports: Sequence[ContainerPort], path: str, *, on_host: bool) -> Errors:
    errors: Errors = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        place = f"{path}[{index}]"
        if port.name:
            if problem := port_name_problem(port.name):
                errors.append(invalid(f"{place}.name", port.name, problem))
            elif port.name in names:
                errors.append(duplicate(f"{place}.name", port.name))
            names.add(port.name)
        errors += _port_number_errors(port, place, on_host=on_host)
        if not port.protocol:
            errors.append(required(f"{place}.protocol"))
        errors += one_of(f"{place}.protocol", port.protocol, _PROTOCOLS)
    return errors


def _port_number_errors(port: ContainerPort, path: str, *, on_host: bool) -> Errors:
    errors: Errors = []
    if not port.container_port:
        errors.append(required(f"{path}.containerPort"))
    elif problem := port_problem(port.container_port):
        errors.append(invalid(f"{path}.containerPort", port.container_port, problem))
    if port.host_port:
        if problem := port_problem(port.host_port):
            errors.append(invalid(f"{path}.hostPort", port.host_port, problem))
        elif on_host and port.host_port != port.container_port:
            problem = "must match `containerPort` when `hostNetwork` is true"
            errors.append(invalid(f"{path}.hostPort", port.host_port, problem))
    return errors


def _mount_errors(container: Container, path: str, volumes: set[str | None]) -> Errors:
    errors: Errors = []
    targets: set[str] = set()
    for index, mount in enumerate(container.volume_mounts or ()):
        place = f"{path}.volumeMounts[{index}]"
        errors += _target_errors(mount.mount_path, f"{place}.mountPath", targets)
        errors += _volume_name_errors(mount.name, f"{place}.name", volumes)
    for index, device in enumerate(container.volume_devices or ()):
        place = f"{path}.volumeDevices[{index}]"
        errors += _target_errors(device.device_path, f"{place}.devicePath", targets)
        errors += _volume_name_errors(device.name, f"{place}.name", volumes)
    return errors


def _volume_name_errors(name: str | None, path: str, volumes: set[str | None]) -> Errors:
    if not name:
        return [required(path)]
    return [] if name in volumes else [not_found(path, name)]


def _target_errors(target: str | None, path: str, taken: set[str]) -> Errors:
    if not target:
        return [required(path)]
    if target in taken:
        return [invalid(path, target, "must be unique")]
    taken.add(target)
    return []


def _claim_errors(container: Container, path: str, claims: set[str | None]) -> Errors:
    used = container.resources.claims if container.resources and container.resources.claims else ()
    return [
        not_found(f"{path}.resources.claims[{index}]", claim.name)
        for index, claim in enumerate(used)
        if claim.name and claim.name not in claims
    ]


def _source_errors(volume: Volume, path: str) -> Errors:
    """Fields without which a volume source points nowhere."""
    errors: Errors = []
    if volume.persistent_volume_claim is not None and not volume.persistent_volume_claim.claim_name:
        errors.append(required(f"{path}.persistentVolumeClaim.claimName"))
    if volume.secret is not None and not volume.secret.secret_name:
        errors.append(required(f"{path}.secret.secretName"))
    if volume.config_map is not None and not volume.config_map.name:
        errors.append(required(f"{path}.configMap.name"))
    if volume.host_path is not None and not volume.host_path.path:
        errors.append(required(f"{path}.hostPath.path"))
    if volume.csi is not None and not volume.csi.driver:
        errors.append(required(f"{path}.csi.driver"))
    if volume.ephemeral is not None and volume.ephemeral.volume_claim_template is None:
        errors.append(required(f"{path}.ephemeral.volumeClaimTemplate"))
    return errors


def _named(name: str | None, path: str, rule: Callable[[str], str]) -> Errors:
    if not name:
        return [required(path)]
    problem = rule(name)
    return [invalid(path, name, problem)] if problem else []
