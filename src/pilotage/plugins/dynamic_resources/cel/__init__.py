"""CEL selectors of devices behind an interface of our own, so that the library can be exchanged."""

from pilotage.plugins.dynamic_resources.cel.selector import (
    BoundDevice,
    CelCompileError,
    CelError,
    Selector,
    bind_device,
    compile_selector,
)

__all__ = ["BoundDevice", "CelCompileError", "CelError", "Selector", "bind_device", "compile_selector"]
