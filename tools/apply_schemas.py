"""Write the table that tells how the objects of built-in kinds are merged by server-side apply.

    go mod download k8s.io/client-go@v0.37.1 k8s.io/apiextensions-apiserver@v0.37.1
    .venv/bin/python tools/apply_schemas.py v0.37.1 > src/pilotage/sandbox/kinds/apply_schemas.json

Which lists merge by which keys, which are sets and which parts are atomic are facts of the Kubernetes API. They are read
off the schemas that its Go clients carry. What an object looks like of which nothing is set (some fields cannot be left
out of JSON by Go) is asked of the Go types themselves.

    "types": {"core.v1.Container": {"args": "!", "env": "[name]core.v1.EnvVar", ...}}, "empty": {"v1 Pod": {...}}

Codes: the name of a type; `!` atomic; `?` as it comes; `[]` a set; `[key,key=default]T` a list of T with keys; `{}T` a
map of T. Fields with plain values are left out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from pilotage.sandbox.kinds.builtin_kinds import BUILTIN_TYPES

PREFIXES = (
    "io.k8s.api.",
    "io.k8s.apimachinery.pkg.apis.",
    "io.k8s.apimachinery.pkg.",
    "io.k8s.apiextensions-apiserver.pkg.apis.",
)
SCHEMAS = {
    "k8s.io/client-go": "applyconfigurations/internal/internal.go",
    "k8s.io/apiextensions-apiserver": "pkg/client/applyconfiguration/internal/internal.go",
}
EMPTY_OBJECTS = """
package main

import (
	"encoding/json"
	"os"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	apiextensions.AddToScheme(scheme.Scheme)
	empty := map[string]interface{}{}
	for kind := range scheme.Scheme.AllKnownTypes() {
		object, err := scheme.Scheme.New(schema.GroupVersionKind(kind))
		if err == nil {
			empty[kind.GroupVersion().String()+" "+kind.Kind] = object
		}
	}
	json.NewEncoder(os.Stdout).Encode(empty)
}
"""


def main() -> None:
    version = sys.argv[1]
    types: dict[str, dict[str, Any]] = {}
    for module, path in SCHEMAS.items():
        source = Path(go("env", "GOMODCACHE").strip(), f"{module}@{version}", path).read_text()
        text = re.search(r"typed\.YAMLObject\(`(.*?)`\)", source, re.S)
        assert text is not None
        types |= {kind["name"]: kind for kind in yaml.load(text[1], Loader=yaml.CSafeLoader)["types"]}
    empty = {name: obj for name, obj in empty_objects(version).items() if root_type(name) in types and is_wanted(name)}
    table: dict[str, dict[str, str]] = {}
    waiting = [root_type(name) for name in empty]
    while waiting:
        name = waiting.pop()
        if short(name) in table or name not in types:
            continue
        fields = types[name]["map"].get("fields", ())
        reached: list[str] = []
        coded = {field["name"]: code_of(types, field["type"], reached) for field in fields}
        table[short(name)] = {field: code for field, code in coded.items() if code}
        waiting.extend(reached)
    sys.stdout.write('{"types":{\n' + lines(table) + '\n},"empty":{\n' + lines(empty) + "\n}}\n")


def is_wanted(name: str) -> bool:
    """Kinds of stable versions, and others that are served."""
    api_version, _, kind = name.partition(" ")
    is_stable = re.fullmatch(r"v\d+", api_version.rpartition("/")[2]) is not None
    return is_stable or any((t.api_version, t.kind) == (api_version, kind) for t in BUILTIN_TYPES)


def lines(table: dict[str, Any]) -> str:
    return ",\n".join(f"{json.dumps(name)}:{json.dumps(table[name], separators=(',', ':'))}" for name in sorted(table))


def code_of(types: dict[str, Any], kind: dict[str, Any], reached: list[str]) -> str:
    """The code of a type; empty for plain values. Named types that it refers to are added to `reached`."""
    override = kind.get("elementRelationship")
    if "namedType" in kind:
        name = kind["namedType"]
        if name == "__untyped_deduced_":
            return "?"
        named = types[name]
        if name == "__untyped_atomic_" or override == "atomic":
            return "!"
        if "scalar" in named:
            return "?" if "map" in named else ""
        if "list" in named or not named["map"].get("fields"):
            return code_of(types, named, reached)
        if named["map"].get("elementRelationship") == "atomic":
            return "!"
        reached.append(name)
        return short(name)
    if "list" in kind:
        found = kind["list"]
        if found["elementRelationship"] == "atomic":
            return "!"
        if "keys" not in found:
            return "[]"
        keys = ",".join(keyed(types, found["elementType"], key) for key in found["keys"])
        return f"[{keys}]{code_of(types, found['elementType'], reached)}"
    if "map" in kind:
        found = kind["map"]
        if found.get("elementRelationship") == "atomic":
            return "!"
        if "elementType" not in found:
            return "!" if found.get("elementRelationship") == "atomic" else "{}"
        return "{}" + code_of(types, found["elementType"], reached)
    return ""


def keyed(types: dict[str, Any], element: dict[str, Any], key: str) -> str:
    """A key, with the value that it has where it is left out."""
    fields = types[element["namedType"]]["map"]["fields"]
    default = next((field.get("default") for field in fields if field["name"] == key), None)
    return key if default is None else f"{key}={json.dumps(default)}"


def root_type(name: str) -> str:
    api_version, _, kind = name.partition(" ")
    group, _, version = api_version.rpartition("/")
    short_group = group.partition(".")[0] or "core"
    package = PREFIXES[3] if short_group == "apiextensions" else PREFIXES[0]
    return f"{package}{short_group}.{version}.{kind}"


def short(name: str) -> str:
    for prefix in PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


def empty_objects(version: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        needs = "\n".join(f"require {module} {version}" for module in SCHEMAS)
        Path(folder, "go.mod").write_text(f"module empty\n{needs}\n")
        Path(folder, "main.go").write_text(EMPTY_OBJECTS)
        found: dict[str, Any] = json.loads(go("run", "-mod=mod", ".", cwd=folder))
        return found


def go(*arguments: str, cwd: str = ".") -> str:
    done = subprocess.run(["go", *arguments], cwd=cwd, capture_output=True, text=True, check=False, env=os.environ)
    if done.returncode:
        raise SystemExit(f"go {' '.join(arguments)}: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
