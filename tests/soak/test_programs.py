"""The judges of the long programs: what they count as a violation, without the minutes that a run takes."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pilotage.rng import seeded
from pilotage.sandbox.api import Api
from pilotage.sandbox.http.exchange import Request, ServerResponse
from pilotage.sandbox.storage.store import Store
from pilotage.testing import VirtualClock
from tests.real_cluster.objects import pod
from tests.soak import durability_sweep, kill_sweep, memory_soak
from tests.soak.audited_server import AuditedApiServer
from tests.soak.durability_sweep import PADDING, Key, Losses
from tests.soak.memory_soak import growth
from tests.soak.verdict import Figure, exit_code, percentile
from tests.soak.witness import Witness

# --- figures ----------------------------------------------------------------------------------------------------------


def test_a_limit_that_is_exceeded_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code([Figure("pods", 7), Figure("gap", 4.0, 4.0, " s")]) == 0
    assert exit_code([Figure("pods bound twice", 1, 0), Figure("gap", 4.0, 4.0, " s")]) == 1
    assert "EXCEEDED" in capsys.readouterr().out


@pytest.mark.parametrize(("part", "value"), [(0.5, 5), (0.9, 9), (1.0, 10), (0.01, 1)])
def test_percentiles_are_values_that_were_measured(part: float, value: float) -> None:
    assert percentile([10, 1, 9, 2, 8, 3, 7, 4, 6, 5], part) == value


def test_growth_is_reported_per_ten_thousand_pods_and_is_not_misled_by_steps() -> None:
    assert growth([(n, 100.0 + n / 5000) for n in range(10_000, 30_000, 250)]) == pytest.approx(2.0)
    assert growth([(n, 100.0 + n % 500 / 250) for n in range(10_000, 30_000, 250)]) == pytest.approx(0.0, abs=0.1)


@pytest.mark.parametrize("program", [kill_sweep, durability_sweep, memory_soak])
def test_every_program_explains_itself_with_an_example(program: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main(["--help"])
    assert ended.value.code == 0
    assert f"python -m {program.__name__}" in capsys.readouterr().out


# --- what is seen of pods ---------------------------------------------------------------------------------------------


def seen(uid: str, node: str = "", version: int = 1) -> dict[str, Any]:
    obj = pod(f"pod-{uid}")
    obj["metadata"] |= {"uid": uid, "resourceVersion": str(version)}
    return obj | {"spec": obj["spec"] | ({"nodeName": node} if node else {})}


def witness() -> Witness:
    client: Any = None
    return Witness(client, node_millis=200)


def test_a_witness_sees_nodes_that_hold_too_much_and_pods_that_are_bound_twice() -> None:
    one = witness()
    for uid in ("a", "b"):
        one.note("ADDED", seen(uid))
        one.note("MODIFIED", seen(uid, "n"))
    assert one.overcommitted == [] and one.bound_more_than_once() == {}
    one.note("MODIFIED", seen("c", "n"))
    assert one.overcommitted == ["n: 300m of 200m"]
    one.note("MODIFIED", seen("a", "m"))
    assert one.bound_more_than_once() == {"a": {"n", "m"}}


def test_a_pod_that_is_gone_takes_no_room() -> None:
    one = witness()
    for uid in "abc":
        one.note("MODIFIED", seen(uid, "n"))
        one.note("DELETED", seen(uid, "n"))
    assert one.overcommitted == [] and len(one.bound_at) == 3 and not one.has_bound("pod-a")


# --- who writes after another one leads -------------------------------------------------------------------------------


class Audited:
    def __init__(self, folder: Path) -> None:
        clock = VirtualClock()
        self.server = AuditedApiServer(Api(Store(history=100), clock=clock, rng=seeded(1)), token=None, clock=clock)
        self.server.audit = folder / "audit.jsonl"  # type: ignore[misc]

    def send(self, instance: str, method: str, path: str, body: Any = None) -> int:
        answer = self.server.handle(Request(method, f"/via/{instance}{path}", body=json.dumps(body or {}).encode()))
        assert isinstance(answer, ServerResponse)
        return answer.status

    def lead(self, instance: str) -> None:
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
        lease = {"metadata": {"name": f"lease-{instance}"}, "spec": {"holderIdentity": instance}}
        assert self.send(instance, "POST", path, lease) == 201

    def lines(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in self.server.audit.read_text().splitlines()]


def test_a_write_after_another_one_has_taken_the_lease_is_found(tmp_path: Path) -> None:
    audited = Audited(tmp_path)
    pods = "/api/v1/namespaces/default/pods"
    audited.lead("s1")
    assert audited.send("s1", "POST", pods, pod("a")) == 201
    audited.lead("s2")
    assert audited.send("s1", "GET", pods) == 200
    assert audited.send("s1", "POST", pods, {"kind": "Nonsense"}) >= 400, "what is refused changes nothing"
    assert audited.send("s2", "POST", pods, pod("b")) == 201
    assert audited.lines() == [{"leads": "s1"}, {"leads": "s2"}]
    assert audited.send("s1", "POST", pods, pod("c")) == 201
    assert audited.lines()[2:] == [{"deposed": "s1", "leads": "s2", "wrote": f"POST {pods}"}]


# --- what is on disk --------------------------------------------------------------------------------------------------


class Stored:
    """A server that has this."""

    def __init__(self, version: int, **contents: str) -> None:
        self._version = version
        self._contents = contents

    def request(self, method: str, path: str) -> dict[str, Any]:
        items = [
            {"metadata": {"name": name}, "data": {"content": content, "padding": content[-1] * PADDING}}
            for name, content in self._contents.items()
        ]
        return {"metadata": {"resourceVersion": str(self._version)}, "items": items}


class Wrote:
    highest_version = 10

    def __init__(self, *keys: Key) -> None:
        self.keys = keys


@pytest.mark.parametrize(
    ("key", "stored", "is_lost"),
    [
        (Key("k", "5"), {"k": "5"}, False),
        (Key("k", "5"), {"k": "4"}, True),
        (Key("k", "5"), {}, True),
        (Key("k", None), {"k": "5"}, True),
        (Key("k", "5", ["6"]), {"k": "6"}, False),
        (Key("k", "5", [None]), {}, False),
        (Key("k", None, ["1"]), {}, False),
        (Key("k", "5", ["6"]), {"k": "7"}, True),
    ],
)
def test_only_what_was_acknowledged_or_asked_for_may_be_found(key: Key, stored: dict[str, str], is_lost: bool) -> None:
    losses = Losses()
    client: Any = Stored(10, **stored)
    writers: Any = [Wrote(key)]
    losses.look(client, writers)
    assert bool(losses.lost) is is_lost and losses.torn == losses.backwards == []
    assert not key.in_doubt, "from here on, what was found counts"


def test_a_version_that_goes_backwards_is_found() -> None:
    losses = Losses()
    client: Any = Stored(9, k="5")
    writers: Any = [Wrote(Key("k", "5"))]
    losses.look(client, writers)
    assert losses.backwards == ["9 after 10"]
