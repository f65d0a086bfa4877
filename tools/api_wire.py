"""Write the table of field numbers that the sandbox reads protobuf request bodies with.

    go mod download k8s.io/{api,apimachinery,apiextensions-apiserver,kube-aggregator}@v0.37.1
    M=$(go env GOMODCACHE)/k8s.io
    .venv/bin/python tools/api_wire.py $M/{api,apimachinery,apiextensions-apiserver,kube-aggregator}@v0.37.1 \
        > src/pilotage/sandbox/http/api_wire.json

Numbers, names and types are facts of the Kubernetes API. They are read off its .proto files; the Go files beside them
tell the JSON name of a field, whether it is inlined, and whether a zero in it means something (a pointer).

    "core.v1.Volume": {"1": "name=string", "2": "=core.v1.VolumeSource"}

`name=code`; no name: the fields of the message stand in the parent; `*`: keep zeros; `[x]` repeated, `{x}` a map.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pilotage.sandbox.kinds.builtin_kinds import BUILTIN_TYPES

ALSO_NEEDED = ("policy.v1.Eviction", "autoscaling.v1.Scale", "authentication.v1.TokenRequest", "meta.v1.DeleteOptions")
STABLE = re.compile(r"\w+\.v\d+\.\w+")
SCALARS = {
    "string": "string",
    "bytes": "bytes",
    "bool": "bool",
    "double": "double",
    **dict.fromkeys(("int32", "int64", "uint32", "uint64"), "int"),
}
SPECIAL = {
    "meta.v1.Time": "time",
    "meta.v1.MicroTime": "microtime",
    "meta.v1.Duration": "duration",
    "meta.v1.FieldsV1": "raw",
    "runtime.RawExtension": "raw",
    "resource.Quantity": "quantity",
    "apiextensions.v1.JSON": "raw",
    "intstr.IntOrString": "int-or-string",
}
FIELD = re.compile(r"^\s*(optional|repeated|required|map<string, ([\w.]+)>)\s+(?:([\w.]+)\s+)?(\w+)\s*=\s*(\d+);", re.M)
GO_FIELD = re.compile(r'^\s+(?:\w+\s+)?(\S+)\s+`json:"([^",]*)[^`]*protobuf:"\w+,(\d+)', re.M)

Fields = dict[int, tuple[str, str]]


def main() -> None:
    messages: dict[str, Fields] = {}
    go_fields: dict[str, Fields] = {}
    for root in sys.argv[1:]:
        for proto in sorted(Path(root).rglob("generated.proto")):
            package = short_package(proto.read_text())
            messages.update(messages_in(package, proto.read_text()))
            for source in sorted({*proto.parent.glob("*types*.go"), *proto.parent.glob("meta.go")}):
                go_fields.update(structs_in(package, source.read_text()))
    table: dict[str, dict[str, str]] = {}
    waiting = [*roots(messages), *ALSO_NEEDED]
    while waiting:
        name = waiting.pop()
        if name in table or name not in messages:
            continue
        table[name] = {
            str(number): field_text(messages, go_fields.get(name, {}).get(number), proto_name, code)
            for number, (proto_name, code) in sorted(messages[name].items())
        }
        waiting.extend(re.sub(r"^.*?=\*?", "", text).strip("[]{}") for text in table[name].values())
    lines = [f"{json.dumps(name)}:{json.dumps(table[name], separators=(',', ':'))}" for name in sorted(table)]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")


def roots(messages: dict[str, Fields]) -> Iterator[str]:
    """The kinds that are served, and those of all stable versions."""
    for name, fields in messages.items():
        if STABLE.fullmatch(name) and fields.get(1) == ("metadata", "meta.v1.ObjectMeta"):
            yield name
    for resource_type in BUILTIN_TYPES:
        if not resource_type.is_custom:
            yield f"{resource_type.group.partition('.')[0] or 'core'}.{resource_type.version}.{resource_type.kind}"


def short_package(text: str) -> str:
    found = re.search(r"^package ([\w.]+);", text, re.M)
    return short_name(found[1]) if found else ""


def short_name(name: str) -> str:
    plain = name.lstrip(".")
    for prefix in (
        "k8s.io.api.",
        "k8s.io.apimachinery.pkg.apis.",
        "k8s.io.apimachinery.pkg.api.",
        "k8s.io.apiextensions_apiserver.pkg.apis.",
        "k8s.io.kube_aggregator.pkg.apis.",
    ):
        plain = plain.removeprefix(prefix)
    return plain.removeprefix("k8s.io.apimachinery.pkg.util.").removeprefix("k8s.io.apimachinery.pkg.")


def messages_in(package: str, text: str) -> Iterator[tuple[str, Fields]]:
    for found in re.finditer(r"^message (\w+) \{(.*?)^\}", text, re.M | re.S):
        fields: Fields = {}
        for label, map_value, plain, name, number in FIELD.findall(re.sub(r"//.*", "", found[2])):
            code = code_of(package, map_value or plain)
            wrapped = f"{{{code}}}" if map_value else f"[{code}]" if label == "repeated" else code
            fields[int(number)] = (name, wrapped)
        yield f"{package}.{found[1]}", fields


def code_of(package: str, proto_type: str) -> str:
    if proto_type in SCALARS:
        return SCALARS[proto_type]
    name = short_name(proto_type)
    return SPECIAL.get(name, name) if "." in name else SPECIAL.get(f"{package}.{name}", f"{package}.{name}")


def structs_in(package: str, text: str) -> Iterator[tuple[str, Fields]]:
    for found in re.finditer(r"^type (\w+) struct \{(.*?)^\}", text, re.M | re.S):
        fields = {int(number): (name, go_type) for go_type, name, number in GO_FIELD.findall(found[2])}
        yield f"{package}.{found[1]}", fields


def field_text(messages: dict[str, Fields], go: tuple[str, str] | None, proto_name: str, code: str) -> str:
    name, go_type = go if go is not None else (proto_name, "")
    inner = code.strip("[]{}")
    if messages.get(inner) == {1: ("items", "[string]")}:
        code = code.replace(inner, "strings")
    # Without a JSON name in Go, the message stands for one of its fields: an empty one counts.
    is_pointer = go_type.startswith("*") or (go is None and code in messages)
    return f"{name}={'*' if is_pointer else ''}{code}"


if __name__ == "__main__":
    main()
