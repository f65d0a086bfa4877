"""Distributions are what their names say; what is written wrong is said."""

from __future__ import annotations

import statistics
from itertools import islice, pairwise, takewhile

import pytest

from pilotage.lab.trace.distributions import DistributionError, arrivals, hourly, lifetime, quantiles
from pilotage.rng import seeded


def times(text: str, count: int = 2000) -> list[float]:
    return list(islice(arrivals(text)(seeded(1)), count))


def draws(text: str, count: int = 4000) -> list[float]:
    rng, draw = seeded(1), lifetime(text)
    return [value for _ in range(count) if (value := draw(rng)) is not None]


def test_arrivals_by_chance_have_their_rate() -> None:
    found = times("poisson:rate=100/h")
    gaps = [after - before for before, after in pairwise(found)]
    assert statistics.mean(gaps) == pytest.approx(36, rel=0.1)
    assert statistics.stdev(gaps) == pytest.approx(36, rel=0.1)


def test_fixed_arrivals_come_one_after_the_other() -> None:
    assert times("fixed:every=30s", 4) == [0, 30, 60, 90]


def test_bursts_come_at_once() -> None:
    found = times("burst:size=50,every=10m", 150)
    assert len(set(found)) == 3


def test_more_pods_come_by_day_than_by_night() -> None:
    found = list(takewhile(lambda at: at < 20 * 86_400, arrivals("diurnal:rate=60/h,peak=1.8,at=14h")(seeded(1))))
    at_hour = [sum(int(at // 3600) % 24 == hour for at in found) / 20 for hour in range(24)]
    assert statistics.mean(at_hour) == pytest.approx(60, rel=0.05)
    assert at_hour[14] == pytest.approx(60 * 1.8, rel=0.15) and at_hour[2] == pytest.approx(60 * 0.2, rel=0.4)


@pytest.mark.parametrize(
    ("text", "median"),
    [
        ("exponential:mean=10m", 600 * 0.693),
        ("lognormal:median=10m,sigma=1.5", 600),
        ("pareto:min=1m,shape=1.5", 60 * 2 ** (1 / 1.5)),
        ("fixed:10m", 600),
        ("fixed:90", 90),
    ],
)
def test_lifetimes_have_their_median(text: str, median: float) -> None:
    assert statistics.median(draws(text)) == pytest.approx(median, rel=0.08)


def test_no_lifetime_is_until_deleted() -> None:
    assert draws("none") == []


def test_values_like_those_that_were_seen() -> None:
    seen = sorted(draws("exponential:mean=10m", 500))
    rng, draw = seeded(2), quantiles(seen)
    values = [draw(rng) or 0 for _ in range(4000)]
    assert seen[0] <= min(values) and max(values) <= seen[-1]
    assert statistics.quantiles(values, n=10) == pytest.approx(statistics.quantiles(seen, n=10), rel=0.15)


def test_rates_of_hours_repeat() -> None:
    found = list(takewhile(lambda at: at < 4 * 3600, hourly([0.1, 0.0])(seeded(1))))
    hours = [sum(int(at // 3600) == hour for at in found) for hour in range(4)]
    assert hours[1] == hours[3] == 0 and hours[0] == pytest.approx(360, rel=0.2)


@pytest.mark.parametrize(
    ("make", "text", "problem"),
    [
        (arrivals, "gauss:rate=1", '"gauss" is none of poisson, fixed, diurnal, burst'),
        (arrivals, "poisson", "poisson needs rate=..."),
        (arrivals, "poisson:rate=many", '"many" is no rate such as 100/h'),
        (arrivals, "poisson:rate=0/h", "is no rate"),
        (arrivals, "poisson:rate=5/week", "is no rate"),
        (arrivals, "poisson:rate=5/h,speed=3", "poisson has no speed"),
        (arrivals, "fixed:every=soon", "is not a duration"),
        (arrivals, "diurnal:rate=5/h,peak=3", "peak: 3 is not between 1"),
        (lifetime, "fixed", "fixed needs a duration"),
        (lifetime, "lognormal:median=10m", "lognormal needs sigma=..."),
        (lifetime, "pareto:min=1m,shape=-1", "is no number above 0"),
        (lifetime, "exponential:mean=nan", "is not a duration"),
    ],
)
def test_what_is_wrong_is_said(make: object, text: str, problem: str) -> None:
    assert callable(make)
    with pytest.raises(DistributionError) as error:
        make(text)
    assert problem in str(error.value)
