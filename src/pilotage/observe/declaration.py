"""How a table of metrics is written down: one class, one line per metric, its name said once.

    class Metrics(MetricTable):
        schedule_attempts_total = counter(STABLE, "Ended attempts.", "result", "profile")

An attribute of the class is the declaration, the same attribute of an instance is the instrument: a table can be made
as often as there are schedulers, and reading the attribute costs no more than any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Generic, Literal, TypeAlias, TypeVar, overload

from pilotage.observe.instruments import Counter, Gauge, Histogram, Instrument

InstrumentT = TypeVar("InstrumentT", Counter, Gauge, Histogram)
Stability = Literal["STABLE", "BETA", "ALPHA"]
STABLE: Final = "STABLE"
BETA: Final = "BETA"
ALPHA: Final = "ALPHA"

Page = Literal["metrics", "slis"]
"""Where a metric is exposed: /metrics or /metrics/slis."""


@dataclass(slots=True, eq=False)
class Declaration(Generic[InstrumentT]):
    """One metric: what it is called, what it means, and what kind of instrument it is."""

    build: Callable[[], InstrumentT]
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    stability: Stability
    help: str
    bounds: tuple[float, ...] = ()
    gate: str = ""
    """Exposed only if this feature gate is on; "" always."""
    prefix: str | None = None
    """Before the attribute's name; None: as the table says."""
    page: Page = "metrics"
    attribute: str = field(default="", init=False)
    name: str = field(default="", init=False)

    def __set_name__(self, owner: type[MetricTable], name: str) -> None:
        self.attribute = name
        self.name = (owner.prefix if self.prefix is None else self.prefix) + name

    @overload
    def __get__(self, instance: None, owner: type) -> Declaration[InstrumentT]: ...
    @overload
    def __get__(self, instance: MetricTable, owner: type) -> InstrumentT: ...
    def __get__(self, instance: MetricTable | None, owner: type) -> Declaration[InstrumentT] | InstrumentT:
        if instance is not None:
            # The instruments are in the instance's own dictionary, which is looked at first.
            raise AttributeError(f"{owner.__name__} was not initialised")
        return self


AnyDeclaration: TypeAlias = Declaration[Counter] | Declaration[Gauge] | Declaration[Histogram]


class MetricTable:
    """Base of all tables; an instance has an instrument for every declaration of its class."""

    prefix: ClassVar[str] = ""

    def __init__(self, is_enabled: Callable[[str], bool] = lambda gate: True) -> None:
        self._exposed: list[tuple[AnyDeclaration, Instrument]] = []
        self._by_name: dict[str, Instrument] = {}
        self.unreadable: dict[str, str] = {}
        """Metrics whose values could not be read when they were last read -> why."""
        for declaration in self.declarations():
            instrument: Instrument = declaration.build()
            self.__dict__[declaration.attribute] = self._by_name[declaration.name] = instrument
            if not declaration.gate or is_enabled(declaration.gate):
                self._exposed.append((declaration, instrument))

    @classmethod
    def declarations(cls) -> Iterator[AnyDeclaration]:
        """Everything that is declared, in order."""
        return (value for value in vars(cls).values() if isinstance(value, Declaration))

    def exposed(self, page: Page = "metrics") -> Iterator[tuple[AnyDeclaration, Instrument]]:
        """The metrics on a page: those whose gate is off exist, but are not shown."""
        return ((declaration, instrument) for declaration, instrument in self._exposed if declaration.page == page)

    def named(self, name: str) -> Instrument | None:
        """The instrument of a metric by its full name; None if there is none."""
        return self._by_name.get(name)

    def add(self, declaration: Declaration[InstrumentT]) -> InstrumentT:
        """One more metric, which this table alone has; its name is set already."""
        instrument = declaration.build()
        self._by_name[declaration.name] = instrument
        self._exposed.append((declaration, instrument))
        return instrument

    def clear(self) -> None:
        """Start again from nothing, as after a restart."""
        for _, instrument in self._exposed:
            instrument.clear()


def counter(
    stability: Stability, help: str, *labels: str, gate: str = "", prefix: str | None = None, page: Page = "metrics"
) -> Declaration[Counter]:
    return Declaration(
        lambda: Counter(*labels), "counter", labels, stability, help, gate=gate, prefix=prefix, page=page
    )


def gauge(
    stability: Stability, help: str, *labels: str, gate: str = "", prefix: str | None = None, page: Page = "metrics"
) -> Declaration[Gauge]:
    return Declaration(lambda: Gauge(*labels), "gauge", labels, stability, help, gate=gate, prefix=prefix, page=page)


def histogram(
    stability: Stability,
    help: str,
    bounds: Sequence[float],
    *labels: str,
    gate: str = "",
    prefix: str | None = None,
) -> Declaration[Histogram]:
    return Declaration(
        lambda: Histogram(bounds, *labels),
        "histogram",
        labels,
        stability,
        help,
        bounds=tuple(bounds),
        gate=gate,
        prefix=prefix,
    )
