"""What a request asks for, in the words in which permissions are granted: a path, or a resource of an API group."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from pilotage.serve.page import PageRequest

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class PathAccess(Struct, frozen=True):
    verb: str
    path: str

    def attributes(self) -> dict[str, Any]:
        """Of a SubjectAccessReview."""
        return {"nonResourceAttributes": {"path": self.path, "verb": self.verb}}

    def refused(self, user: str) -> str:
        return f'forbidden: User "{user}" cannot {self.verb} path "{self.path}"'


class ResourceAccess(Struct, frozen=True):
    verb: str
    group: str
    version: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def attributes(self) -> dict[str, Any]:
        fields = {
            "verb": self.verb,
            "group": self.group,
            "version": self.version,
            "resource": self.resource,
            "subresource": self.subresource,
            "namespace": self.namespace,
            "name": self.name,
        }
        return {"resourceAttributes": {key: value for key, value in fields.items() if value}}

    def refused(self, user: str) -> str:
        whole = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        scope = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        return (
            f'{self.resource}.{self.group} "{self.name}" is forbidden: User "{user}" cannot {self.verb} '
            f'resource "{whole}" in API group "{self.group}" {scope}'
        )


Access = PathAccess | ResourceAccess


def access_of(request: PageRequest) -> Access:
    """/apis/<group>/<version>/[namespaces/<namespace>/]<resource>[/<name>[/<subresource>]], or just a path."""
    match request.path.strip("/").split("/"):
        case ["apis", group, version, "namespaces", namespace, resource, *rest]:
            return _resource(request.method, group, version, namespace, [resource, *rest])
        case ["apis", group, version, resource, *rest]:
            return _resource(request.method, group, version, "", [resource, *rest])
        case _:
            return PathAccess(request.method.lower(), request.path)


def _resource(method: str, group: str, version: str, namespace: str, parts: list[str]) -> ResourceAccess:
    resource, name, subresource, *_ = [*parts, "", ""]
    verb = _VERBS.get(method, "get" if name else "list")
    return ResourceAccess(verb, group, version, resource, subresource, namespace, name)
