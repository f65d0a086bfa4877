"""Named distributions of arrivals and lifetimes, as they are written on the command line.

poisson:rate=100/h            arrivals by chance, so many per hour on average
fixed:every=30s               one after the other
diurnal:rate=100/h,peak=1.8,at=14h    by chance, most at 14:00, 1.8 times the average then
burst:size=50,every=10m       fifty at once, every ten minutes on average

exponential:mean=10m   lognormal:median=10m,sigma=1.5   pareto:min=1m,shape=1.5   fixed:10m   none
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Final, TypeVar

import msgspec

from pilotage.model.durations import parse_duration

_DAY: Final = 86_400.0
_PER: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": _DAY}

T = TypeVar("T")
Lifetime = Callable[[random.Random], float | None]
Arrivals = Callable[[random.Random], Iterator[float]]


class DistributionError(ValueError):
    """What is wrong with the text of a distribution, and what can be written."""


def arrivals(text: str) -> Arrivals:
    """Times of arrival, without end, of a text such as `poisson:rate=100/h`."""
    return _made(text, "arrivals", _ARRIVALS)


def lifetime(text: str) -> Lifetime:
    """How long a pod runs, by a text such as `exponential:mean=10m`; None if until it is deleted."""
    return _made(text, "lifetimes", _LIFETIMES)


def _made(text: str, what: str, known: Mapping[str, Callable[[_Spec], T]]) -> T:
    spec = _Spec.of(text, what, known)
    made = known[spec.name](spec)
    spec.check_all_used()
    return made


def quantiles(values: Sequence[float]) -> Lifetime:
    """Values between those that were seen, as often as those were."""

    def draw(rng: random.Random) -> float:
        at = rng.random() * (len(values) - 1)
        below = int(at)
        above = min(below + 1, len(values) - 1)
        return values[below] + (at - below) * (values[above] - values[below])

    return draw


def hourly(rates: Sequence[float]) -> Arrivals:
    """Arrivals by chance with another rate in each hour (per second); after the last hour it begins anew."""
    top = max(rates)

    def times(rng: random.Random) -> Iterator[float]:
        for at in _poisson(top, rng):
            if rng.random() * top < rates[int(at // 3600) % len(rates)]:
                yield at

    return times


class Reservoir:
    """Some of the values that come one by one, each as likely as any other to be among them."""

    def __init__(self, size: int, rng: random.Random) -> None:
        self._size = size
        self._rng = rng
        self._seen = 0
        self._values: list[float] = []

    def add(self, value: float) -> None:
        self._seen += 1
        if len(self._values) < self._size:
            self._values.append(value)
        elif (at := self._rng.randrange(self._seen)) < self._size:
            self._values[at] = value

    def in_order(self) -> list[float]:
        """From the least on."""
        return sorted(self._values)


class _Spec(msgspec.Struct):
    """`name:key=value,key=value` taken apart."""

    what: str
    name: str
    bare: str
    values: dict[str, str]
    used: set[str]

    @classmethod
    def of(cls, text: str, what: str, names: Collection[str]) -> _Spec:
        name, _, rest = text.partition(":")
        if name not in names:
            raise DistributionError(f'{what}: "{name}" is none of {", ".join(names)}')
        bare = rest if "=" not in rest else ""
        pairs = [pair.partition("=") for pair in rest.split(",")] if rest and not bare else []
        return cls(what, name, bare, {key.strip(): value.strip() for key, _, value in pairs}, set())

    def text(self, key: str, default: str | None = None) -> str:
        self.used.add(key)
        value = self.values.get(key, default)
        if not value:
            raise DistributionError(f"{self.what}: {self.name} needs {f'{key}=...' if key else 'a duration'}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        text = self.text(key, None if default is None else str(default))
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not 0 < number < math.inf:
            raise DistributionError(f'{self.what}: {key}: "{text}" is no number above 0')
        return number

    def seconds(self, key: str, default: str | None = None) -> float:
        text = self.text(key, default)
        try:
            seconds = float(text) if text.replace(".", "", 1).isdigit() else parse_duration(text)
        except ValueError as error:
            raise DistributionError(f"{self.what}: {key or self.name}: {error}") from error
        if not 0 < seconds < math.inf:
            raise DistributionError(f'{self.what}: {key or self.name}: "{text}" is no time above 0')
        return seconds

    def rate(self, key: str) -> float:
        """Per second, of `100/h`, `5/m`, `0.2`."""
        text = self.text(key)
        number, _, unit = text.partition("/")
        try:
            rate = float(number) / _PER[unit or "s"]
        except (ValueError, KeyError):
            rate = math.nan
        if not 0 < rate < math.inf:
            raise DistributionError(f'{self.what}: {key}: "{text}" is no rate such as 100/h, 5/m or 0.2/s')
        return rate

    def check_all_used(self) -> None:
        if unknown := self.values.keys() - self.used:
            raise DistributionError(f"{self.what}: {self.name} has no {', '.join(sorted(unknown))}")


def _poisson(rate: float, rng: random.Random) -> Iterator[float]:
    at = 0.0
    while True:
        at += rng.expovariate(rate)
        yield at


def _steady(every: float, rng: random.Random) -> Iterator[float]:
    return (number * every for number in count())


def _bursts(size: int, every: float, rng: random.Random) -> Iterator[float]:
    for at in _poisson(1 / every, rng):
        for _ in range(max(size, 1)):
            yield at


def _diurnal(spec: _Spec) -> Arrivals:
    rate, peak, peak_at = spec.rate("rate"), spec.number("peak", 1.8), spec.seconds("at", "14h")
    if not 1 <= peak <= 2:
        raise DistributionError(f"arrivals: peak: {peak:g} is not between 1 (no peak) and 2 (nothing at night)")

    def times(rng: random.Random) -> Iterator[float]:
        for at in _poisson(rate * peak, rng):
            now = 1 + (peak - 1) * math.cos(2 * math.pi * (at - peak_at) / _DAY)
            if rng.random() * peak < now:
                yield at

    return times


def _exponential(mean: float, rng: random.Random) -> float:
    return rng.expovariate(1 / mean)


def _lognormal(mu: float, sigma: float, rng: random.Random) -> float:
    return rng.lognormvariate(mu, sigma)


def _pareto(least: float, shape: float, rng: random.Random) -> float:
    return least * rng.paretovariate(shape)


def _constant(seconds: float | None, rng: random.Random) -> float | None:
    return seconds


_ARRIVALS: Final[Mapping[str, Callable[[_Spec], Arrivals]]] = {
    "poisson": lambda spec: partial(_poisson, spec.rate("rate")),
    "fixed": lambda spec: partial(_steady, spec.seconds("every")),
    "diurnal": _diurnal,
    "burst": lambda spec: partial(_bursts, round(spec.number("size")), spec.seconds("every")),
}
_LIFETIMES: Final[Mapping[str, Callable[[_Spec], Lifetime]]] = {
    "exponential": lambda spec: partial(_exponential, spec.seconds("mean")),
    "lognormal": lambda spec: partial(_lognormal, math.log(spec.seconds("median")), spec.number("sigma")),
    "pareto": lambda spec: partial(_pareto, spec.seconds("min"), spec.number("shape")),
    "fixed": lambda spec: partial(_constant, spec.seconds("", spec.bare)),
    "none": lambda spec: partial(_constant, None),
}
