"""Plugins by name."""

from __future__ import annotations

import pytest

from pilotage.api import Plugin
from pilotage.framework.errors import ProfileError
from pilotage.framework.registry import Registry
from pilotage.plugins import NodeName, TaintToleration


class Unnamed(Plugin):
    pass


def test_plugins_are_found_by_the_name_they_give_themselves() -> None:
    registry = Registry([TaintToleration, Unnamed])
    assert registry["TaintToleration"] is TaintToleration and registry["Unnamed"] is Unnamed
    assert list(registry) == ["TaintToleration", "Unnamed"]
    assert "Unnamed" in registry and "NodeName" not in registry


def test_a_name_is_given_once() -> None:
    registry = Registry([NodeName])
    impostor = type("Impostor", (Plugin,), {"name": "NodeName"})
    with pytest.raises(ProfileError, match='a plugin named "NodeName" already exists'):
        registry.add(impostor)
    assert registry["NodeName"] is NodeName


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(ProfileError, match=r'^unknown plugin "TaintTolerations" \(did you mean "TaintToleration"\?\)$'):
        Registry([TaintToleration, NodeName])["TaintTolerations"]


def test_a_name_that_is_like_nothing_gets_none() -> None:
    with pytest.raises(ProfileError, match=r'^unknown plugin "Zzz"$'):
        Registry([TaintToleration])["Zzz"]
