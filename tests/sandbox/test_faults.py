"""Faults: what a rule says, when it strikes, and what a client sees of it."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from pilotage.cli.errors import ExitCode
from pilotage.cli.main import call
from pilotage.clock import SystemClock
from pilotage.kube.client import KubeClient
from pilotage.kube.errors import ApiStatusError
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.transport import TransportError
from pilotage.model import KINDS
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.sandbox.faults import FaultError, FaultKind, FaultRule, Faults, parse_fault
from pilotage.sandbox.http.exchange import Request
from pilotage.testing import VirtualClock, pod

BIND = Request("POST", "/api/v1/namespaces/default/pods/p/binding")
STATUS = Request("PATCH", "/api/v1/namespaces/default/pods/p/status")
CREATE = Request("POST", "/api/v1/namespaces/default/pods")
VOLUME = Request("PATCH", "/api/v1/persistentvolumes/v")
CLAIM = Request("PATCH", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c/status")
GET = Request("GET", "/api/v1/namespaces/default/pods/p")
LIST = Request("GET", "/api/v1/pods")
WATCH = Request("GET", "/api/v1/pods", {"watch": "true"})
EVERYTHING = (BIND, STATUS, CREATE, VOLUME, CLAIM, GET, LIST, WATCH)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("500", FaultRule(FaultKind.ERROR)),
        ("latency=20ms", FaultRule(FaultKind.LATENCY, 0.02)),
        ("429=3s,p=0.5", FaultRule(FaultKind.THROTTLE, 3.0, probability=0.5)),
        ("409,verb=patch,resource=pods/status", FaultRule(FaultKind.CONFLICT, verb="patch", resource="pods/status")),
        ("reset-after,after=5,times=2,every=3", FaultRule(FaultKind.RESET_AFTER, after=5, times=2, every=3)),
        ("503, from=10s, for=5s", FaultRule(FaultKind.UNAVAILABLE, begin_seconds=10.0, last_seconds=5.0)),
    ],
)
def test_a_rule_is_read(text: str, rule: FaultRule) -> None:
    assert parse_fault(text) == rule


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("418", 'no such fault "418"; there are: latency, slow, 409'),
        ("latency", "say for how long, such as latency=20ms"),
        ("slow=soon", "is not a duration"),
        ("500,verb=bind", 'no such verb "bind"; there are: create'),
        ("500,chance=1", '"chance=1" is none of verb=, resource='),
        ("500,p=2", "p=2 is not between 0 and 1"),
        ("500,every=0", "numbers must be positive"),
        ("500,times=x", "times=x: invalid literal"),
    ],
)
def test_a_rule_that_makes_no_sense_is_rejected_with_the_way_out(text: str, problem: str) -> None:
    with pytest.raises(FaultError) as error:
        parse_fault(text)
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("text", "hit"),
    [
        ("500", (BIND, STATUS, CREATE, VOLUME, CLAIM)),
        ("500,resource=pods", (BIND, STATUS, CREATE)),
        ("500,resource=pods/binding", (BIND,)),
        ("500,verb=patch", (STATUS, VOLUME, CLAIM)),
        ("500,resource=resourceclaims", (CLAIM,)),
        ("500,verb=get", (GET,)),
        ("500,verb=list,resource=pods", (LIST,)),
        ("500,verb=watch", (WATCH,)),
    ],
)
def test_a_rule_is_about_writes_or_what_it_names(text: str, hit: tuple[Request, ...]) -> None:
    faults = Faults([parse_fault(text)], VirtualClock(), seeded(1))
    assert tuple(request for request in EVERYTHING if faults.strike(request)) == hit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("500,every=3", "..x..x..x..x"),
        ("500,after=4", "....xxxxxxxx"),
        ("500,times=2", "xx.........."),
        ("500,after=1,every=2,times=3", "..x.x.x....."),
    ],
)
def test_a_rule_follows_its_schedule(text: str, expected: str) -> None:
    faults = Faults([parse_fault(text)], VirtualClock(), seeded(1))
    assert "".join("x" if faults.strike(BIND) else "." for _ in range(12)) == expected


async def test_a_rule_has_its_time() -> None:
    clock = VirtualClock()
    faults = Faults([parse_fault("500,from=10s,for=5s")], clock, seeded(1))
    struck = []
    for _ in range(20):
        struck.append(bool(faults.strike(BIND)))
        await clock.advance(1)
    assert struck == [10 <= second < 15 for second in range(20)]


def test_chance_strikes_about_as_often_as_it_should_and_the_same_again() -> None:
    def strikes(seed: int) -> list[bool]:
        faults = Faults([parse_fault("500,p=0.3")], VirtualClock(), seeded(seed))
        return [bool(faults.strike(BIND)) for _ in range(1000)]

    assert strikes(1) == strikes(1) != strikes(2)
    assert 250 < Counter(strikes(1))[True] < 350


# --- what clients see -------------------------------------------------------------------------------------------------


def served(fault: str, *, port: int | None = None) -> EmbeddedOptions:
    return EmbeddedOptions(nodes=1, port=port, is_alive=False, faults=[parse_fault(f"{fault},verb=create,times=1")])


async def create(client: KubeClient, name: str = "p") -> None:
    await client.create(KINDS["pods"], "default", msgspec.json.encode(pod(name).json()))


@pytest.mark.parametrize("over_http", [False, True], ids=["in process", "http"])
@pytest.mark.parametrize(
    ("fault", "sees", "is_done"),
    [
        ("409", 409, False),
        ("500", 500, False),
        ("503", 503, False),
        ("429=7s", 429, False),
        ("reset-before", "reset", False),
        ("reset-after", "reset", True),
        ("latency=10ms", None, True),
        ("slow=10ms", None, True),
    ],
)
async def test_a_client_sees_the_fault_once_and_the_server_knows_whether_it_was_done(
    fault: str, sees: int | str | None, is_done: bool, over_http: bool
) -> None:
    clock = SystemClock()
    async with EmbeddedCluster.running(served(fault, port=0 if over_http else None), clock, seeded(1)) as cluster:
        connection = load_connection(str(cluster.kubeconfig), None, clock=clock) if over_http else None
        client = KubeClient(cluster.transport() if connection is None else HttpTransport(connection))
        try:
            await create(client)
            seen: int | str | None = None
        except ApiStatusError as error:
            seen = error.code
            assert error.retry_after == (7.0 if error.code == 429 else None)
        except TransportError as error:
            seen = "reset"
            assert error.sent, "the client cannot know whether it was done"
        assert seen == sees and (cluster.api.find("pods", "default", "p") is not None) is is_done
        await create(client, "next")
        await client.close()


def test_the_command_rejects_a_fault_that_makes_no_sense(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["sandbox", "--fault", "418"]) == ExitCode.BAD_INPUT
    assert 'no such fault "418"; there are: latency' in capsys.readouterr().err
