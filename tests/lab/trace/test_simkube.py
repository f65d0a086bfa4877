"""SimKube's traces become traces of pods, whichever version they have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilotage.lab.trace.content import Redaction
from pilotage.lab.trace.openb import ImportProblem
from pilotage.lab.trace.simkube import SimKubeTrace

from .making import told

CONFIG = {"trackedObjects": {"apps/v1.Deployment": {"podSpecTemplatePath": "/spec/template", "trackLifecycle": True}}}
LIVES: list[Any] = [{"Finished": [1010, 1040]}, {"Running": 1020}, "Empty"]


def deployment(replicas: int = 2, cpu: str = "1", *, types_apart: bool = False) -> dict[str, Any]:
    container = {
        "name": "c",
        "image": "i",
        "env": [{"name": "X", "value": "secret"}],
        "resources": {"requests": {"cpu": cpu}},
    }
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    types = {"apiVersion": "apps/v1", "kind": "Deployment"}
    obj = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": replicas, "template": template}}
    return {**({"types": types} if types_apart else types), **obj}


def events(*changes: tuple[int, list[dict[str, Any]], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [{"ts": ts, "applied_objs": applied, "deleted_objs": deleted} for ts, applied, deleted in changes]


EVENTS = events((1000, [], []), (1005, [deployment()], []), (1100, [], [deployment()]))


def written(path: Path, document: Any) -> Path:
    path.write_bytes(msgspec.msgpack.encode(document))
    return path


def imported(path: Path, document: Any) -> list[tuple[Any, ...]]:
    return told(SimKubeTrace(written(path / "t.sktrace", document), Redaction()).records())


VERSIONS = {
    1: [CONFIG, EVENTS, {"default/web": 7}, {"default/web": {7: LIVES}}],
    2: {
        "version": 2,
        "config": CONFIG,
        "events": EVENTS,
        "index": {"apps/v1.Deployment": {"default/web": 7}},
        "pod_lifecycles": {("apps/v1.Deployment", "default/web"): {7: LIVES}},
    },
    3: {
        "version": 3,
        "config": CONFIG,
        "events": EVENTS,
        "index": {"apps/v1.Deployment": {"default/web": {"1005": [{"lifecycle": life} for life in LIVES]}}},
    },
}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_life_is_a_pod(tmp_path: Path, version: int) -> None:
    assert imported(tmp_path, VERSIONS[version]) == [
        (10, "web-00000", 30),
        (20, "web-00001", None),
        (100, "gone", "web-00001"),
    ]


def test_a_pod_is_made_of_the_template_without_secrets(tmp_path: Path) -> None:
    trace = SimKubeTrace(written(tmp_path / "t", VERSIONS[3]), Redaction())
    pod = next(trace.records()).put_object()
    assert b"secret" not in msgspec.json.encode(pod)
    assert pod["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1"}}
    assert pod["metadata"]["labels"] == {"app": "web"}
    assert pod["metadata"]["ownerReferences"][0]["name"] == "web"
    assert trace.header.start.startswith("1970-01-01T00:16:40")


def test_without_lives_there_are_as_many_pods_as_were_asked_for(tmp_path: Path) -> None:
    changes = events(
        (100, [deployment(2)], []),
        (110, [deployment(3)], []),
        (120, [deployment(1)], []),
        (130, [deployment(1, cpu="2", types_apart=True)], []),
        (140, [], [deployment()]),
    )
    found = imported(tmp_path, {"version": 2, "config": CONFIG, "events": changes, "index": {}, "pod_lifecycles": {}})
    assert found == [
        (0, "web-00000", None),
        (0, "web-00001", None),
        (10, "web-00002", None),
        (20, "gone", "web-00002"),
        (20, "gone", "web-00001"),
        (30, "gone", "web-00000"),
        (30, "web-00003", None),
        (40, "gone", "web-00003"),
    ]


def test_bare_pods_custom_resources_and_the_rest(tmp_path: Path) -> None:
    custom = {"apiVersion": "acme.com/v1", "kind": "Train", "metadata": {"name": "t", "namespace": "n"}}
    custom["spec"] = {"workers": deployment()["spec"]["template"]}  # type: ignore[assignment]
    bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b", "namespace": "n"}, "spec": {"containers": []}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "x", "namespace": "n"}}
    unknown = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}}
    config = {"trackedObjects": {"acme.com/v1.Train": {"podSpecTemplatePaths": ["/spec/workers"]}}}
    document = {"version": 2, "config": config, "events": events((5, [custom, bare, budget, unknown], [])), "index": {}}
    trace = SimKubeTrace(written(tmp_path / "t", document), Redaction())
    assert sorted(name for _, name, _ in told(trace.records())) == ["b-00000", "t-00000", "x"]
    assert trace.left_out == {"ConfigMap": 1}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"version": 4, "events": []}, "is of version 4; versions 1, 2 and 3 are known"),
        ({"version": 2}, "it has no list of events"),
        ("text", "it has no list of events"),
        ({"version": 2, "events": [{"applied_objs": []}]}, "event 1: cannot be understood"),
        ({"version": 2, "events": events((1, [{"kind": "Pod"}], []))}, "event 1: cannot be understood"),
        ({"version": 2, "events": events((1, [deployment(10**9)], []))}, "wants 1,000,000,000 pods"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, document: Any, problem: str) -> None:
    with pytest.raises(ImportProblem) as error:
        imported(tmp_path, document)
    assert problem in str(error.value)


def test_what_is_no_message_pack(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"\xc1garbage")
    with pytest.raises(ImportProblem, match="is no SimKube trace"):
        SimKubeTrace(tmp_path / "t", Redaction())
    with pytest.raises(ImportProblem, match="No such file"):
        SimKubeTrace(tmp_path / "no", Redaction())
