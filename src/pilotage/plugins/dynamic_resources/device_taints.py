"""Device taints: devices that only requests with a matching toleration may have.

Taints come with a device, or from DeviceTaintRules that select devices by driver, pool and name.
"""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.model.resource import DeviceTaint, DeviceTaintRule, DeviceToleration
from pilotage.plugins.dynamic_resources.device_ids import DeviceID, PoolID

_KEEPS_AWAY = ("NoSchedule", "NoExecute")


def are_tolerated(taints: Sequence[DeviceTaint], tolerations: Sequence[DeviceToleration]) -> bool:
    """No taint keeps a request with these tolerations away."""
    return all(
        taint.effect not in _KEEPS_AWAY or any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
    )


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def rule_taints(rules: Sequence[DeviceTaintRule], device_id: DeviceID) -> tuple[DeviceTaint, ...]:
    """The taints that rules put on a device."""
    return tuple(rule.spec.taint for rule in rules if rule.selects(*device_id))


def may_select(rule: DeviceTaintRule, pool: PoolID) -> bool:
    """Could the rule be about devices of a pool?"""
    selector = rule.spec.device_selector
    if selector is None:
        return False
    return selector.driver in (None, pool.driver) and selector.pool in (None, pool.pool)
