"""Every page of a living scheduler: what it shows, to whom, and what it does with hostile input."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import msgspec
import pytest

from pilotage.api.budget import Budget
from pilotage.clock import StoppedClock
from pilotage.config.kinds import ExtenderConfiguration, ExtenderTLSConfig
from pilotage.console.node import colour_of
from pilotage.console.preemption import preemption
from pilotage.console.site import PREFIX
from pilotage.console.story import _timeline
from pilotage.console.view import render
from pilotage.explain.advice import with_spec
from pilotage.explain.report import Report
from pilotage.framework.profile_spec import PluginChoice, ProfileRecipe
from pilotage.queue.timeline import TimelineItem
from pilotage.serve.console_door import Sight
from pilotage.serve.page import PageRequest
from pilotage.testing.builders import pod

from .looked_at import EVERYTHING, LookedAt, looked_at

TENANT = Sight(frozenset({"default"}), nodes=False)
PICKY: dict[str, object] = {
    "metadata": {"name": "picky", "namespace": "default"},
    "spec": {"nodeSelector": {"no": "node"}, "containers": [{"name": "c", "image": "i"}]},
}
VOID = {"meta", "link", "input", "rect", "line", "circle", "path", "polyline", "option", "br", "stop"}


class Structure(HTMLParser):
    """Fails at tags that are not closed in their order, ids that stand twice, and anything inline that CSP forbids."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        assert not any(name.startswith("on") or name == "style" for name in names), (tag, attrs)
        assert tag != "script" or "src" in names or names.get("type") == "application/json"
        if "id" in names:
            self.ids.append(names["id"] or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            raise AssertionError(f"<{tag}/> is no void element")

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open and self.open.pop() == tag, f"</{tag}> inside {self.open}"


def checked(page: str) -> str:
    structure = Structure()
    structure.feed(page)
    assert not structure.open and len(set(structure.ids)) == len(structure.ids)
    return page


async def test_overview_counts_what_was_bound_and_what_waits() -> None:
    async with looked_at() as seen:
        await seen.cluster.create_pods("a", "b")
        await seen.cluster.create_pods("giant", cpu="999")
        await seen.pass_seconds(3.0)
        page = checked(seen.text())
        assert re.search(r"Bound by this scheduler</dt><dd>2<", page)
        assert re.search(r'NodeResourcesFit</a></th><td class="num">1<', page)
        assert re.search(r"<dt>Nodes</dt><dd>3<", page)


async def test_waiting_groups_by_reason_says_what_helps_and_can_be_searched() -> None:
    async with looked_at() as seen:
        await seen.cluster.create_pods("giant-1", "giant-2", cpu="999")
        await seen.pass_seconds(3.0)
        page = checked(seen.text("waiting"))
        assert "<b>NodeResourcesFit</b>" in page and "2 pods wait" in page
        assert "Would fit if: it asked for" in page
        assert "giant-2" not in seen.text("waiting", search="giant-1") and "giant-1" in seen.text(
            "waiting", search="GIANT-1"
        )
        assert "No pod waits that fits the search" in seen.text("waiting", search="nothing like it")
        assert "No pod waits that fits the search" in seen.text("waiting", namespace="elsewhere")


async def test_page_of_a_waiting_pod_has_verdict_grid_advice_and_story() -> None:
    async with looked_at() as seen:
        await seen.cluster.create_pods("giant", cpu="999")
        await seen.pass_seconds(3.0)
        page = checked(seen.text("pods/default/giant"))
        assert "fits on none of 3 nodes" in page and "0/3 nodes are available: 3 Insufficient cpu." in page
        assert re.search(r'<td class="no">Insufficient cpu</td>', page)
        assert "Would fit if" in page and "UnscheduledPodAdd" in page


async def test_page_of_a_bound_pod_and_of_its_node_name_each_other() -> None:
    async with looked_at() as seen:
        await seen.cluster.create_pods("web")
        await seen.pass_seconds(3.0)
        node = (await seen.cluster.nodes_of_pods())["web"]
        assert f"/console/nodes/{node}" in checked(seen.text("pods/default/web"))
        page = checked(seen.text(f"nodes/{node}"))
        assert "/console/pods/default/web" in page and "No pod waits" in page


async def test_charts_are_drawn_anew_when_there_is_another_sample() -> None:
    async with looked_at() as seen:
        await seen.pass_seconds(5.0)
        known = re.search(r'data-known="([^"]*)"', seen.text())
        assert known is not None
        await seen.cluster.create_pods("web")
        await seen.cluster.clock.advance(3.0)
        answers = [seen.get("live", known=known[1], view=f"{PREFIX}/").body.decode()]
        seen.source.take_sample()
        answers.append(seen.get("live", known=known[1], view=f"{PREFIX}/").body.decode())
        assert ["event: flow" in answer for answer in answers] == [False, True]


async def test_pods_of_one_owner_that_were_tried_at_different_moments_stand_in_one_row() -> None:
    async with looked_at() as seen:
        resources, labels = {"requests": {"cpu": "999"}}, {"app": "web"}
        containers = [{"name": "c", "image": "i", "resources": resources}]
        template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
        path = "/apis/apps/v1/namespaces/default/replicasets"
        web = {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
        await post(seen, path, web)
        await seen.pass_seconds(3.0)
        await post(
            seen, "/api/v1/nodes", {"metadata": {"name": "late"}, "status": {"allocatable": {"cpu": "1", "pods": "9"}}}
        )
        merge, two = "application/merge-patch+json", b'{"spec":{"replicas":2}}'
        await seen.cluster.cluster.transport().request("PATCH", f"{path}/web", body=two, content_type=merge)
        await seen.pass_seconds(3.0)
        (row,) = seen.source.waiting(EVERYTHING)
        assert (row.owner, row.pods) == ("ReplicaSet/web", 2) and "0/4 nodes are available" in row.message
        assert checked(seen.text("waiting")).count("nodes are available") == 1


async def test_pod_says_what_it_asks_for_and_how_old_it_is() -> None:
    async with looked_at() as seen:
        await seen.cluster.create_pods("giant", cpu="999")
        await seen.pass_seconds(65.0)
        page = checked(seen.text("pods/default/giant"))
        assert re.search(r"<dt>Asks for</dt><dd>999 cpu(,|<)", page)
        assert "<dt>Created</dt><dd>65 s ago</dd>" in page


def test_no_pod_has_the_colour_of_what_is_free() -> None:
    owners = [pod(f"pod-{number}").build() for number in range(200)]
    assert {colour_of(one) for one in owners} == {f"s{number}" for number in range(10)} - {"s5"}


async def test_inside_says_how_late_the_event_loop_was() -> None:
    async with looked_at() as seen:
        assert "not known yet" in checked(seen.text("inside"))
        async with asyncio.TaskGroup() as tasks:
            sampling = tasks.create_task(seen.source.keep_time())
            await seen.pass_seconds(6.0)
            sampling.cancel()
        assert "last 0 s, longest 0 s" in checked(seen.text("inside"))


async def test_node_says_who_was_rejected_there_and_who_would_fit() -> None:
    async with looked_at() as seen:
        await seen.cluster.create_pods("giant", cpu="999")
        await seen.pass_seconds(3.0)
        assert "NodeResourcesFit: Insufficient cpu" in checked(seen.text("nodes/node-00001"))


@pytest.mark.parametrize("path", ["waiting", "queues", "inside", "queues/none", "workloads/default/none"])
async def test_pages_without_anything_to_show_say_so(path: str) -> None:
    async with looked_at(nodes=0) as seen:
        answer = seen.get(path)
        assert answer.status in (200, 404) and "<h1>" in checked(answer.body.decode())


@pytest.mark.parametrize("path", ["pods/default/gone", "nodes/gone", "no/such/page", "pods/x", "pods/a/b/c"])
async def test_what_is_not_there_is_404_with_words(path: str) -> None:
    async with looked_at() as seen:
        answer = seen.get(path)
        assert answer.status == 404 and "There is no" in checked(answer.body.decode())


async def test_markup_and_control_characters_are_shown_and_not_obeyed() -> None:
    async with looked_at() as seen:
        evil = "<script>alert(1)</script>\x1b[31m\u202e"
        page = checked(seen.text("waiting", search=evil))
        assert "<script>alert" not in page and "\x1b" not in page and "\u202e" not in page
        assert "&lt;script&gt;" in page and r"\x1b" in page
        assert "<script>alert" not in seen.text(f"nodes/{evil}") and "<script>alert" not in seen.text("", group=evil)


async def test_tenant_sees_own_namespaces_only_and_no_nodes() -> None:
    async with looked_at() as seen:
        await seen.cluster.create_pods("giant", cpu="999")
        await seen.pass_seconds(3.0)
        stranger = Sight(frozenset({"other"}), nodes=False)
        assert "giant" in seen.text("waiting", TENANT) and "giant" not in seen.text("waiting", stranger)
        assert seen.get("pods/default/giant", stranger).status == 403
        assert "node-0000" not in seen.text("pods/default/giant", TENANT)
        assert "node-0000" not in seen.text("waiting", TENANT)
        assert "node-0000" not in seen.text("", TENANT) and seen.get("nodes/node-00001", TENANT).status == 403
        assert "giant" not in seen.get("live", stranger, view=f"{PREFIX}/pods/default/giant").body.decode()


async def test_live_sends_only_regions_that_changed() -> None:
    async with looked_at() as seen:
        first = seen.get("live", view=f"{PREFIX}/waiting").body.decode()
        known = re.search(r"^id: (.*)$", first, re.MULTILINE)
        assert known and "event: waiting" in first and "\nretry: 2000\n" in first and first.endswith("\n\n")
        assert "event: waiting" not in seen.get("live", known=known[1], view=f"{PREFIX}/waiting").body.decode()
        await seen.cluster.create_pods("giant", cpu="999")
        await seen.pass_seconds(3.0)
        changed = seen.get("live", known=known[1], view=f"{PREFIX}/waiting").body.decode()
        assert "event: waiting" in changed and "giant" in changed


async def test_console_only_reads_and_allows_nothing_from_elsewhere() -> None:
    async with looked_at() as seen:
        assert seen.console.answer(PageRequest(f"{PREFIX}/", "POST"), Sight()).status == 405
        headers = dict(seen.get().headers)
        assert "default-src 'none'" in headers["Content-Security-Policy"] and "unsafe" not in str(headers)
        assert "http" not in re.sub(r"http://www.w3.org/2000/svg|test cluster", "", seen.text())
        assert seen.get("static/console.js").content_type.startswith("text/javascript")
        for path in ("static/../site.py", "static/none.js", "static/", "static/%2e%2e/site.py"):
            assert seen.get(path).status == 404


async def test_a_page_that_is_costly_to_make_is_asked_for_less_often() -> None:
    class Costly(StoppedClock):
        """A second goes by between any two looks at it."""

        seconds = 0.0

        def monotonic(self) -> float:
            self.seconds += 0.2
            return self.seconds

    async with looked_at() as seen:
        seen.source.clock = Costly()
        answer = seen.get("live", view=f"{PREFIX}/waiting").body.decode()
        again = re.search(r"^retry: (\d+)$", answer, re.MULTILINE)
        assert again and 2000 < int(again[1]) <= 60_000
        assert f'"again_milliseconds":{again[1]}' in answer


async def test_every_reason_is_shown_however_many_pods_wait_for_another() -> None:
    async with looked_at() as seen:
        await seen.cluster.create_pods(*(f"giant-{number:03}" for number in range(250)), cpu="999")
        await seen.pass_seconds(3.0)
        await post(seen, "/api/v1/namespaces/default/pods", PICKY)
        await seen.pass_seconds(3.0)
        page = checked(seen.text("waiting"))
        assert "<b>NodeAffinity</b>" in page and "default/picky" in page and "251 pods wait" in page
        assert page.count("/console/pods/default/giant-") == 100 and "150 more rows are not shown" in page
        assert page.count("Insufficient cpu") == 1, "what is said of all is said once"
        assert "191 more owners are not shown" in checked(seen.text("waiting", by="owner"))


async def test_of_a_pod_with_a_node_another_like_it_is_judged() -> None:
    async with looked_at() as seen:
        await seen.cluster.create_pods("web", cpu="3")
        await seen.pass_seconds(3.0)
        node = (await seen.cluster.nodes_of_pods())["web"]
        page = checked(seen.text("pods/default/web"))
        another = page[page.index("Another pod like it") :]
        assert "Would fit on 2 of 3 nodes" in another and "Scores of the best nodes" in another
        assert re.search(rf'{node}</a>.*?<td class="no">Insufficient cpu', another)
        tenant = checked(seen.text("pods/default/web", TENANT))
        assert "Another pod like it" in tenant and "Scores of" not in tenant and "Every filter" not in tenant


async def test_inside_has_the_arguments_of_plugins_and_the_sizes_of_the_queue() -> None:
    async with looked_at() as seen:
        await seen.cluster.create_pods("giant", cpu="999")
        await seen.pass_seconds(3.0)
        extender = ExtenderConfiguration("https://extender.example", tls_config=ExtenderTLSConfig(key_data="secret"))
        recipe = ProfileRecipe((PluginChoice("Sunny", 3, {"weather": "sun"}),), {"filter": ("Sunny",)})
        seen.source.options = replace(seen.source.options, extenders=(extender,), profiles={"sunny": recipe})
        page = checked(seen.text("inside"))
        assert "extender.example" in page and "secret" not in page
        assert re.search(r'Sunny</th><td class="num">3</td><td>filter</td>.*weather', page)
        tenant = checked(seen.text("inside", TENANT))
        assert "Sunny" in tenant and "weather" not in tenant and "extender.example" not in tenant
        assert "unschedulable 1" in page and "Profile sunny" in page
        assert "Backoff</dt><dd>1 s to 10 s" in page


async def test_overview_of_a_large_fleet_stays_small() -> None:
    async with looked_at(nodes=2000) as seen:
        page = seen.get().body
        assert len(page) < 100_000
        first = seen.get("live", view=f"{PREFIX}/").body.decode()
        known = re.search(r"^id: (.*)$", first, re.MULTILINE)
        assert known is not None
        await seen.cluster.create_pods("web")
        await seen.pass_seconds(3.0)
        assert len(seen.get("live", known=known[1], view=f"{PREFIX}/").body) < 20_000


async def test_node_names_nominated_pods_to_those_only_who_may_list_them() -> None:
    async with looked_at() as seen:
        await seen.cluster.create_pods("giant", cpu="999")
        await seen.pass_seconds(3.0)
        pod = seen.source.pod("default", "giant")
        assert pod is not None
        seen.source.cluster.nominations.nominate(pod, "node-00001")
        assert "Kept for: <a" in checked(seen.text("nodes/node-00001"))
        page = checked(seen.text("nodes/node-00001", Sight(frozenset({"other"}))))
        assert "1 of namespaces that you may not list" in page and "giant" not in page


async def test_heat_map_of_too_many_groups_is_one_group_that_says_so() -> None:
    async with looked_at(nodes=300) as seen:
        page = checked(seen.text("", group="kubernetes.io/hostname"))
        assert "kubernetes.io/hostname has more than 200 values: nodes are not grouped." in page
        assert page.count("all nodes") >= 2
        assert "not grouped" not in seen.text()


async def test_overview_counts_calls_that_ended_by_lane_and_says_which_failed() -> None:
    async with looked_at() as seen:
        await seen.cluster.create_pods("a")
        await seen.pass_seconds(3.0)
        assert re.search(r'bind</th>.*?<td class="num">1</td><td class="num">0</td>', seen.text())
        seen.source.scheduler.metrics.async_api_call_execution_duration_seconds.observe(0.1, "pod_binding", "error")
        page = checked(seen.text())
        assert re.search(r'bind</th>.*?<td class="num">2</td><td class="num bad">1</td>', page)
        assert "failed: pod_binding" in page


async def test_state_says_who_decides_and_since_when_the_scheduler_runs() -> None:
    async with looked_at() as seen:

        def told() -> dict[str, object]:
            body = seen.get("live", view=f"{PREFIX}/waiting").body.decode()
            state: dict[str, object] = json.loads(body[body.index("data: {") + 6 : body.rindex("}") + 1])
            return state

        started = seen.source.started
        assert told() == {
            "text": "live",
            "is_away": False,
            "decides": True,
            "started": started,
            "again_milliseconds": 2000,
        }
        seen.source.is_standby = lambda: True
        assert told()["decides"] is False and "standby" in str(told()["text"])
        assert 'id="follows" class="hint">' in checked(seen.text())


async def post(seen: LookedAt, path: str, body: dict[str, object]) -> None:
    await seen.cluster.cluster.transport().request("POST", path, body=msgspec.json.encode(body))


async def test_picture_of_a_preemption_names_victims_and_budgets_to_those_who_may_list_them() -> None:
    async with looked_at() as seen:
        await seen.cluster.create_pods("w-0", "w-1", "w-2", cpu="3")
        await seen.pass_seconds(3.0)
        await seen.cluster.create_pods("big", cpu="3")
        await seen.pass_seconds(3.0)
        pod = seen.source.pod("default", "big")
        assert pod is not None and not pod.node_name
        engine, report = seen.source.engine_of(pod), seen.source.answered("pod/big", "default", Sight(), Budget(1.0))
        assert engine is not None and isinstance(report, Report)
        urgent = with_spec(pod, priority=1000)

        def drawn(sight: Sight) -> str:
            values = preemption(seen.source, sight, engine, urgent, report, Budget(1.0))
            return str(render("pod_preemption.html", values))

        assert "/console/pods/default/w-" in drawn(Sight()) and "Where it would help too" in drawn(Sight())
        stranger = drawn(Sight(frozenset({"other"})))
        assert "w-0" not in stranger and "w-1" not in stranger and "w-2" not in stranger
        assert "a pod of another namespace" in stranger and ">3<" in stranger


async def test_story_has_calls_and_hints_but_no_names_that_the_visitor_may_not_see() -> None:
    async with looked_at() as seen:
        await seen.cluster.create_pods("giant", cpu="999")
        await seen.pass_seconds(3.0)
        taint = {"metadata": {"name": "secret-node"}, "status": {"allocatable": {"cpu": "1", "pods": "10"}}}
        await post(seen, "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", **taint})
        await seen.pass_seconds(3.0)
        everything = checked(seen.text("pods/default/giant"))
        assert "NodeResourcesFit: QueueSkip" in everything and "NodeAdd secret-node" in everything
        assert "pod_status_patch: done after" in everything
        tenant = checked(seen.text("pods/default/giant", TENANT))
        assert "secret-node" not in tenant and "NodeAdd (an object that you may not list)" in tenant


def test_what_changed_is_named_to_those_who_may_list_it() -> None:
    def told(sight: Sight, why: str, what: str = "asked") -> str:
        return str(_timeline(sight, [TimelineItem(0.0, what, "", why)])["rows"][0][2].why)

    other = Sight(frozenset({"mine"}), nodes=False)
    assert told(Sight(), "AssignedPodDelete theirs/secret") == "AssignedPodDelete theirs/secret"
    assert told(other, "AssignedPodDelete mine/pod") == "AssignedPodDelete mine/pod"
    assert "secret" not in told(other, "AssignedPodDelete theirs/secret")
    assert "secret" not in told(other, "NodeAdd secret", "moved")
    assert told(other, "ScheduleAttemptFailure", "moved") == "ScheduleAttemptFailure"
    assert told(other, "0/3 nodes are available", "rejected") == "0/3 nodes are available"


async def test_page_that_cannot_be_made_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async with looked_at() as seen:
        monkeypatch.setattr(seen.source, "waiting", None)
        page, live = seen.get("waiting"), seen.get("live", view=f"{PREFIX}/waiting")
        assert page.status == live.status == 500
        assert "This page cannot be made: TypeError" in checked(page.body.decode())
        assert seen.get("inside").status == 200
