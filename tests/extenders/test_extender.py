"""What the answers of an extender mean, and what becomes of those that mean nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from pilotage.api.preemption import Candidate, VictimPolicy
from pilotage.config.kinds import ExtenderConfiguration, ExtenderManagedResource
from pilotage.extenders.extender import CallRejected, Extender, ExtenderError
from pilotage.model import KINDS, Node, Pod
from pilotage.observe.metrics import Metrics
from pilotage.testing import NodeBuilder, PodBuilder, VirtualClock, node, pod

NODES = [node("a").build(), node("b").build()]
POD = pod("p").build()
Ask = Callable[[Extender], Awaitable[object]]


def json_of(obj: Pod | Node) -> bytes:
    plural = "pods" if isinstance(obj, Pod) else "nodes"
    made: PodBuilder | NodeBuilder = pod(obj.name) if plural == "pods" else node(obj.name)
    raw = {**made.json(), "kind": KINDS[plural].kind, "apiVersion": "v1"}
    raw["metadata"]["managedFields"] = [{"manager": "somebody"}]
    return msgspec.json.encode(raw)


class Peer:
    """An extender's server: what it was sent, and what it says."""

    def __init__(self, status: int, answer: bytes) -> None:
        self.sent: list[tuple[str, Any]] = []
        self._said = status, answer

    async def post(self, verb: str, body: bytes) -> tuple[int, bytes]:
        self.sent.append((verb, msgspec.json.decode(body)))
        return self._said

    async def close(self) -> None:
        pass


def extender(answer: Any, status: int = 200, **fields: Any) -> tuple[Extender, Peer, Metrics]:
    verbs = {"filter_verb": "f", "prioritize_verb": "s", "preempt_verb": "v", "bind_verb": "b", "weight": 3}
    configuration = ExtenderConfiguration("http://x/e", **{**verbs, **fields})
    peer = Peer(status, answer if isinstance(answer, bytes) else msgspec.json.encode(answer))
    metrics = Metrics()
    return Extender(configuration, peer, json_of, metrics, VirtualClock()), peer, metrics


async def filters(one: Extender) -> object:
    return await one.filter(POD, NODES)


async def scores(one: Extender) -> object:
    return await one.prioritize(POD, NODES)


async def preempts(one: Extender) -> object:
    victims = (pod("v").node("a").build(),)
    return await one.preempt(POD, [Candidate("a", victims, 0, VictimPolicy().cost(POD, victims, 0))])


async def binds(one: Extender) -> object:
    return await one.bind(POD, "a")


GARBAGE: list[tuple[Any, str]] = [
    (b"", "extender http://x/e: the answer is empty (EOF)"),
    (b"   ", "EOF"),
    (b"<html>", "the answer is no JSON: Expecting value"),
    (b"\xff\xfe", "the answer is no JSON: 'utf-8' codec"),
    (b"[" * 100_000, "the answer is nested too deeply"),
    (b'{"Error": ' + b"9" * 5000 + b"}", "the answer is no JSON: "),
    (b'{"NodeNames": ["a"', "the answer is no JSON: "),
]


@pytest.mark.parametrize(("answer", "says"), GARBAGE, ids=[repr(answer[:12]) for answer, _ in GARBAGE])
@pytest.mark.parametrize("ask", [filters, scores, preempts, binds])
async def test_garbage_is_an_error_in_one_line(ask: Ask, answer: bytes, says: str) -> None:
    one, _, metrics = extender(answer)
    with pytest.raises(ExtenderError) as caught:
        await ask(one)
    assert says in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 300
    assert [labels[2] for labels in counted(metrics)] == ["error"]


