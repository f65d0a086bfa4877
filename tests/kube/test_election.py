from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilotage.kube.election import Election, ElectionTiming, LeaseName

TIMING = ElectionTiming()


def candidate(identity: str = "a") -> Election:
    return Election(identity, LeaseName(), TIMING)


def stored(bid: dict[str, Any] | None, version: str = "1") -> dict[str, Any]:
    assert bid is not None
    return {**bid, "metadata": {**bid["metadata"], "resourceVersion": version}}


def held_by(holder: str, **spec: Any) -> dict[str, Any]:
    fields = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
    return {"metadata": {"name": "kube-scheduler", "resourceVersion": "7"}, "spec": {**fields, **spec}}


def test_first_bid_creates_the_lease_with_the_defaults_of_kube_scheduler() -> None:
    election = candidate()
    election.observe(None, 0.0)
    bid = election.bid(0.0, 0.0)
    assert bid is not None
    assert bid["metadata"] == {"name": "kube-scheduler", "namespace": "kube-system"}
    assert bid["spec"] == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "1970-01-01T00:00:00.000000Z",
        "renewTime": "1970-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }


def test_lease_of_another_is_respected_for_its_whole_duration_from_when_it_was_last_seen_to_change() -> None:
    election = candidate()
    election.observe(held_by("b"), 100.0)
    election.observe(held_by("b"), 110.0)
    assert election.bid(114.9, 0.0) is None
    assert election.bid(115.0, 0.0) is not None


def test_renewal_by_another_starts_the_wait_anew() -> None:
    election = candidate()
    election.observe(held_by("b"), 100.0)
    election.observe(held_by("b", renewTime="2026-01-01T00:00:02.000000Z"), 110.0)
    assert election.bid(124.9, 0.0) is None


def test_wall_clock_of_the_holder_does_not_matter() -> None:
    """A renewTime far in the past or the future says nothing: clocks are not compared."""
    for written in ("1990-01-01T00:00:00.000000Z", "2090-01-01T00:00:00.000000Z"):
        election = candidate()
        election.observe(held_by("b", renewTime=written), 100.0)
        assert election.bid(114.0, 0.0) is None
        assert election.bid(116.0, 0.0) is not None


def test_takeover_counts_a_transition_and_renewal_does_not() -> None:
    election = candidate()
    election.observe(held_by("b", leaseTransitions=4, acquireTime="2020-01-01T00:00:00.000000Z"), 0.0)
    taken = stored(election.bid(20.0, 60.0))
    assert taken["spec"]["leaseTransitions"] == 5
    assert taken["spec"]["acquireTime"] == "1970-01-01T00:01:00.000000Z"
    election.granted(taken, 20.0)
    renewed = stored(election.bid(22.0, 62.0))
    assert renewed["spec"]["leaseTransitions"] == 5
    assert renewed["spec"]["acquireTime"] == "1970-01-01T00:01:00.000000Z"
    assert renewed["spec"]["renewTime"] == "1970-01-01T00:01:02.000000Z"


def test_what_others_wrote_into_the_lease_is_kept() -> None:
    election = candidate()
    lease = held_by("", strategy="OldestEmulationVersion")
    lease["metadata"]["labels"] = {"team": "x"}
    election.observe(lease, 0.0)
    bid = election.bid(0.0, 0.0)
    assert bid is not None
    assert bid["metadata"] == {"name": "kube-scheduler", "resourceVersion": "7", "labels": {"team": "x"}}
    assert bid["spec"]["strategy"] == "OldestEmulationVersion"


def test_leadership_ends_by_itself_at_the_renew_deadline() -> None:
    election = candidate()
    election.observe(None, 0.0)
    election.granted(stored(election.bid(0.0, 0.0)), 0.0)
    assert election.is_leading(9.9)
    assert not election.is_leading(10.0)


def test_leadership_ends_when_another_one_is_seen_to_hold_the_lease() -> None:
    election = candidate()
    election.observe(None, 0.0)
    election.granted(stored(election.bid(0.0, 0.0)), 0.0)
    election.observe(held_by("b"), 1.0)
    assert not election.is_leading(1.0)
    assert election.given_back(0.0) is None, "it is not ours to give away"


def test_released_lease_is_free_at_once() -> None:
    leader, standby = candidate("a"), candidate("b")
    leader.observe(None, 0.0)
    leader.granted(stored(leader.bid(0.0, 0.0)), 0.0)
    leader.step_down()
    released = leader.given_back(5.0)
    assert released is not None
    assert (released["spec"]["holderIdentity"], released["spec"]["leaseDurationSeconds"]) == ("", 1)
    assert not leader.is_leading(5.0)
    standby.observe(released, 5.0)
    taken = standby.bid(5.0, 0.0)
    assert taken is not None and taken["spec"]["leaseTransitions"] == 1


steps = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.sampled_from(["try", "renew late", "drop answer", "release"]), st.floats(0, 9)
    ),
    max_size=40,
)


@given(steps)
def test_never_two_leaders(played: list[tuple[str, str, float]]) -> None:
    """Three candidates on one store with conditional writes, answers that get lost, and pauses of any length."""
    candidates = {name: candidate(name) for name in "abc"}
    lease: dict[str, Any] | None = None
    version, now = 0, 0.0
    for name, what, pause in played:
        election = candidates[name]
        now += pause
        if what == "release":
            election.step_down()
            released = election.given_back(now)
            if released is not None and lease is not None:
                seen = released["metadata"].get("resourceVersion")
                if seen == lease["metadata"]["resourceVersion"]:
                    version += 1
                    lease = stored(released, str(version))
            continue
        if not election.is_leading(now) or what == "renew late":
            election.observe(lease, now)
        asked_at = now
        bid = election.bid(asked_at, now)
        now += pause if what == "renew late" else 0.1
        if bid is not None and bid["metadata"].get("resourceVersion") == (
            lease and lease["metadata"]["resourceVersion"]
        ):
            version += 1
            lease = stored(bid, str(version))
            if what != "drop answer":
                election.granted(lease, asked_at)
        leaders = [name for name, one in candidates.items() if one.is_leading(now)]
        assert len(leaders) <= 1, leaders
        for one in candidates.values():
            one.check()
