"""A budget's counts equal those of a look at every pod."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotage.model.selectors import LabelSelector
from pilotage.sandbox.life.controllers.budget_cover import Cover, is_healthy
from pilotage.sandbox.life.facts import Owner, PodFacts
from pilotage.sandbox.storage.store import Key

OWNERS = [None, *(Owner("apps/v1", "ReplicaSet", name, f"u-{name}", controller=True) for name in ("x", "y"))]
STATES = st.tuples(st.booleans(), st.booleans(), st.booleans(), st.sampled_from(OWNERS))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | STATES), max_size=30))
def test_cover_follows_its_pods(changes: list[tuple[str, tuple[bool, bool, bool, Owner | None] | None]]) -> None:
    cover, model = Cover(LabelSelector(match_labels={"app": "web"})), {}
    for name, state in changes:
        key, pod = Key("pods", "default", name), None
        if state is not None:
            matches, is_ready, is_deleting, owner = state
            labels = {"app": "web" if matches else "other"}
            facts = {"labels": labels, "is_ready": is_ready, "is_deleting": is_deleting, "controller": owner}
            pod = PodFacts(key, f"u-{name}", **facts)  # type: ignore[arg-type]
        was_covered = name in model
        model.pop(name, None)
        if pod is not None and pod.labels["app"] == "web":
            model[name] = pod
        assert cover.note(key, pod) == (was_covered or name in model)
        cover.check()
        assert (len(cover), cover.healthy) == (len(model), sum(map(is_healthy, model.values())))
        asked = {pod.controller for pod in cover.a_pod_of_each_controller()}
        assert asked == {pod.controller for pod in model.values()} - {None}


def test_budget_without_a_selector_covers_nothing() -> None:
    pod = PodFacts(Key("pods", "default", "a"), "u", labels={})
    assert not Cover(None).note(pod.key, pod)
    assert Cover(LabelSelector()).note(pod.key, pod)
