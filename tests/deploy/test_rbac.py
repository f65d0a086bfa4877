"""The shipped role against the requests of a whole scheduler that does everything it can do, in virtual time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.calls.fenced_writer import FencedWriter
from pilotage.config.feature_gates import FeatureGates
from pilotage.kube.client import KubeClient
from pilotage.kube.election import Election, ElectionTiming, LeaseName
from pilotage.kube.leader_election import LeaderElector
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.serve.access import DelegatedAuthorizer
from pilotage.serve.authorities import cluster_authorities
from pilotage.serve.client_certificates import ClientCertificates
from pilotage.serve.identity import DelegatedAuthenticator
from pilotage.serve.page import PageRequest
from pilotage.serve.request_access import PathAccess
from pilotage.serve.service import SchedulerService
from pilotage.serve.start_checks import GROUP_WRITES, WRITES, lease_permissions
from pilotage.serve.tls import ServerTls, TlsOptions
from pilotage.testing import VirtualClock

from .recorded_requests import Access, RecordingTransport, access_of

BASE = Path(__file__).parents[2] / "deploy" / "base"
LEASE = LeaseName("kube-system", "pilotage")
SLICE_SPEC = {
    "driver": "d.example.com",
    "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
    "nodeName": "node-00001",
    "devices": [{"name": name} for name in "abcd"],
}
DEVICE_REQUESTS = [{"name": "r0", "exactly": {"deviceClassName": "gpu"}}]
EXTENDED = "deviceclass.resource.kubernetes.io/gpu"
_GRANTED_BY_KUBERNETES = {
    # By the role extension-apiserver-authentication-reader, which rbac.yaml binds.
    Access("get", "", "configmaps", "kube-system", "extension-apiserver-authentication"),
}
_ASKED_BESIDE_THE_REQUEST = {
    # Who patches resourceclaims/status with an allocation needs this too; there is no request of that name.
    ("patch", "resource.k8s.io", "resourceclaims/binding"),
}
Json = dict[str, Any]


class Play:
    """Everything that a scheduler can be made to do."""

    def __init__(self, cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        self.api = cluster.api
        self.clock = clock
        self.made: set[Access] = set()
        self._token = cluster.server.token
        self.transport = RecordingTransport(cluster.transport(), self.made)
        client = KubeClient(self.transport)
        election = Election("me", LEASE, ElectionTiming())
        self.elector = LeaderElector(client, election, clock, seeded(1))
        writer = FencedWriter(client, lambda: self.elector.is_leading)
        gates = FeatureGates({"GenericWorkload": True})
        process = SchedulerProcess(client, clock, seeded(2), SchedulerOptions(feature_gates=gates), writer)
        self.service = SchedulerService(process, self.elector)

    async def perform(self) -> None:
        self._set_up_devices()
        self._set_up_volumes()
        self.transport.loses_once = {
            ("create", "pods/binding"),
            ("patch", "persistentvolumes"),
            ("patch", "persistentvolumeclaims"),
        }
        self._pod("plain")
        self._pod("hopeless", cpu="999")
        self._pod("with-claim", resourceClaims=[{"name": "d", "resourceClaimName": "mine"}])
        self._start_gang()
        self._pod("with-extended", **{EXTENDED: "1"})
        self._pod("static-volume", volumes=[_volume("static")])
        self._pod("new-volume", volumes=[_volume("dynamic")])
        await self.clock.advance(10.0)
        assert not self.transport.loses_once, "the play has to lose these answers"
        await self._preempt()
        await self._fail_with_devices()
        await self._visit_pages()
        await self._stand_by()
        await self._wake_hopeless_again()

    def _start_gang(self) -> None:
        spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        self.api.create("podgroups.scheduling.k8s.io", "default", {"metadata": {"name": "gang"}, "spec": spec})
        for number in range(2):
            self._pod(f"member-{number}", schedulingGroup={"podGroupName": "gang"})

    async def _preempt(self) -> None:
        self.api.create("priorityclasses.scheduling.k8s.io", "", {"metadata": {"name": "high"}, "value": 1000})
        for number in range(2):
            self._pod(f"low-{number}", cpu="3500m")
        await self.clock.advance(5.0)
        self._pod("vip", cpu="3500m", priorityClassName="high")
        await self.clock.advance(40.0)

    async def _fail_with_devices(self) -> None:
        """A claim was made for the pod, and then it could not be bound."""
        self.transport.refuses_binding_of = "unlucky"
        self._pod("unlucky", **{EXTENDED: "1"})
        await self.clock.advance(20.0)
        self.transport.refuses_binding_of = ""

    async def _wake_hopeless_again(self) -> None:
        """The same failure about the same version of the pod: a series of events."""
        for number in range(3):
            node: Json = {"metadata": {"name": f"tiny-{number}"}, "status": {"allocatable": {"cpu": "1", "pods": "1"}}}
            self.api.create("nodes", "", node)
            await self.clock.advance(20.0)

    async def _stand_by(self) -> None:
        """What the second replica does."""
        standby = LeaderElector(
            KubeClient(self.transport), Election("another", LEASE, ElectionTiming()), self.clock, seeded(3)
        )
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(standby.acquire(), name="standby")
            await self.clock.advance(5.0)
            waiting.cancel()

    async def _visit_pages(self) -> None:
        request = PageRequest("/metrics", headers={"authorization": f"Bearer {self._token}"})
        certificates = ClientCertificates(ServerTls(TlsOptions()))
        user = await DelegatedAuthenticator(self.transport, self.clock, certificates).user(request, None)
        await DelegatedAuthorizer(self.transport, self.clock).is_allowed(user, PathAccess("get", "/metrics"))
        await cluster_authorities(self.transport)

    def _set_up_devices(self) -> None:
        self.api.create("deviceclasses.resource.k8s.io", "", {"metadata": {"name": "gpu"}, "spec": {}})
        self.api.create("resourceslices.resource.k8s.io", "", {"metadata": {"name": "s"}, "spec": SLICE_SPEC})
        claim = {"metadata": {"name": "mine"}, "spec": {"devices": {"requests": DEVICE_REQUESTS}}}
        self.api.create("resourceclaims.resource.k8s.io", "default", claim)

    def _set_up_volumes(self) -> None:
        late = {"volumeBindingMode": "WaitForFirstConsumer"}
        local = {"metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner", **late}
        made = {"metadata": {"name": "made"}, "provisioner": "pilotage.dev/sandbox", **late}
        for storage_class in (local, made):
            self.api.create("storageclasses.storage.k8s.io", "", storage_class)
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-00002"]}]}
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/x"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        }
        self.api.create("persistentvolumes", "", {"metadata": {"name": "pv"}, "spec": spec})
        for name, storage_class_name in (("static", "local"), ("dynamic", "made")):
            claim = {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": storage_class_name,
            }
            self.api.create("persistentvolumeclaims", "default", {"metadata": {"name": name}, "spec": claim})

    def _pod(self, name: str, **options: Any) -> None:
        requests = {key: options.pop(key) for key in ("cpu", EXTENDED) if key in options}
        limits = {key: value for key, value in requests.items() if key == EXTENDED}
        container = {"name": "c", "image": "i", "resources": {"requests": requests, "limits": limits}}
        self.api.create("pods", "default", {"metadata": {"name": name}, "spec": {"containers": [container], **options}})


def _volume(claim: str) -> Json:
    return {"name": "v", "persistentVolumeClaim": {"claimName": claim}}


async def requests_of_a_whole_scheduler() -> set[Access]:
    clock = VirtualClock()
    async with EmbeddedCluster.running(EmbeddedOptions(nodes=2, port=None), clock, seeded(1)) as cluster:
        play = Play(cluster, clock)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(play.service.run(), name="scheduler")
            await clock.advance(2.0)
            await play.perform()
            play.service.stop()
            await clock.advance(20.0)
        return play.made


@pytest.fixture(scope="module")
def made() -> set[Access]:
    return asyncio.run(requests_of_a_whole_scheduler())


def shipped_rules() -> list[tuple[str, Json]]:
    """(kind of role, rule)"""
    documents = yaml.safe_load_all((BASE / "rbac.yaml").read_text())
    roles = [document for document in documents if document["kind"] in ("Role", "ClusterRole")]
    return [(role["kind"], rule) for role in roles for rule in role["rules"]]


def grants(kind: str, rule: Json, access: Access) -> bool:
    if kind == "Role" and access.namespace != "kube-system":
        return False
    names = rule.get("resourceNames")
    return (
        access.verb in rule["verbs"]
        and access.group in rule["apiGroups"]
        and access.resource in rule["resources"]
        and (names is None or access.name in names)
    )


def test_the_role_grants_everything_that_a_scheduler_does(made: set[Access]) -> None:
    rules = shipped_rules()
    refused = {access for access in made if not any(grants(kind, rule, access) for kind, rule in rules)}
    assert refused - _GRANTED_BY_KUBERNETES == set()


def test_the_role_grants_nothing_that_a_scheduler_does_not_do(made: set[Access]) -> None:
    done = {(access.verb, access.group, access.resource) for access in made}
    granted = {
        (verb, group, resource)
        for _, rule in shipped_rules()
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert granted - done == _ASKED_BESIDE_THE_REQUEST


def test_what_is_asked_at_the_start_is_what_the_role_grants() -> None:
    """`pilotage run` warns of missing permissions by a list of its own."""
    wanted = {
        Access(one.verb, one.group, one.qualified, one.namespace or "default", one.name)
        for one in (*WRITES, *GROUP_WRITES, *lease_permissions(LEASE))
    }
    rules = shipped_rules()
    assert {access for access in wanted if not any(grants(kind, rule, access) for kind, rule in rules)} == set()
    reads = {"list", "watch", "get"}
    reviews = {"tokenreviews", "subjectaccessreviews"}
    listed = {(access.verb, access.resource) for access in wanted}
    granted = {
        (verb, resource)
        for _, rule in shipped_rules()
        for verb in rule["verbs"]
        for resource in rule["resources"]
        if verb not in reads and resource not in reviews
    }
    # Servers before 1.36 do not ask for it, and their own roles do not grant it: no reason to warn.
    assert granted - listed == {(verb, resource) for verb, _, resource in _ASKED_BESIDE_THE_REQUEST}


@pytest.mark.parametrize(
    ("method", "path", "access"),
    [
        ("GET", "/version", None),
        ("GET", "/apis/storage.k8s.io/v1", None),
        ("GET", "/api/v1/nodes", Access("list", "", "nodes")),
        ("WATCH", "/api/v1/pods?metadata.name=p", Access("watch", "", "pods", "", "p")),
        ("WATCH", "/apis/apps/v1/replicasets", Access("watch", "apps", "replicasets")),
        ("POST", "/api/v1/namespaces/d/pods/p/binding", Access("create", "", "pods/binding", "d", "p")),
        ("GET", "/api/v1/namespaces/d", Access("get", "", "namespaces", "", "d")),
    ],
)
def test_requests_in_the_words_of_rbac(method: str, path: str, access: Access | None) -> None:
    path, _, selector = path.partition("?")
    assert access_of(method, path, {"fieldSelector": selector}) == access
