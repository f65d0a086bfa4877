"""Random objects of the kinds that a plugin watches: its author's samples, and whatever its types allow.

Of a kind without a type and without samples there are none: what its objects look like is not known.

Names matter: a plugin finds such an object by a pod's label, its namespace or a node's name. So they are taken from the
plugin's own words and from the nodes that there are.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import inspect as shapes

from pilotage.api.kinds import Kind
from pilotage.model import DecodeError
from pilotage.testing.plugin_check.vocabulary import Vocabulary

Json = dict[str, Any]

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_NUMBERS: Final = (0, 1, 2, 3)
_RESOURCES: Final = ("cpu", "memory", "pods")
_DEEPEST: Final = 6


class RandomKinds:
    """Objects of some kinds, as JSON and as the plugin sees them."""

    def __init__(
        self, rng: random.Random, words: Vocabulary, kinds: Sequence[Kind], samples: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self._rng = rng
        self._words = words
        self.kinds = tuple(kinds)
        self._samples = {kind: [dict(one) for one in samples if kind.is_of(one)] for kind in self.kinds}

    def new(self, kind: Kind, names: Sequence[str]) -> Any | None:
        """A random object; None if what the type allows cannot be guessed."""
        words = [word for word in self._words.values if _NAME.fullmatch(word)]
        name = self._rng.choice(names if self._rng.random() < 0.5 else words)
        return self._built(kind, name, self._rng.choice(("default", "other", "default")))

    def changed(self, kind: Kind, old: Any) -> Any | None:
        """Another object under the same name."""
        return self._built(kind, old.name, old.namespace)

    def _built(self, kind: Kind, name: str, namespace: str) -> Any | None:
        samples = self._samples[kind]
        if samples and (kind.struct is None or self._rng.random() < 0.7):
            made: Json = self._rng.choice(samples)
            if self._rng.random() < 0.3:
                name = str(made["metadata"]["name"])
        elif kind.struct is not None:
            made = self._value(shapes.type_info(kind.struct), 0)
        else:
            return None
        space = {"namespace": namespace} if kind.namespaced else {}
        given = made.get("metadata") if samples else None
        metadata = {**(given or {}), **space, "name": name, "uid": f"uid-{kind.plural}-{namespace}-{name}"}
        try:
            return kind.info.decode(msgspec.json.encode({**made, "metadata": metadata}))
        except DecodeError:
            return None

    def _value(self, shape: shapes.Type, depth: int) -> Any:
        """Something that decodes into this type; the odd constraint that it misses makes no object."""
        rng = self._rng
        match shape:
            case shapes.StructType():
                fields = [one for one in shape.fields if one.required or (depth < _DEEPEST and rng.random() < 0.7)]
                return {one.encode_name: self._value(one.type, depth + 1) for one in fields}
            case shapes.UnionType():
                known = [one for one in shape.types if not isinstance(one, shapes.NoneType)]
                return self._value(rng.choice(known), depth)
            case shapes.ListType() | shapes.VarTupleType() | shapes.SetType() | shapes.FrozenSetType():
                return [self._value(shape.item_type, depth + 1) for _ in range(rng.randrange(3))]
            case shapes.DictType():
                keys = rng.sample((*_RESOURCES, *self._words.keys), k=rng.randrange(3))
                return {key: self._value(shape.value_type, depth + 1) for key in keys}
            case shapes.IntType() | shapes.FloatType():
                return rng.choice(_NUMBERS)
            case shapes.BoolType():
                return rng.random() < 0.5
            case shapes.LiteralType():
                return rng.choice(shape.values)
            case shapes.EnumType():
                return rng.choice([one.value for one in shape.cls])
            case shapes.StrType(pattern=None):
                return rng.choice(self._words.values)
            case shapes.StrType():
                return str(rng.choice(_NUMBERS))
            case _:
                return None
