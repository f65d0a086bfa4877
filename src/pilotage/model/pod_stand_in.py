"""One pod that stands for all pods of a class, and notices when somebody looks at what differs between them.

The pods of a class share namespace, spec and labels. A `StandIn` is a Pod that has these and nothing else: whatever is
read beyond them is answered out of one pod of the class, and noted. So a function that was given a stand-in, and after
which nothing is noted, has answered for every pod of the class.

What cannot be noted cannot be read either: the other fields are unset, so that encoders, `asdict` and `replace`, which
read the memory of a struct without asking it, raise AttributeError.
"""

from __future__ import annotations

from typing import Any, Final

from pilotage.model.pod import Pod

SHARED_FIELDS: Final = ("namespace", "spec", "labels")
_OTHER_FIELDS: Final = {name: getattr(Pod, name) for name in Pod.__struct_fields__ if name not in SHARED_FIELDS}
_WHOLE: Final = "the whole pod"


class StandIn(Pod, frozen=True, eq=False, gc=False, kw_only=True):
    """Stands for the pods that share namespace, spec and labels with `example`; made by `stand_in`.

    What is shared is read as fast as in any pod.
    """

    example: Pod
    noted: set[str]
    """What somebody looked at in which the pods may differ; cleared by whoever wants to know."""

    def noting(self, what: str) -> Pod:
        self.noted.add(what)
        return self.example

    def __eq__(self, other: object) -> bool:
        return self.noting("identity") is (other.example if isinstance(other, StandIn) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.noting("identity"))

    def __repr__(self) -> str:
        return repr(self.noting(_WHOLE))

    def __copy__(self) -> Pod:
        return self.noting(_WHOLE)

    def __reduce__(self) -> Any:
        return self.noting(_WHOLE).__reduce__()


def _noted_field(name: str) -> property:
    return property(lambda self: getattr(self.noting(name), name))


for _name in _OTHER_FIELDS:
    setattr(StandIn, _name, _noted_field(_name))


def stand_in(example: Pod) -> StandIn:
    """A stand-in for the class of this pod."""
    made = StandIn(
        name="", namespace=example.namespace, labels=example.labels, spec=example.spec, example=example, noted=set()
    )
    for slot in _OTHER_FIELDS.values():
        slot.__delete__(made)
    return made
