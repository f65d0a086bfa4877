"""Plugins with kinds of their own: a CustomResourceDefinition that comes and goes, and the role that it needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .client import Json
from .objects import node, pod
from .scheduler_process import SchedulerProcess
from .servers import RealServer, Server, eventually
from .test_shipped_role import kubectl
from .world import World

EXAMPLES = Path(__file__).parents[2] / "examples" / "plugins"
DEFINITION = EXAMPLES / "crds" / "podgroups.yaml"
ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: pod-groups}
rules:
- {apiGroups: ["scheduling.x-k8s.io"], resources: ["podgroups"], verbs: ["list", "watch"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: pod-groups}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pod-groups}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:kube-scheduler"}]
"""


def group(name: str, members: int) -> str:
    return (
        "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\n"
        f"metadata: {{name: {name}, namespace: default}}\nspec: {{minMember: {members}}}\n"
    )


def member(name: str, of: str) -> Json:
    made = pod(name)
    made["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": of}
    return made


def start(world: World) -> SchedulerProcess:
    return world.start_scheduler(
        "--plugin", EXAMPLES / "pod_groups.py", "--config", EXAMPLES / "pod_groups.config.yaml"
    )


@contextmanager
def role(server: Server, folder: Path) -> Iterator[None]:
    """The rules that the plugin needs; the sandbox has no roles."""
    if not isinstance(server, RealServer):
        yield
        return
    (folder / "role.yaml").write_text(ROLE)
    kubectl(server, "apply", "-f", str(folder / "role.yaml"))
    try:
        yield
    finally:
        kubectl(server, "delete", "-f", str(folder / "role.yaml"))


def test_a_kind_that_is_installed_later_removed_and_installed_again(world: World, tmp_path: Path) -> None:
    (tmp_path / "group.yaml").write_text(group("cats", 2))
    world.create(node("n"))
    with role(world.server, tmp_path):
        scheduler = start(world)
        world.create(pod("alone"), member("cat-1", "cats"), member("cat-2", "cats"))
        assert world.wait_bound("alone") == ["n"]
        assert 'pod group "default/cats" not found' in world.wait_refused("cat-1")[0]["message"]
        eventually("it is told", lambda: "the API server does not have this kind" in scheduler.said())
        try:
            kubectl(world.server, "apply", "-f", str(DEFINITION))
            eventually("there is a group", lambda: _applied(world.server, tmp_path / "group.yaml"))
            assert world.wait_bound("cat-1", "cat-2") == ["n", "n"]
        finally:
            kubectl(world.server, "delete", "-f", str(DEFINITION))
        world.create(pod("later"), member("cat-3", "cats"))
        assert world.wait_bound("later") == ["n"]
        try:
            kubectl(world.server, "apply", "-f", str(DEFINITION))
            eventually("there is a group again", lambda: _applied(world.server, tmp_path / "group.yaml"))
            assert world.wait_bound("cat-3") == ["n"]
        finally:
            kubectl(world.server, "delete", "-f", str(DEFINITION))
        assert scheduler.is_running


@pytest.mark.real_server
def test_a_missing_rule_is_reported_at_the_start(world: World) -> None:
    kubectl(world.server, "apply", "-f", str(DEFINITION))
    try:
        scheduler = start(world)
        assert scheduler.wait() == 3
    finally:
        kubectl(world.server, "delete", "-f", str(DEFINITION))
    assert "plugin Coscheduling wants to watch podgroups.v1alpha1.scheduling.x-k8s.io" in scheduler.said()
    rule = '- {apiGroups: ["scheduling.x-k8s.io"], resources: ["podgroups"], verbs: ["list", "watch"]}'
    assert rule in scheduler.said()


def _applied(server: Server, path: Path) -> bool:
    """Discovery may be late."""
    try:
        kubectl(server, "apply", "-f", str(path))
    except AssertionError:
        return False
    return True
