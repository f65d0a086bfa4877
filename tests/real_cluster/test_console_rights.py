"""`run --console` behind a real API server, with the service account and the role as shipped: a token is who you are,
and what you may list is what you see."""

from __future__ import annotations

import http.client
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self
from urllib.parse import urlencode

import pytest

from pilotage.bench.control_plane import HOST, free_port

from .objects import node, pod
from .servers import RealServer, eventually
from .world import World

pytestmark = pytest.mark.real_server

KUBECTL = Path(sys.executable).parent / "kubectl"
OVERLAY = Path(__file__).parents[2] / "deploy" / "overlays" / "second-scheduler"
PEOPLE = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: tenant}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: admin}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: stranger}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: lists-pods}
rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant-lists-pods}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: lists-pods}
subjects: [{kind: ServiceAccount, name: tenant, namespace: default}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: console-admin}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: admin, namespace: default}]
"""


class Place:
    """The console of a scheduler that was installed as shipped."""

    def __init__(self, world: World, port: int) -> None:
        self.world = world
        self.port = port

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        command = [str(KUBECTL), "--kubeconfig", str(self.world.server.admin), *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def visitor(self, account: str = "") -> Visitor:
        """Somebody, logged in if they have an account."""
        visitor = Visitor(self.port)
        return visitor.logged_in(self.kubectl("create", "token", account).strip()) if account else visitor


class Visitor:
    """A browser without pictures: keeps its cookie, follows nothing."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._cookie = ""

    def logged_in(self, token: str) -> Self:
        answer, headers, _ = self.ask("login", urlencode({"token": token}))
        assert (answer, headers.get("Location")) == (303, "/console/"), answer
        self._cookie = headers["Set-Cookie"].partition(";")[0]
        assert "HttpOnly" in headers["Set-Cookie"] and "Secure" in headers["Set-Cookie"]
        return self

    def ask(self, path: str, form: str | None = None) -> tuple[int, dict[str, str], str]:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(HOST, self._port, context=context, timeout=30)
        headers = {"Cookie": self._cookie} if self._cookie else {}
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request("GET" if form is None else "POST", f"/console/{path}", form, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, dict(answer.getheaders()), text

    def text(self, path: str = "") -> str:
        return self.ask(path)[2]

    def status(self, path: str = "") -> int:
        return self.ask(path)[0]


@pytest.fixture
def place(world: World) -> Iterator[Place]:
    assert isinstance(world.server, RealServer), "the sandbox has no roles"
    made = Place(world, free_port())
    made.kubectl("apply", "-k", str(OVERLAY))
    made.kubectl("apply", "-f", "-", stdin=PEOPLE)
    try:
        yield made
    finally:
        world.end_schedulers()
        made.kubectl("delete", "-f", "-", "--ignore-not-found", "--wait=false", stdin=PEOPLE)
        made.kubectl("delete", "-k", str(OVERLAY), "--wait=false")


def start(place: Place) -> None:
    assert isinstance(place.world.server, RealServer)
    token = place.kubectl("create", "token", "pilotage", "-n", "kube-system").strip()
    shipped = place.world.server.plane.kubeconfig("console", {"token": token})
    flags = ("--console", "--leader-elect=false", f"--secure-port={place.port}", f"--bind-address={HOST}")
    place.world.start_instance(*flags, kubeconfig=shipped)
    eventually("the console is there", lambda: is_there(place))


def is_there(place: Place) -> bool:
    try:
        return place.visitor().status("login") == 200
    except OSError:
        return False


def test_everybody_sees_what_they_may_list(place: Place) -> None:
    place.world.create(node("n", cpu="2"), pod("mine", cpu="8"))
    place.world.create({**pod("secret", cpu="9"), "metadata": {"name": "secret", "namespace": "kube-public"}})
    start(place)
    place.world.wait_refused("mine")
    admin, tenant, stranger = (place.visitor(name) for name in ("admin", "tenant", "stranger"))

    eventually("the admin sees all", lambda: {"mine", "secret"} <= set(re.findall(r"\w+", admin.text("waiting"))))
    assert "/console/nodes/n" in admin.text("pods/default/mine")
    assert admin.status("nodes/n") == 200

    assert "default/mine" in tenant.text("waiting?namespace=default")
    assert "secret" not in tenant.text("waiting?namespace=kube-public") + tenant.text("waiting") + tenant.text()
    assert tenant.status("pods/default/mine") == 200 and tenant.status("pods/kube-public/secret") == 403
    assert tenant.status("nodes/n") == 403 and "/console/nodes/n" not in tenant.text("pods/default/mine")
    assert "secret" not in tenant.text("live?view=/console/waiting%3Fnamespace=kube-public")

    assert "default/mine" not in stranger.text("waiting?namespace=default")
    assert stranger.status("pods/default/mine") == 403


def test_whoever_has_no_valid_token_is_led_to_the_form(place: Place) -> None:
    place.world.create(node("n", cpu="2"))
    start(place)
    anybody = place.visitor()
    for path in ("", "waiting", "pods/default/mine"):
        status, headers, _ = anybody.ask(path)
        assert (status, headers["Location"]) == (303, "/console/login")
    assert anybody.status("live?view=/console/") == 401
    status, headers, text = anybody.ask("login", "token=wrong")
    assert status == 401 and "does not know this token" in text and "Set-Cookie" not in headers
    # Twenty at once, then one a second: some of so many in a row come too early, however slow the machine is.
    assert 429 in {anybody.ask("login", "token=wrong")[0] for _ in range(100)}


def test_a_log_in_outlives_the_scheduler_but_not_the_account(place: Place) -> None:
    place.world.create(node("n", cpu="2"))
    start(place)
    admin = place.visitor("admin")
    assert "Overview" in admin.text()
    place.world.end_schedulers()
    start(place)
    assert "Overview" in admin.text()
    place.kubectl("delete", "serviceaccount", "admin")
    eventually("the token is worth nothing", lambda: admin.status() == 303)
