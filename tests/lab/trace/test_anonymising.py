"""Names are gone, and everything still finds what it found before."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pilotage.lab.trace.anonymising import anonymised
from pilotage.lab.trace.format import TraceRecord
from pilotage.model.selectors import LabelSelector

from .making import gap, gone, node, observed, pod, put

SECRET = "acme"
_WORDS = st.sampled_from([f"{SECRET}-a", f"{SECRET}-b", "true", "7", f"{SECRET}.com/tier", "kubernetes.io/os", ""])
_VALUES = _WORDS.filter(lambda word: "/" not in word)
_LABELS = st.dictionaries(_WORDS.filter(bool), _VALUES, max_size=3)
_EXPRESSION = st.fixed_dictionaries(
    {
        "key": _WORDS.filter(bool),
        "operator": st.sampled_from(["In", "NotIn"]),
        "values": st.lists(_VALUES, min_size=1, max_size=3),
    }
)
_SELECTOR = st.fixed_dictionaries({"matchLabels": _LABELS, "matchExpressions": st.lists(_EXPRESSION, max_size=2)})


def all_of(records: list[TraceRecord], seed: int = 1) -> list[TraceRecord]:
    return list(anonymised(iter(records), seed))


def text(records: list[TraceRecord]) -> str:
    return msgspec.json.encode(records).decode()


def test_no_name_is_left() -> None:
    records = [
        put(0, node(f"{SECRET}-1", team=SECRET)),
        put(1, observed(f"{SECRET}-p", f"{SECRET}-1", 2.0, namespace=SECRET, labels={f"{SECRET}.com/x": SECRET})),
        put(1, pod("q", annotations={"scheduling.k8s.io/x": SECRET})),
        gap(2, 1, f"{SECRET} was down"),
        gone(3, f"{SECRET}-p", SECRET),
    ]
    records[1].put_object()
    assert SECRET not in text(all_of(records))


@given(_SELECTOR, _LABELS)
def test_selectors_select_what_they_did(selector: dict[str, Any], labels: dict[str, str]) -> None:
    constraint = {"topologyKey": "zone", "labelSelector": selector}
    chooser = pod("p", labels=labels)
    chooser["spec"]["topologySpreadConstraints"] = [constraint]
    (made,) = all_of([put(0, chooser)])
    obj = made.put_object()
    found = msgspec.convert(obj["spec"]["topologySpreadConstraints"][0]["labelSelector"], LabelSelector)
    before = msgspec.convert(selector, LabelSelector)
    assert found.matches(obj["metadata"].get("labels", {})) == before.matches(labels)


def test_the_same_thing_has_the_same_name_everywhere() -> None:
    on_node, running, deletion = all_of([put(0, node("n-1")), put(1, observed("p", "n-1", 2.0)), gone(3, "p")])
    name = on_node.put_object()["metadata"]["name"]
    labels = on_node.put_object()["metadata"]["labels"]
    assert labels["kubernetes.io/hostname"] == name != "n-1"
    assert running.put_object()["metadata"]["annotations"]["trace.pilotage.dev/observed-node"] == name
    assert deletion.name == running.name


def test_the_seed_decides() -> None:
    records = [put(0, node("n-1")), put(1, pod("p"))]
    assert text(all_of(records, 7)) == text(all_of(records, 7)) != text(all_of(records, 8))


def test_what_scheduling_counts_stays() -> None:
    obj = pod("p", cpu="1500m", namespace="kube-system")
    obj["spec"] |= {"priorityClassName": "system-node-critical", "priority": 5, "schedulerName": "mine"}
    obj["spec"]["tolerations"] = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]
    (made,) = all_of([put(3.5, obj, 60)])
    spec = made.put_object()["spec"]
    assert (made.at, made.runs, made.put_object()["metadata"]["namespace"]) == (3.5, 60, "kube-system")
    assert spec["containers"][0]["resources"] == {"requests": {"cpu": "1500m"}}
    assert {key: spec[key] for key in ("priorityClassName", "priority", "schedulerName", "tolerations")} == {
        key: obj["spec"][key] for key in ("priorityClassName", "priority", "schedulerName", "tolerations")
    }
