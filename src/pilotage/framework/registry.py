"""Which plugins there are, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilotage.api.plugin import Plugin
from pilotage.framework.errors import ProfileError
from pilotage.model.suggestions import suggestion


class Registry:
    """Plugin classes by name; a name is given once."""

    def __init__(self, classes: Iterable[type[Plugin]] = ()) -> None:
        self._classes: dict[str, type[Plugin]] = {}
        for cls in classes:
            self.add(cls)

    def add(self, cls: type[Plugin]) -> None:
        name = cls.plugin_name()
        if name in self._classes:
            raise ProfileError(f'a plugin named "{name}" already exists')
        self._classes[name] = cls

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __contains__(self, name: str) -> bool:
        return name in self._classes

    def __getitem__(self, name: str) -> type[Plugin]:
        try:
            return self._classes[name]
        except KeyError:
            raise ProfileError(f'unknown plugin "{name}"{suggestion(name, self._classes)}') from None
