"""Objects as rules read them: msgspec structs with the fields that the rules of a kind read, and no others.

`kinds/shapes.py` has checked the types of all fields by then, as the API schemas have them. The conversion here makes
typed attributes of the completed object and checks the width of integers, of which the schemas say nothing. Null is the
same as absent everywhere.

A wrong value becomes one `FieldError` with the path of the field. msgspec does not tell the key inside a map, so that
is searched for afterwards, on this rare path only.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, TypeVar

import msgspec

from pilotage.model.errors import explain_problem
from pilotage.sandbox.errors import FieldError
from pilotage.sandbox.rules.validation.problems import wrong_type


class Shape(msgspec.Struct, rename="camel", gc=False):
    """Base of all shapes; all fields are optional and default to None."""


Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
IntOrString = Int32 | str
Quantity = str | int | float
Quantities = dict[str, Quantity]
Labels = dict[str, str]

T = TypeVar("T", bound=Shape)

_STEP: Final = re.compile(r"(?:^|\.)([^.\[]+)|\[(\d+|\*)\]")
_ANY_KEY: Final = "*"
_DEEPEST: Final = 100


def read_shape(shape: type[T], obj: Any) -> T | FieldError:
    """`obj` in its shape, or the first field that has the wrong type."""
    try:
        return _read(shape, obj)
    except RecursionError:
        return wrong_type("", "", "the object is nested too deeply")
    except UnicodeEncodeError as error:
        return wrong_type("", "", f"a text in the object is not Unicode: {error.reason}")


def _read(shape: type[T], obj: Any) -> T | FieldError:
    try:
        return msgspec.convert(obj, shape)
    except msgspec.ValidationError as error:
        return _explain(shape, obj, str(error))


def _explain(shape: type[Shape], obj: Any, text: str) -> FieldError:
    path, problem = explain_problem(text)
    steps = _with_map_keys(shape, obj, [name or index for name, index in _STEP.findall(path)], path)
    return wrong_type(_path_text(steps, path), _value_at(obj, steps), problem)


def _with_map_keys(shape: type[Shape], obj: Any, steps: list[str], path: str) -> list[str]:
    """Replace each `*` by the key of the map at which the conversion fails."""
    for position, step in enumerate(steps[:_DEEPEST]):
        if step == _ANY_KEY:
            suspects = list(_value_at(obj, steps[:position]))
            while len(suspects) > 1:
                half = suspects[: len(suspects) // 2]
                fails = _fails_at(shape, _with_only(obj, steps[:position], half), path)
                suspects = half if fails else suspects[len(half) :]
            steps = [*steps[:position], str(suspects[0]), *steps[position + 1 :]]
            obj = _with_only(obj, steps[:position], suspects)
    return steps


def _fails_at(shape: type[Shape], obj: Any, path: str) -> bool:
    try:
        msgspec.convert(obj, shape)
    except msgspec.ValidationError as error:
        return explain_problem(str(error))[0] == path
    return False


def _with_only(obj: Any, steps: list[str], keys: list[str]) -> Any:
    """A copy of `obj` in which the map at `steps` has only `keys`; everything beside the path is shared."""
    if not steps:
        return {key: obj[key] for key in keys}
    changed = obj.copy()
    step: Any = int(steps[0]) if isinstance(obj, list) else steps[0]
    changed[step] = _with_only(obj[step], steps[1:], keys)
    return changed


def _value_at(obj: Any, steps: list[str]) -> Any:
    for step in steps:
        obj = obj[int(step)] if isinstance(obj, list) else obj[step]
    return obj


def _path_text(steps: list[str], path: str) -> str:
    text = ""
    in_map = [index == _ANY_KEY or index.isdigit() for _, index in _STEP.findall(path)]
    for step, bracketed in zip(steps, in_map, strict=True):
        text += f"[{step}]" if bracketed else f".{step}"
    return text.lstrip(".")