WRONG_TYPES: list[tuple[Ask, Any, str]] = [
    (filters, [], "expected an object as the answer, got []"),
    (filters, "yes", "expected an object as the answer, got 'yes'"),
    (filters, {"Error": 5}, "expected a string as Error, got 5"),
    (filters, {"NodeNames": "a"}, "expected a list as NodeNames, got 'a'"),
    (filters, {"NodeNames": [1]}, "expected a string as NodeNames, got 1"),
    (filters, {"FailedNodes": ["a"]}, "expected an object as FailedNodes, got ['a']"),
    (filters, {"FailedNodes": {"a": {}}}, "expected a string as FailedNodes, got {}"),
    (scores, {}, "expected a list as the answer, got {}"),
    (scores, [1], "expected an object as the answer, got 1"),
    (scores, [{"Host": "a", "Score": "7"}], "expected an integer as Score, got '7'"),
    (scores, [{"Host": "a", "Score": 7.5}], "expected an integer as Score, got 7.5"),
    (scores, [{"Host": "a", "Score": True}], "expected an integer as Score, got True"),
    (preempts, {"NodeNameToMetaVictims": []}, "expected an object as NodeNameToMetaVictims, got []"),
    (preempts, {"NodeNameToMetaVictims": {"a": {"Pods": {}}}}, "expected a list as Pods, got {}"),
    (preempts, {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": 1}]}}}, "expected a string as UID, got 1"),
    (binds, {"Error": ["no"]}, "expected a string as Error, got ['no']"),
]


@pytest.mark.parametrize(("ask", "answer", "says"), WRONG_TYPES)
async def test_a_value_of_another_type_is_named(ask: Ask, answer: Any, says: str) -> None:
    one, _, _ = extender(answer, node_cache_capable=True)
    with pytest.raises(ExtenderError) as caught:
        await ask(one)
    assert str(caught.value) == f"extender http://x/e: the answer cannot be used: {says}"


@pytest.mark.parametrize("status", [201, 204, 301, 307, 404, 500, 503])
@pytest.mark.parametrize(("ask", "verb"), [(filters, "f"), (scores, "s"), (preempts, "v"), (binds, "b")])
async def test_only_200_is_an_answer(ask: Ask, verb: str, status: int) -> None:
    one, _, _ = extender({}, status)
    with pytest.raises(ExtenderError) as caught:
        await ask(one)
    assert str(caught.value) == f"failed {verb} with extender at URL http://x/e/{verb}, code {status}"


async def test_null_is_all_defaults_and_the_case_of_keys_and_what_follows_do_not_matter() -> None:
    assert (await extender(b"null")[0].filter(POD, NODES)).kept == ()
    one, _, _ = extender(b'{"nodenames": ["b"], "more": 1} trailing', node_cache_capable=True)
    assert (await one.filter(POD, NODES)).kept == ("b",)


async def test_reasons_are_kept_short_and_in_one_line() -> None:
    long = {"NodeNames": [], "FailedNodes": {"a": "\x1b[31mno\nroom " + "x" * 1_000_000}}
    filtered = await extender(long, node_cache_capable=True)[0].filter(POD, NODES)
    message = filtered.rejected["a"].message
    assert message.startswith("\\x1b[31mno\\nroom x") and len(message) < 5000
    assert filtered.rejected["b"].message == "" and filtered.rejected["b"].unresolvable
    with pytest.raises(ExtenderError) as caught:
        await extender({"Error": "y" * 1_000_000})[0].filter(POD, NODES)
    assert len(str(caught.value)) < 5000


async def test_a_node_that_was_not_sent_is_an_error_also_as_a_whole_node() -> None:
    says = 'extender "http://x/e" claims a filtered node "z" which is not found in the input node list'
    for answer, in_names in (
        ({"NodeNames": ["z"]}, True),
        ({"Nodes": {"items": [{"metadata": {"name": "z"}}]}}, False),
    ):
        with pytest.raises(ExtenderError) as caught:
            await extender(answer, node_cache_capable=in_names)[0].filter(POD, NODES)
        assert str(caught.value) == says


async def test_scores_are_weighted_added_up_and_bounded(caplog: pytest.LogCaptureFixture) -> None:
    answer = [{"Host": "a", "Score": 2}, {"Host": "a", "Score": 5}, {"Host": "b", "Score": 10**300}, {"Host": "?"}]
    assert await extender(answer)[0].prioritize(POD, NODES) == {"a": 7 * 3 * 10, "b": 2**53, "?": 0}
    assert "extender gives scores outside of 0 to 10" in caplog.text


async def test_objects_are_sent_without_their_type_and_without_managed_fields() -> None:
    one, peer, _ = extender({})
    await one.filter(POD, NODES)
    ((_, body),) = peer.sent
    sent = [body["Pod"], *body["Nodes"]["items"]]
    assert [obj["metadata"]["name"] for obj in sent] == ["p", "a", "b"]
    assert not any({"kind", "apiVersion"} & obj.keys() or "managedFields" in obj["metadata"] for obj in sent)


async def test_a_binding_that_is_denied_is_no_failure_of_the_extender(caplog: pytest.LogCaptureFixture) -> None:
    one, peer, metrics = extender({"Error": "denied"})
    with pytest.raises(CallRejected, match="denied"):
        await one.bind(POD, "a")
    assert peer.sent == [("b", {"PodName": "p", "PodNamespace": "default", "PodUID": POD.uid, "Node": "a"})]
    assert [labels[2] for labels in counted(metrics)] == ["rejected"]
    assert "extender fails" not in caplog.text


def counted(metrics: Metrics) -> list[tuple[str, ...]]:
    """The labels of calls that were measured."""
    return list(metrics.extender_call_duration_seconds.lines())


async def test_calls_are_measured_by_extender_verb_and_outcome() -> None:
    one, _, metrics = extender({"NodeNames": ["a"]}, node_cache_capable=True)
    await one.filter(POD, NODES)
    assert counted(metrics) == [("http://x/e", "f", "ok")]
    one, _, metrics = extender({}, node_cache_capable=True)
    await one.filter(POD, NODES)
    assert counted(metrics) == [("http://x/e", "f", "rejected")]


@pytest.mark.parametrize(
    ("made", "is_interested"),
    [
        (pod("p").requests({"example.com/gpu": "1"}), True),
        (pod("p").requests({"cpu": "1"}), False),
        (pod("p"), False),
    ],
)
def test_only_pods_with_its_resource_interest_it(made: PodBuilder, is_interested: bool) -> None:
    one, _, _ = extender({}, managed_resources=(ExtenderManagedResource("example.com/gpu"),))
    assert one.is_interested(made.build()) is is_interested
