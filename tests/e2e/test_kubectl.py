"""Everyday use of the real kubectl against the sandbox's server, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.bare_server import bare_server
from tests.e2e.kubectl_command import Kubectl
from tests.sandbox.api_world import config_map, definition, deployment, labelled, pod

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with bare_server(tmp_path_factory.mktemp("kubectl")) as kubeconfig:
        yield Kubectl(kubeconfig)


@pytest.fixture
def namespace(kubectl: Kubectl, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    name = request.node.name.removeprefix("test_").replace("_", "-")[:50].rstrip("-")
    kubectl(f"create namespace {name}")
    return name


def node(name: str) -> dict[str, Any]:
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {"capacity": capacity, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def columns(table: str) -> list[str]:
    return table.splitlines()[0].split()


def test_what_is_served_is_discovered(kubectl: Kubectl) -> None:
    assert "Server Version: v1.37.0" in kubectl("version")
    resources = kubectl("api-resources --no-headers")
    assert {"pods", "deployments", "poddisruptionbudgets", "clusterqueues"} <= {
        line.split()[0] for line in resources.splitlines()
    }
    assert "ok" in kubectl("get --raw /readyz")
    explained = kubectl("explain deployment.spec.template.spec.containers")
    assert "image\t<string>" in explained and "<[]Container>" in explained


def test_apply_creates_leaves_alone_and_changes(kubectl: Kubectl, namespace: str) -> None:
    web = deployment()
    web["spec"]["template"]["spec"]["containers"].append({"name": "second", "image": "i"})
    assert kubectl(f"apply -n {namespace} -f -", web).strip() == "deployment.apps/web created"
    assert kubectl(f"apply -n {namespace} -f -", web).strip() == "deployment.apps/web unchanged"
    web["spec"]["template"]["spec"]["containers"].pop()
    web["spec"]["replicas"] = 4
    assert kubectl(f"apply -n {namespace} -f -", web).strip() == "deployment.apps/web configured"
    stored = kubectl.json(f"get -n {namespace} deployment web")
    assert stored["spec"]["replicas"] == 4
    assert [c["name"] for c in stored["spec"]["template"]["spec"]["containers"]] == ["c"]
    assert stored["metadata"]["generation"] == 2


def test_get_shows_the_usual_tables(kubectl: Kubectl, namespace: str) -> None:
    kubectl(f"create -n {namespace} -f -", labelled(pod("a"), app="web"), pod("b"))
    table = kubectl(f"get pods -n {namespace}")
    assert columns(table) == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [line.split()[:4] for line in table.splitlines()[1:]] == [
        ["a", "0/1", "Pending", "0"],
        ["b", "0/1", "Pending", "0"],
    ]
    wide = kubectl(f"get pods -n {namespace} -o wide")
    assert columns(wide)[5:] == ["IP", "NODE", "NOMINATED", "NODE", "READINESS", "GATES"]
    assert kubectl(f"get pods -n {namespace} -l app=web -o name").split() == ["pod/a"]
    assert kubectl(f"get pods -n {namespace} --field-selector metadata.name=b -o name").split() == ["pod/b"]
    assert "pod/a" in kubectl(f"get all -n {namespace}")
    assert kubectl.json(f"get pod a -n {namespace}")["kind"] == "Pod"
    assert "kind: Pod" in kubectl(f"get pod a -n {namespace} -o yaml")
    assert columns(kubectl("get pods -A"))[0] == "NAMESPACE"
    assert columns(kubectl("get namespaces")) == ["NAME", "STATUS", "AGE"]


def test_get_reads_long_lists_in_chunks(kubectl: Kubectl, namespace: str) -> None:
    kubectl(f"create -n {namespace} -f -", *(config_map(f"c{at:02}") for at in range(25)))
    names = kubectl(f"get configmaps -n {namespace} --chunk-size=10 -o name").split()
    assert names == [f"configmap/c{at:02}" for at in range(25)]
    assert len(kubectl(f"get configmaps -n {namespace} --chunk-size=4 --no-headers").splitlines()) == 25


def test_get_watch_follows_what_happens(kubectl: Kubectl, namespace: str) -> None:
    kubectl(f"create -n {namespace} -f -", pod("first"))
    with kubectl.start(f"get pods -n {namespace} -w --no-headers") as watching:
        assert watching.stdout
        assert watching.stdout.readline().split()[0] == "first"
        kubectl(f"create -n {namespace} -f -", pod("second"))
        assert watching.stdout.readline().split()[0] == "second"
        watching.terminate()


def test_describe_says_events(kubectl: Kubectl, namespace: str) -> None:
    kubectl(f"create -n {namespace} -f -", pod("p"))
    uid = kubectl.json(f"get pod p -n {namespace}")["metadata"]["uid"]
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "p.1", "namespace": namespace},
        "regarding": {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": namespace, "uid": uid},
        "reason": "FailedScheduling",
        "note": "0/0 nodes are available",
        "type": "Warning",
        "action": "Scheduling",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-0",
        "eventTime": "2026-01-01T00:00:00.000000Z",
    }
    kubectl(f"create -n {namespace} -f -", event)
    described = kubectl(f"describe pod p -n {namespace}")
    assert "FailedScheduling" in described and "0/0 nodes are available" in described
    assert "FailedScheduling" in kubectl(f"get events -n {namespace}")
    assert "FailedScheduling" in kubectl(f"get events -n {namespace} --sort-by=.lastTimestamp")


def test_patch_label_and_annotate(kubectl: Kubectl, namespace: str) -> None:
    kubectl(f"create -n {namespace} -f -", deployment(replicas=1))
    get = f"get deployment web -n {namespace}"
    kubectl(f'patch deployment web -n {namespace} -p {{"spec":{{"replicas":2}}}}')
    assert kubectl.json(get)["spec"]["replicas"] == 2
    kubectl(f'patch deployment web -n {namespace} --type=merge -p {{"spec":{{"replicas":3}}}}')
    assert kubectl.json(get)["spec"]["replicas"] == 3
    operation = '[{"op":"replace","path":"/spec/replicas","value":4}]'
    kubectl(f"patch deployment web -n {namespace} --type=json -p {operation}")
    assert kubectl.json(get)["spec"]["replicas"] == 4
    kubectl(f"label deployment web -n {namespace} tier=front")
    kubectl(f"annotate deployment web -n {namespace} note=hello")
    kubectl(f"scale deployment web -n {namespace} --replicas=5")
    changed = kubectl.json(get)
    assert changed["metadata"]["labels"] == {"tier": "front"}
    assert changed["metadata"]["annotations"]["note"] == "hello"
    assert changed["spec"]["replicas"] == 5


def test_nodes_are_tainted_and_cordoned(kubectl: Kubectl) -> None:
    kubectl("create -f -", node("n1"))
    kubectl("taint node n1 dedicated=gpu:NoSchedule")
    kubectl("cordon n1")
    taints = {taint["key"] for taint in kubectl.json("get node n1")["spec"]["taints"]}
    assert "dedicated" in taints
    assert kubectl("get node n1 --no-headers").split()[1] == "Ready,SchedulingDisabled"
    kubectl("uncordon n1")
    kubectl("taint node n1 dedicated:NoSchedule-")
    assert not kubectl.json("get node n1")["spec"].get("unschedulable")
    assert "Capacity:" in kubectl("describe node n1")


def test_generators_create_what_they_say(kubectl: Kubectl, namespace: str) -> None:
    """These commands send protobuf."""
    kubectl(f"create -n {namespace} deployment d --image=i --replicas=3")
    kubectl(f"create -n {namespace} configmap c --from-literal=a=b")
    kubectl(f"create -n {namespace} secret generic s --from-literal=a=b")
    kubectl(f"create -n {namespace} job j --image=i")
    kubectl(f"create -n {namespace} poddisruptionbudget b --selector=app=d --min-available=50%")
    kubectl(f"create -n {namespace} service clusterip v --tcp=80:8080")
    kubectl(f"run p -n {namespace} --image=i --labels=app=x")
    assert kubectl.json(f"get deployment d -n {namespace}")["spec"]["replicas"] == 3
    assert kubectl.json(f"get configmap c -n {namespace}")["data"] == {"a": "b"}
    assert kubectl.json(f"get secret s -n {namespace}")["data"] == {"a": "Yg=="}
    assert kubectl.json(f"get poddisruptionbudget b -n {namespace}")["spec"]["minAvailable"] == "50%"
    assert kubectl.json(f"get service v -n {namespace}")["spec"]["ports"][0]["targetPort"] == 8080
    assert kubectl("auth can-i create pods").strip() == "yes"


def test_delete_waits_and_cascades(kubectl: Kubectl, namespace: str) -> None:
    kubectl(f"create -n {namespace} -f -", pod("p"), config_map("c"), deployment())
    assert "deleted" in kubectl(f"delete pod p -n {namespace}")
    kubectl(f"delete deployment web -n {namespace} --cascade=orphan --wait=false")
    assert kubectl.json(f"get deployment web -n {namespace}")["metadata"]["finalizers"] == ["orphan"]
    patch = '{"metadata":{"finalizers":null}}'
    kubectl(f"patch deployment web -n {namespace} --type=merge -p {patch}")
    kubectl(f"wait --for=delete deployment/web -n {namespace} --timeout=50s")
    kubectl(f"delete configmaps --all -n {namespace}")
    kubectl(f"delete namespace {namespace}")
    assert "not found" in kubectl.refused(f"get namespace {namespace}")


def test_a_dry_run_stores_nothing(kubectl: Kubectl, namespace: str) -> None:
    assert "(server dry run)" in kubectl(f"apply -n {namespace} --dry-run=server -f -", deployment())
    assert "not found" in kubectl.refused(f"get deployment web -n {namespace}")


def test_wait_sees_a_condition_come(kubectl: Kubectl, namespace: str) -> None:
    kubectl(f"create -n {namespace} -f -", pod("p"))
    with kubectl.start(f"wait --for=condition=Ready pod/p -n {namespace} --timeout=50s") as waiting:
        patch = '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'
        kubectl(f"patch pod p -n {namespace} --subresource=status -p {patch}")
        assert waiting.wait(timeout=60) == 0


def test_custom_kinds_are_served_like_any_other(kubectl: Kubectl, namespace: str) -> None:
    size = {"type": "integer", "default": 3, "description": "How large the widget is."}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "default": {}, "properties": {"size": size}}}}
    column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
    widgets = definition(schema={"openAPIV3Schema": schema}, additionalPrinterColumns=[column])
    kubectl("apply -f -", widgets)
    kubectl("wait --for=condition=Established crd/widgets.example.com --timeout=50s")
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    kubectl(f"apply -n {namespace} -f -", widget)
    table = kubectl(f"get wi -n {namespace}")
    assert columns(table) == ["NAME", "SIZE"] and table.splitlines()[1].split() == ["w", "3"]
    assert "How large the widget is." in kubectl("explain widget.spec.size")
    typo = {**widget, "metadata": {"name": "x"}, "spec": {"sise": 1}}
    assert 'unknown field "spec.sise"' in kubectl.refused(f"apply -n {namespace} -f -", typo)
    kubectl("delete crd widgets.example.com")
    assert "could not find the requested resource" in kubectl.refused(f"get widgets -n {namespace}")


NEGATIVE = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "-1"}}}
UNHEARD = {"apiVersion": "v1", "kind": "Unheard", "metadata": {"name": "x"}}


@pytest.mark.parametrize(
    ("command", "objects", "says"),
    [
        ("create -f -", [pod("twice"), pod("twice")], 'pods "twice" already exists'),
        ("get pod missing", [], 'Error from server (NotFound): pods "missing" not found'),
        ("create -n nowhere -f -", [pod("p")], 'namespaces "nowhere" not found'),
        ("apply -f -", [{**deployment("typo"), "sepc": {}}], 'strict decoding error: unknown field "sepc"'),
        ("create -f -", [pod("neg", containers=[NEGATIVE])], 'requests[cpu]: Invalid value: "-1"'),
        ("create -f -", [pod("Not A Name")], "metadata.name: Invalid value"),
        ("create --validate=false -f -", [{**pod("shape"), "spec": {"containers": "none"}}], "spec.containers"),
        ("create -f -", [UNHEARD], 'no matches for kind "Unheard" in version "v1"'),
        ("get pods --field-selector spec.image=x", [], "field label not supported: spec.image"),
        ("delete namespace default", [], "this namespace may not be deleted"),
        ("create -f -", [config_map("huge", text="x" * 10_000_000)], "Request entity too large: limit is 3145728"),
    ],
)
def test_what_is_wrong_is_said_as_users_know_it(kubectl: Kubectl, command: str, objects: list[Any], says: str) -> None:
    assert says in kubectl.refused(command, *objects)


def test_a_pod_that_does_not_run_has_no_logs_and_carries_out_no_commands(kubectl: Kubectl, namespace: str) -> None:
    kubectl(f"create -n {namespace} -f -", pod("p"))
    assert "is waiting to start: ContainerCreating" in kubectl.refused(f"logs p -n {namespace}")
    assert "it is not running" in kubectl.refused(f"exec p -n {namespace} -- true")


def test_kubectl_trusts_the_sandbox_over_tls(tmp_path: Path) -> None:
    with bare_server(tmp_path, "tls") as kubeconfig:
        kubectl = Kubectl(kubeconfig)
        assert "https://" in kubectl("cluster-info")
        kubectl("create namespace secure")
        assert kubectl("get namespace secure -o name").strip() == "namespace/secure"
