"""Label selectors, read once and then asked about many sets of labels.

However long a selector or a set of labels is, a question takes as many steps as the shorter of the two has entries:
labels that must not be there are looked for among those that are there, and a selector that wants more labels than
there are is not asked further. `SelectorIndex` finds, of many selectors, those that can match some labels at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from pilotage.model.selectors import LabelSelector, LabelSelectorRequirement

T = TypeVar("T")

Address = tuple[str, str | None]
"""A label that must be there: key and value, or only the key (None)."""

_MOST_ADDRESSES = 16
_NONE_OF_THEM: Mapping[str, Collection[str]] = {}
_NONE_FORBIDDEN: Mapping[str, Collection[str] | None] = {}
_FEW_VALUES = 8


class LabelMatcher:
    """All pairs and all expressions must hold. Without any it matches everything; malformed, it matches nothing."""

    __slots__ = ("_equal", "_forbidden", "_one_of", "_present", "is_malformed", "width")

    def __init__(self, pairs: Mapping[str, str], expressions: Sequence[LabelSelectorRequirement] = ()) -> None:
        self._equal = pairs
        self._one_of: Mapping[str, Collection[str]] = _NONE_OF_THEM
        self._present: Collection[str] = ()
        self._forbidden: Mapping[str, Collection[str] | None] = _NONE_FORBIDDEN
        """By key the values that must not be; None: it must not be there at all."""
        self.is_malformed = False
        self.width = len(pairs)
        """How many entries it has, listed values included: what it costs to keep."""
        if expressions:
            self._read(expressions)

    def _read(self, expressions: Sequence[LabelSelectorRequirement]) -> None:
        one_of: dict[str, Collection[str]] = {}
        unwanted: dict[str, list[str]] = {}
        absent: list[str] = []
        present: list[str] = []
        for expression in expressions:
            key, values = expression.key, expression.values
            self.width += 1 + len(values)
            self.is_malformed |= expression.problem() is not None
            match expression.operator:
                case "In" if key in one_of:
                    one_of[key] = _quick([value for value in values if value in one_of[key]])
                case "In":
                    one_of[key] = _quick(values)
                case "NotIn":
                    unwanted.setdefault(key, []).extend(values)
                case "Exists":
                    present.append(key)
                case "DoesNotExist":
                    absent.append(key)
                case _:
                    self.is_malformed = True
        self._one_of, self._present = one_of, _quick(present)
        self._forbidden = {**{key: _quick(values) for key, values in unwanted.items()}, **dict.fromkeys(absent)}

    def matches(self, labels: Mapping[str, str]) -> bool:
        if len(self._equal) > len(labels):
            return False
        for key, value in self._equal.items():
            if labels.get(key) != value:
                return False
        if self._one_of or self._present or self._forbidden or self.is_malformed:
            return self._expressions_hold(labels)
        return True

    def _expressions_hold(self, labels: Mapping[str, str]) -> bool:
        if self.is_malformed or len(self._one_of) > len(labels):
            return False
        for key, values in self._one_of.items():
            if labels.get(key) not in values:
                return False
        for key in self._present:
            if key not in labels:
                return False
        return not self._forbidden or not self._meets_forbidden(labels)

    def _meets_forbidden(self, labels: Mapping[str, str]) -> bool:
        forbidden = self._forbidden
        for key in labels if len(labels) < len(forbidden) else forbidden:
            if key in labels and key in forbidden:
                values = forbidden[key]
                if values is None or labels[key] in values:
                    return True
        return False

    def choices(self) -> Iterator[tuple[Address, ...]]:
        """Sets of labels: of each set one must be there. Nothing comes if there is no label that must."""
        for pair in self._equal.items():
            yield (pair,)
        for key, values in self._one_of.items():
            if len(values) <= _MOST_ADDRESSES:
                yield tuple((key, value) for value in sorted(set(values)))
            else:
                yield ((key, None),)
        for key in self._present:
            yield ((key, None),)


def _quick(values: Sequence[str]) -> Collection[str]:
    """Values to look for: a few are found in a tuple as quickly, and it takes less memory."""
    return frozenset(values) if len(values) > _FEW_VALUES else tuple(values)


def matcher_of(selector: LabelSelector) -> LabelMatcher:
    return LabelMatcher(selector.match_labels, selector.match_expressions)


class SelectorIndex(Generic[T]):
    """Things with a selector each, filed by a label that must be there."""

    __slots__ = ("_anywhere", "_filed")

    def __init__(self, items: Iterable[tuple[LabelMatcher, T]]) -> None:
        self._filed: dict[Address, list[T]] = {}
        self._anywhere: list[T] = []
        for matcher, item in items:
            addresses = next(matcher.choices(), None)
            if addresses is None:
                self._anywhere.append(item)
            else:
                for address in addresses:
                    self._filed.setdefault(address, []).append(item)

    def candidates(self, labels: Mapping[str, str]) -> Iterator[T]:
        """Those that may match, each once; the others cannot."""
        yield from self._anywhere
        filed = self._filed
        if len(filed) <= len(labels):
            for (key, value), items in filed.items():
                if key in labels and value in (None, labels[key]):
                    yield from items
            return
        for pair in labels.items():
            yield from filed.get(pair, ())
            yield from filed.get((pair[0], None), ())
