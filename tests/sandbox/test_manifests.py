from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.sandbox.manifests import ManifestError, read_manifests

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_all_documents_of_a_file_are_read_in_order(tmp_path: Path) -> None:
    file = write(tmp_path / "all.yaml", POD + "---\n---\n" + POD.replace("name: a", "name: b"))
    manifests = read_manifests([file])
    assert [(manifest.name, manifest.where) for manifest in manifests] == [
        ("a", f"{file}: document 1"),
        ("b", f"{file}: document 3"),
    ]


def test_a_directory_stands_for_its_manifest_files_by_name(tmp_path: Path) -> None:
    write(tmp_path / "2.yml", POD.replace("name: a", "name: second"))
    write(tmp_path / "1.json", '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "first"}}')
    write(tmp_path / "notes.txt", "not: [yaml")
    (tmp_path / "deeper.yaml").mkdir()
    assert [manifest.name for manifest in read_manifests([tmp_path])] == ["first", "second"]


def test_a_list_stands_for_its_items(tmp_path: Path) -> None:
    items = 'items:\n- {apiVersion: v1, kind: Node, metadata: {name: "n"}}\n- {apiVersion: v1, kind: Pod, metadata: {}}'
    file = write(tmp_path / "list.yaml", f"apiVersion: v1\nkind: List\n{items}\n")
    with pytest.raises(ManifestError) as refused:
        read_manifests([file])
    assert refused.value.problems == (
        f"{file}: document 1: items[1]: Pod: metadata.name: expected a text, got nothing",
    )


def test_items_of_a_typed_list_take_their_kind_from_it(tmp_path: Path) -> None:
    file = write(tmp_path / "pods.yaml", "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a}\n")
    assert [(m.kind, m.api_version, m.name) for m in read_manifests([file])] == [("Pod", "v1", "a")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a\n- b", "document 1: expected an object, got a list"),
        ("just words", "document 1: expected an object, got text"),
        ("kind: Pod\nmetadata: {name: a}", "document 1: apiVersion: expected a text, got nothing"),
        ("apiVersion: v1\nkind: [Pod]\nmetadata: {name: a}", "document 1: kind: expected a text, got a list"),
        ("apiVersion: v1\nkind: Pod", "document 1: Pod: metadata: expected an object, got nothing"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: 5}", "Pod: metadata.name: expected a text, got number 5"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}", "Pod: metadata.generateName: would make another"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: 1}", "Pod a: metadata.namespace: expected a text"),
        ("a: [", "document 1: line 2, column 1: is no valid YAML"),
    ],
)
def test_what_is_no_object_is_named(tmp_path: Path, text: str, problem: str) -> None:
    file = write(tmp_path / "bad.yaml", text)
    with pytest.raises(ManifestError) as refused:
        read_manifests([file])
    (told,) = refused.value.problems
    assert told.startswith(f"{file}: ") and problem in told


def test_every_problem_of_every_file_is_reported_at_once(tmp_path: Path) -> None:
    first = write(tmp_path / "first.yaml", "kind: Pod\n---\nkind: Pod")
    missing = tmp_path / "missing.yaml"
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ManifestError) as refused:
        read_manifests([first, missing, empty])
    assert len(refused.value.problems) == 4
    assert f"{missing}: cannot be read: no such file or directory" in refused.value.problems
