"""Play a scenario of extenders: they answer as the file says, in virtual time, and what they were asked is compared."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from pilotage.assembly import SchedulerOptions
from pilotage.clock import Clock
from pilotage.config.kinds import ExtenderConfiguration
from pilotage.extenders.extender import ExtenderTimeout
from pilotage.simulate.expectations import first_difference
from pilotage.simulate.extenders_file import SERVER, ExtenderRound, ExtendersScenario, Json, Script
from pilotage.simulate.memory_api import MemoryApi, key_of
from pilotage.simulate.shorthands import NAMESPACE
from pilotage.simulate.stage import Stage

_STEP_SECONDS: Final = 0.1
_MOST_STEPS: Final = 600
_SECONDS_AFTER_APPLY: Final = 2.5
"""Backoff of a pod that was rejected once is over by then."""


@dataclass(frozen=True, slots=True)
class ExtenderRequest:
    """What an extender was asked."""

    extender: str
    verb: str
    body: Json


class ScriptedExtenders:
    """All extenders of a scenario: what they will say, and what they were asked."""

    def __init__(self) -> None:
        self.requests: list[ExtenderRequest] = []
        self._answers: Script = {}
        self._calls: Counter[tuple[str, str]] = Counter()
        self._api: MemoryApi | None = None

    def play(self, answers: Script) -> None:
        self._answers = answers
        self._calls.clear()

    def api_at(self, clock: Clock) -> MemoryApi:
        """The API server, which extenders that bind write to."""
        self._api = MemoryApi(clock)
        return self._api

    def connect(self, configuration: ExtenderConfiguration, clock: Clock) -> ScriptedExtender:
        assert self._api is not None
        return ScriptedExtender(self, configuration, self._api, clock)

    def next_answer(self, extender: str, verb: str, body: Json) -> Json:
        self.requests.append(ExtenderRequest(extender, verb, body))
        given = self._answers.get(extender, {}).get(verb, [])
        number = self._calls[extender, verb]
        self._calls[extender, verb] += 1
        return given[min(number, len(given) - 1)] if given else {"status": 404}


class ScriptedExtender:
    """One of them; implements `ExtenderTransport`."""

    def __init__(
        self, script: ScriptedExtenders, configuration: ExtenderConfiguration, api: MemoryApi, clock: Clock
    ) -> None:
        self._script = script
        self._api = api
        self._clock = clock
        self._name = configuration.url_prefix.removeprefix(f"{SERVER}/")
        self._seconds = configuration.timeout_seconds

    async def post(self, verb: str, body: bytes) -> tuple[int, bytes]:
        request: Json = msgspec.json.decode(body)
        answer = self._script.next_answer(self._name, verb, request)
        delay = answer.get("delay", 0)
        await self._clock.sleep(min(delay, self._seconds))
        if delay >= self._seconds:
            raise ExtenderTimeout(f"POST {SERVER}/{self._name}/{verb}: timeout: no answer within {self._seconds:g} s")
        if "status" in answer:
            return answer["status"], b""
        return 200, msgspec.json.encode(self._body(answer, request))

    async def close(self) -> None:
        """There is nothing to let go of."""

    def _body(self, answer: Json, request: Json) -> Any:
        if "body" in answer:
            return answer["body"]
        if "scores" in answer:
            return [{"Host": name, "Score": score} for name, score in answer["scores"].items()]
        if "victims" in answer:
            chosen = {
                node: {"Pods": [{"UID": self._uid(name)} for name in names], "NumPDBViolations": 0}
                for node, names in answer["victims"].items()
            }
            return {"NodeNameToMetaVictims": chosen}
        if answer.get("binds"):
            self._api.assign(("Pod", request["PodNamespace"], request["PodName"]), request["Node"])
        return {
            **_left(request, answer.get("keep", ())),
            "FailedNodes": answer.get("failed", {}),
            "FailedAndUnresolvableNodes": answer.get("unresolvable", {}),
            "Error": answer.get("error", ""),
        }

    def _uid(self, name: str) -> str:
        uid: str = self._api.last_known(("Pod", NAMESPACE, name))["metadata"]["uid"]
        return uid


def _left(request: Json, names: Any) -> Json:
    if request.get("Nodes") is None:
        return {"NodeNames": list(names)}
    return {
        "Nodes": {"metadata": {}, "items": [n for n in request["Nodes"]["items"] if n["metadata"]["name"] in names]}
    }


# --- the play ---------------------------------------------------------------------------------------------------------


def extenders_difference(scenario: ExtendersScenario, options: SchedulerOptions) -> str:
    """Play it to its end or its first difference; "" if there is none."""
    return asyncio.run(play_extenders(scenario, options))


async def play_extenders(scenario: ExtendersScenario, options: SchedulerOptions) -> str:
    script = ScriptedExtenders()
    try:
        async with asyncio.TaskGroup() as tasks:
            stage = Stage(options, tasks, script.api_at, script.connect)
            for obj in scenario.cluster:
                stage.api.add(obj)
            await stage.clock.settle()
            raise _Over(await _played(stage, script, scenario))
    except BaseExceptionGroup as group:
        others = [error for error in group.exceptions if not isinstance(error, _Over)]
        if others:
            return f"the scheduler failed: {type(others[0]).__name__}: {others[0]}"
        return str(group.exceptions[0])


class _Over(Exception):
    """Ends the tasks of the stage."""


async def _played(stage: Stage, script: ScriptedExtenders, scenario: ExtendersScenario) -> str:
    for number, one in enumerate(scenario.rounds, 1):
        if one.answers is not None:
            script.play(one.answers)
        await _perform(stage, one)
        difference = next(_differences(stage, script, one.expected), None)
        if difference is not None:
            return f"round {number} (at {stage.clock.monotonic():g} s): {difference}"
    return ""


async def _perform(stage: Stage, one: ExtenderRound) -> None:
    for pod in one.pods:
        stage.api.add(pod)
        await stage.clock.settle()
        for _ in range(_MOST_STEPS):
            if _is_settled(stage.api.find(key_of(pod))):
                break
            await stage.clock.advance(_STEP_SECONDS)
    for obj in one.applied:
        stage.api.add(obj)
    seconds = one.seconds or (_SECONDS_AFTER_APPLY if one.applied else 0)
    if seconds:
        await stage.clock.advance(seconds)
    await stage.clock.settle()


def _is_settled(pod: Json | None) -> bool:
    if pod is None or pod["spec"].get("nodeName"):
        return True
    return any(condition["type"] == "PodScheduled" for condition in pod.get("status", {}).get("conditions", ()))


# --- what is expected -------------------------------------------------------------------------------------------------


def _differences(stage: Stage, script: ScriptedExtenders, expected: Json) -> Iterator[str]:
    if "requests" in expected:
        yield from _request_differences(stage, script.requests, expected["requests"])
    if "victims" in expected:
        victims = sorted({pod for pod, reason in stage.api.events if reason == "Preempted"})
        if victims != sorted(expected["victims"]):
            yield f"victims: expected {sorted(expected['victims'])}, were {victims}"
    if expected.get("schedulerBindings", stage.api.bindings) != stage.api.bindings:
        yield f"schedulerBindings: expected {expected['schedulerBindings']}, were {stage.api.bindings}"
    difference = first_difference(stage, {key: expected[key] for key in ("pods", "events") if key in expected})
    if difference is not None:
        yield difference


def _request_differences(stage: Stage, made: list[ExtenderRequest], expected: list[Json]) -> Iterator[str]:
    made = _in_order(made)
    if len(made) != len(expected):
        shown = ", ".join(f"{request.extender} {request.verb}" for request in made)
        yield f"requests: expected {len(expected)}, were {len(made)}: {shown}"
        return
    for number, (request, wanted) in enumerate(zip(made, expected, strict=True), 1):
        found = _facts(stage, request)
        for key, value in wanted.items():
            if key == "values":
                has = {name: request.body.get(name) for name in value}
            else:
                has = found[key]
            if has != (sorted(value) if isinstance(value, list) else value):
                yield f"request {number}: {key}: expected {value}, is {has}"


def _in_order(made: list[ExtenderRequest]) -> list[ExtenderRequest]:
    """Scores of a pod are asked of all extenders at once: in the order of their names."""
    found: list[ExtenderRequest] = []
    for request in made:
        at = len(found)
        while at and request.verb == found[at - 1].verb == "prioritize" and request.extender < found[at - 1].extender:
            at -= 1
        found.insert(at, request)
    return found


def _facts(stage: Stage, request: ExtenderRequest) -> Json:
    body = request.body
    nodes = body.get("Nodes")
    names = body.get("NodeNames") if nodes is None else [node["metadata"]["name"] for node in nodes["items"]]
    victims = body.get("NodeNameToVictims") or body.get("NodeNameToMetaVictims") or {}
    name_of = {pod.uid: pod.name for pod in stage.scheduler.cluster.objects("Pod").values()}
    return {
        "to": request.extender,
        "verb": request.verb,
        "pod": body.get("Pod", {}).get("metadata", {}).get("name"),
        "method": "POST",
        "contentType": "application/json",
        "keys": sorted(body),
        "nulls": sorted(key for key, value in body.items() if value is None),
        "nodes": sorted(names or ()),
        "victims": {
            node: [pod["metadata"]["name"] if "metadata" in pod else name_of.get(pod["UID"], "") for pod in one["Pods"]]
            for node, one in victims.items()
        },
    }
