"""CEL as Kubernetes has it, behind an interface of our own, so that the library can be exchanged.

    environment = Environment({"self": CelType.MAP})
    program = environment.compile("self.replicas <= self.most")
    program.evaluate(environment.bind({"self": {"replicas": 2, "most": 3}}))

Only this package imports the CEL library. Things that the library does differently and that are put right here: an
error comes back as a value, not as an exception; and no limit on what an evaluation may cost but the number of turns of
its loops, so expressions that could cost too much are rejected (`cost.py`). What Kubernetes adds to the language is in
`functions.py`; what is missing is rejected when an expression is compiled, by name.
"""

from pilotage.cel.cost import MOST_FOR_OBJECT, Sizes, TooCostly, ValueShape
from pilotage.cel.environment import CelCompileError, CelError, CelType, Environment, Program, Values
from pilotage.cel.reads import ReadParts

__all__ = [
    "MOST_FOR_OBJECT",
    "CelCompileError",
    "CelError",
    "CelType",
    "Environment",
    "Program",
    "ReadParts",
    "Sizes",
    "TooCostly",
    "ValueShape",
    "Values",
]
