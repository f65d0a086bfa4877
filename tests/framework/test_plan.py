"""Plans are made once per pod class and do not pile up."""

from __future__ import annotations

from pilotage.framework.profile import Profile, plan_for
from pilotage.plugins import DefaultBinder, PrioritySort, TaintToleration
from pilotage.testing import pod


def profile() -> Profile:
    plugins = [PrioritySort(), TaintToleration(), DefaultBinder(handle=None)]  # type: ignore[arg-type]
    return Profile("default-scheduler", plugins, {plugin.plugin_name(): 1 for plugin in plugins})


def test_equal_pods_share_a_plan() -> None:
    own = profile()
    one, other = pod("a").label("app", "web").build(), pod("b").label("app", "web").build()
    assert plan_for(own, one) is plan_for(own, other)


def test_profiles_do_not_share_plans() -> None:
    waiting = pod("a").build()
    assert plan_for(profile(), waiting) is not plan_for(profile(), waiting)


def test_pods_with_labels_of_their_own_do_not_fill_the_memory_of_their_spec() -> None:
    """As in an Indexed Job: one spec, a label per pod."""
    own = profile()
    for number in range(1000):
        last = pod(f"p{number}").label("index", str(number)).build()
        plan_for(own, last)
    assert len(own.plans.by_spec[last.spec]) <= 64
