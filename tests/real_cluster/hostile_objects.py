"""Objects that an API server accepts and that ask a scheduler for a lot of work: each a name and what to create.

Sizes go up to the server's limits (3 MiB of JSON, 1.5 MiB stored). Families: what pods ask for, whom they want to be
near, running pods that others must look at, objects beside pods, nodes, queues; devices are in `hostile_devices`.
Everything that can be in a namespace is in that of one tenant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from .client import Json

TENANT = "tenant"
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class HostileCase:
    """What to create, in this order."""

    name: str
    make: Callable[[], list[Json]]
    needs_queueing: bool = False


def head(kind: str, name: str, version: str = "v1", *, namespace: str | None = TENANT, **metadata: Any) -> Json:
    where = {} if namespace is None else {"namespace": namespace}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **where, **metadata}}


def pod(name: str = "hostile", *, labels: Json | None = None, resources: Json | None = None, **spec: Any) -> Json:
    container = {"name": "c", "image": "pause", "resources": resources or {"requests": {"cpu": "1m"}}}
    made = head("Pod", name, labels=labels or {"app": "hostile"})
    return {**made, "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}}


def running(name: str, node: int, **parts: Any) -> Json:
    """A pod that was given its node by whoever created it: it is running before any scheduler has seen it."""
    return pod(name, nodeName=f"node-{node}", **parts)


def affinity(kind: str, *terms: Json, **lists: list[Json]) -> Json:
    chosen = {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)} if terms else {}
    return {kind: {**chosen, **lists}}


def keys(count: int, prefix: str = "key") -> list[str]:
    return [f"{prefix}-{number}.example.com/k" for number in range(count)]


def words(count: int, prefix: str = "v") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def exists(key: str) -> Json:
    return {"key": key, "operator": "Exists"}


def is_in(key: str, values: list[str], operator: str = "In") -> Json:
    return {"key": key, "operator": operator, "values": values}


def node_terms(*terms: list[Json]) -> Json:
    listed = [{"matchExpressions": term} for term in terms]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}}


def preferred_nodes(*terms: list[Json]) -> Json:
    listed = [{"weight": 1 + i % 100, "preference": {"matchExpressions": term}} for i, term in enumerate(terms)]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": listed}}


def near(topology: str, selector: Json | None = None, **more: Any) -> Json:
    return {"topologyKey": topology, "labelSelector": selector or {"matchLabels": {"app": "hostile"}}, **more}


def weighted(*terms: Json) -> list[Json]:
    return [{"weight": 1 + number % 100, "podAffinityTerm": term} for number, term in enumerate(terms)]


def spread(topology: str, when: str = "DoNotSchedule", selector: Json | None = None, **more: Any) -> Json:
    chosen = selector or {"matchLabels": {"app": "hostile"}}
    return {"maxSkew": 1, "topologyKey": topology, "whenUnsatisfiable": when, "labelSelector": chosen, **more}


def claims_of(*names: str) -> dict[str, Any]:
    """What a pod says to use these resource claims."""
    return {"resourceClaims": [{"name": f"c{i}", "resourceClaimName": name} for i, name in enumerate(names)]}


# --- what pods ask for --------------------------------------------------------------------------------------------


def resource_cases() -> Iterator[HostileCase]:
    for count in (100, 2_000, 8_000, 15_000):
        amounts = dict.fromkeys((f"r{i}.io/a" for i in range(count)), "1")
        yield one(f"extended-resources-{count}", pod(resources={"requests": amounts, "limits": amounts}))
    for kind, quantity in {
        "leading-zeros": "0" * 5_000 + "1",
        "many-decimals": "0." + "0" * 4_000 + "1",
        "exponent": "1e18",
        "exa": "7Ei",
        "tiny": "1n",
        "huge-digits": "9" * 400,
    }.items():
        yield one(f"memory-{kind}", pod(resources={"requests": {"memory": quantity}}))
        yield one(f"cpu-{kind}", pod(resources={"requests": {"cpu": quantity}}))
    yield one("containers-2000", pod(containers=list(containers(2_000))))
    yield one("init-containers-2000", pod(initContainers=list(containers(2_000))))
    sidecars = [{**one_of, "restartPolicy": "Always"} for one_of in containers(2_000)]
    yield one("sidecars-2000", pod(initContainers=sidecars))
    many = dict.fromkeys((f"r{i}.io/a" for i in range(60)), "1")
    parts = [{**part, "resources": {"requests": many, "limits": many}} for part in containers(150)]
    yield one("containers-150-with-60-resources", pod(containers=parts, initContainers=rename(parts)))
    amounts_of = [{f"r{i}.io/a": "1"} for i in range(2_000)]
    own = [{**part, "resources": {"requests": n, "limits": n}} for part, n in zip(sidecars, amounts_of, strict=True)]
    yield one("sidecars-2000-with-own-resources", pod(initContainers=own))
    yield one("init-containers-2000-beside-sidecars", pod(initContainers=[*own[:1_000], *rename(own[1_000:])]))
    same = [{**part, "image": "registry.example.com/1:v"} for part in containers(3_000)]
    yield one("images-3000-all-the-same", pod(containers=same))
    images = [{**part, "image": f"registry.example.com/{'x' * 200}/{i}:v"} for i, part in enumerate(containers(3_000))]
    yield one("images-3000", pod(containers=images))
    huge = {"name": "X", "value": "x" * 1_000_000}
    yield one("environment-1-MB", pod(containers=[{"name": "c", "image": "pause", "env": [huge]}]))
    ports = [{"containerPort": 1 + i, "hostPort": 1 + i} for i in range(10_000)]
    yield one("host-ports-10000", pod(containers=[{"name": "c", "image": "pause", "ports": ports}]))
    addresses = [
        {"containerPort": 80, "hostPort": 80, "hostIP": f"10.{i // 65536}.{i // 256 % 256}.{i % 256}"}
        for i in range(10_000)
    ]
    yield one("host-addresses-10000", pod(containers=[{"name": "c", "image": "pause", "ports": addresses}]))


def containers(count: int) -> Iterator[Json]:
    for number in range(count):
        yield {"name": f"c{number}", "image": "pause", "resources": {"requests": {"cpu": "1m"}}}


def rename(parts: list[Json]) -> list[Json]:
    return [{**part, "name": f"init-{part['name']}"} for part in parts]


# --- which nodes pods want ----------------------------------------------------------------------------------------


def node_cases() -> Iterator[HostileCase]:
    for count in (2_000, 20_000):
        yield one(f"selector-keys-{count}", pod(nodeSelector=dict.fromkeys(keys(count), "v")))
    yield one("selector-keys-of-nodes", pod(nodeSelector={f"common-{i}": "v" for i in range(40)}))
    for count in (1_000, 10_000):
        absent = [[exists(key)] for key in keys(count)]
        yield one(f"terms-{count}", pod(affinity=node_terms(*absent)))
        yield one(f"preferred-terms-{count}", pod(affinity=preferred_nodes(*absent)))
        yield one(f"expressions-{count}", pod(affinity=node_terms([exists(key) for key in keys(count)])))
        missing = [is_in(key, [], "DoesNotExist") for key in keys(count)]
        yield one(f"absent-keys-{count}", pod(affinity=node_terms([without_values(one_of) for one_of in missing])))
    hosts = [[is_in(HOSTNAME, [f"node-{i}"])] for i in range(8_000)]
    yield one("terms-by-host-8000", pod(affinity=node_terms(*hosts)))
    yield one("preferred-terms-by-host-8000", pod(affinity=preferred_nodes(*hosts)))
    for operator in ("In", "NotIn"):
        values = [f"node-{i}" for i in range(50_000)]
        yield one(f"values-50000-{operator}", pod(affinity=node_terms([is_in(HOSTNAME, values, operator)])))
        repeated = [is_in(HOSTNAME, [f"no-{i}" for i in range(n, n + 50)], operator) for n in range(600)]
        yield one(f"expressions-600-of-50-{operator}", pod(affinity=node_terms(repeated)))
    numbers = [[{"key": f"number-{i % 40}", "operator": "Gt", "values": [str(i)]}] for i in range(8_000)]
    yield one("greater-than-8000", pod(affinity=node_terms(*numbers)))
    fields = [{"matchFields": [is_in("metadata.name", [f"node-{i}"])]} for i in range(8_000)]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": fields}}
    yield one("fields-8000", pod(affinity={"nodeAffinity": required}))
    mixed = [
        [exists(f"common-{i % 40}"), is_in(HOSTNAME, [f"no-{i}"], "NotIn"), exists(HOSTNAME)] for i in range(4_000)
    ]
    yield one("terms-4000-that-all-match", pod(affinity=node_terms(*mixed)))
    yield one("preferred-terms-4000-that-all-match", pod(affinity=preferred_nodes(*mixed)))
    tolerated = [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in keys(10_000)]
    yield one("tolerations-10000", pod(tolerations=tolerated))
    prefer = [{**toleration, "effect": "PreferNoSchedule"} for toleration in tolerated]
    yield one("soft-tolerations-10000", pod(tolerations=prefer))
    yield HostileCase("pods-60-with-2000-keys-each", lambda: [
        pod(f"p{p}", nodeSelector=dict.fromkeys(keys(2_000, f"p{p}"), "v")) for p in range(60)
    ])  # fmt: skip


def without_values(expression: Json) -> Json:
    return {name: value for name, value in expression.items() if name != "values"}


# --- whom pods want to be near ------------------------------------------------------------------------------------


def neighbour_cases() -> Iterator[HostileCase]:
    for when, count in product(("DoNotSchedule", "ScheduleAnyway"), (500, 4_000)):
        yield one(f"spread-{count}-{when}", pod(topologySpreadConstraints=[spread(key, when) for key in keys(count)]))
    common = [spread(f"common-{i}", when) for i in range(40) for when in ("DoNotSchedule", "ScheduleAnyway")]
    yield one("spread-on-keys-of-nodes", pod(topologySpreadConstraints=common))
    wide = {"matchExpressions": [is_in(key, words(10), "NotIn") for key in keys(300)]}
    constraints = [spread(f"common-{i}", selector=wide) for i in range(30)]
    yield one("spread-with-wide-selectors", pod(topologySpreadConstraints=constraints))
    labels = {"app": "hostile", **{f"l{i}": "v" for i in range(500)}}
    by_keys = [spread(f"common-{i}", matchLabelKeys=[f"l{n}" for n in range(500)]) for i in range(20)]
    yield one("spread-by-500-label-keys", pod(labels=labels, topologySpreadConstraints=by_keys))
    for kind in ("podAffinity", "podAntiAffinity"):
        for count in (300, 4_000):
            terms = [near(key) for key in keys(count)]
            yield one(f"{kind}-{count}-keys", pod(affinity=affinity(kind, *terms)))
            soft = {"preferredDuringSchedulingIgnoredDuringExecution": weighted(*terms)}
            yield one(f"{kind}-{count}-preferred-keys", pod(affinity={kind: soft}))
        same = [near(HOSTNAME, {"matchLabels": {"app": word}}) for word in words(4_000)]
        yield one(f"{kind}-4000-by-host", pod(affinity=affinity(kind, *same)))
        soft = {"preferredDuringSchedulingIgnoredDuringExecution": weighted(*same)}
        yield one(f"{kind}-4000-preferred-by-host", pod(affinity={kind: soft}))
        yield one(f"{kind}-20000-namespaces", pod(affinity=affinity(kind, near(ZONE, namespaces=words(20_000, "ns")))))
        wide_namespaces = {"matchExpressions": [is_in(key, words(20), "NotIn") for key in keys(800)]}
        term = near(ZONE, namespaceSelector=wide_namespaces)
        yield one(f"{kind}-wide-namespace-selector", pod(affinity=affinity(kind, term)))
        values = {"matchExpressions": [is_in("app", words(50_000))]}
        yield one(f"{kind}-50000-values", pod(affinity=affinity(kind, near(ZONE, values))))
        distinct = [near(HOSTNAME, {"matchExpressions": [exists(key)]}) for key in keys(3_000)]
        yield one(f"{kind}-3000-selectors", pod(affinity=affinity(kind, *distinct)))
    short = [{"topologyKey": f"k{i}", "labelSelector": {}, "namespaceSelector": {}} for i in range(15_000)]
    yield one("podAntiAffinity-15000-short-terms", pod(affinity=affinity("podAntiAffinity", *short)))
    negative = [
        near(f"common-{i % 40}", {"matchExpressions": [is_in("x", [f"v{i}"], "NotIn")]}, namespaceSelector={})
        for i in range(6_000)
    ]
    yield one("podAntiAffinity-6000-against-everybody", pod(affinity=affinity("podAntiAffinity", *negative)))
    soft = {"preferredDuringSchedulingIgnoredDuringExecution": weighted(*negative)}
    yield one("podAffinity-6000-for-everybody", pod(affinity={"podAffinity": soft}))
    elsewhere = [term | {"topologyKey": HOSTNAME} for term in negative]
    everybody = running("r", 2, affinity=affinity("podAntiAffinity", *elsewhere))
    yield one("neighbour-with-6000-terms-against-everybody", everybody, pod())
    values = {"matchExpressions": [is_in("app", words(20_000))]}
    both = near(ZONE, values, namespaces=words(20_000, "ns"))
    yield one("neighbour-with-20000-namespaces-and-values", running("r", 3, affinity=affinity("podAntiAffinity", both)))
    yield one("labels-20000", pod(labels=dict.fromkeys((f"l{i}" for i in range(20_000)), "v")))


# --- what pods are made of ----------------------------------------------------------------------------------------


def shape_cases() -> Iterator[HostileCase]:
    missing = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"none-{i}"}} for i in range(3_000)]
    yield one("volumes-3000-missing-claims", pod(volumes=missing))
    maps = [{"name": f"v{i}", "configMap": {"name": f"m{i}"}} for i in range(8_000)]
    yield one("volumes-8000-config-maps", pod(volumes=maps))
    inline = [{"name": f"v{i}", "csi": {"driver": f"d{i}.example.com"}} for i in range(5_000)]
    yield one("volumes-5000-inline-drivers", pod(volumes=inline))
    disks = [{"name": f"v{i}", "gcePersistentDisk": {"pdName": f"disk-{i}"}} for i in range(5_000)]
    yield one("volumes-5000-disks", pod(volumes=disks))
    shared = [{"name": f"v{i}", "gcePersistentDisk": {"pdName": f"disk-{i}", "readOnly": True}} for i in range(5_000)]
    yield one("volumes-5000-disks-read-by-two", running("r", 4, volumes=shared), pod(volumes=shared))
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    ephemeral = [{"name": f"v{i}", "ephemeral": {"volumeClaimTemplate": template}} for i in range(2_000)]
    yield one("volumes-2000-ephemeral", pod(volumes=ephemeral))
    yield one("gates-5000", pod(schedulingGates=[{"name": f"g{i}.example.com/x"} for i in range(5_000)]))
    yield one("name-of-253", pod("n" * 253))
    annotated = pod()
    annotated["metadata"]["annotations"] = {f"a{i}": "x" * 100 for i in range(2_000)}
    yield one("annotations-2000", annotated)
    finalized = pod()
    finalized["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": f"o{i}", "uid": f"00000000-0000-4000-8000-{i:012}"}
        for i in range(5_000)
    ]
    yield one("owners-5000", finalized)
    yield one("claims-500-missing", pod(**claims_of(*(f"none-{i}" for i in range(500)))))
    crowd = [pod(f"p{i}", labels={"app": "hostile", "me": f"p{i}"}) for i in range(300)]
    yield HostileCase("pods-300-all-different", lambda: crowd)
    several = [
        pod(f"p{i}", resources={"requests": {"cpu": f"{1 + i}m"}}, topologySpreadConstraints=[
            spread(key) for key in keys(600, f"p{i}")
        ])
        for i in range(20)
    ]  # fmt: skip
    yield HostileCase("pods-20-with-600-spreads-each", lambda: several)
    greedy = [pod(f"p{i}", resources={"requests": {"cpu": "1000", "memory": f"{i + 1}Ti"}}) for i in range(200)]
    yield HostileCase("pods-200-too-large", lambda: greedy)


# --- pods that run already ----------------------------------------------------------------------------------------


def running_cases() -> Iterator[HostileCase]:
    """Whoever may create pods may also say on which node they are."""
    amounts = dict.fromkeys((f"r{i}.io/a" for i in range(8_000)), "1")
    yield one("running-8000-resources", running("r", 1, resources={"requests": amounts, "limits": amounts}))
    by_key = affinity("podAntiAffinity", *(near(key) for key in keys(3_000)))
    yield one("running-anti-affinity-3000-keys", running("r", 2, affinity=by_key))
    everybody = [near(HOSTNAME, {"matchExpressions": [exists(key)]}) for key in keys(3_000)]
    yield one("running-anti-affinity-3000-selectors", running("r", 3, affinity=affinity("podAntiAffinity", *everybody)))
    soft = {"preferredDuringSchedulingIgnoredDuringExecution": weighted(*everybody)}
    yield one("running-preferred-3000-selectors", running("r", 4, affinity={"podAffinity": soft}))
    ports = [{"containerPort": 1 + i, "hostPort": 1 + i} for i in range(10_000)]
    yield one("running-10000-ports", running("r", 5, containers=[{"name": "c", "image": "pause", "ports": ports}]))
    addresses = {side: [
        {"containerPort": 80, "hostPort": 80, "hostIP": f"{side}.0.{i // 256}.{i % 256}"} for i in range(8_000)
    ] for side in (10, 11)}  # fmt: skip
    used, wanted = ([{"name": "c", "image": "pause", "ports": addresses[side]}] for side in (10, 11))
    yield one("running-8000-addresses-and-8000-others", running("r", 5, containers=used), pod(containers=wanted))
    yield HostileCase("running-70-with-2000-resources", lambda: [
        running(f"r{i}", i, resources={"requests": (some := dict.fromkeys(
            (f"r{n}.io/a" for n in range(2_000)), "1"
        )), "limits": some})
        for i in range(70)
    ])  # fmt: skip
    vast = {"requests": {"memory": "7Ei", "cpu": "9" * 30}}
    yield one("running-3-of-7Ei", *(running(f"r{i}", 9, resources=vast) for i in range(3)))
    yield one("running-20000-labels", running("r", 6, labels={f"l{i}": "v" for i in range(20_000)}))
    yield HostileCase("running-300-different-labels", lambda: [
        running(f"r{i}", i, labels={f"l{i}-{n}": "v" for n in range(200)}) for i in range(300)
    ])  # fmt: skip
    yield HostileCase("running-300-different-terms", lambda: [
        running(f"r{i}", i, affinity=affinity("podAntiAffinity", *(
            near(HOSTNAME, {"matchLabels": {f"x{i}-{n}": "v"}}) for n in range(30)
        )))
        for i in range(300)
    ])  # fmt: skip
    yield one("running-on-no-node", running("r", 999_999))
    claims = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{i}"}} for i in range(3_000)]
    yield one("running-3000-volumes", running("r", 7, volumes=claims))
    statuses = running("r", 8)
    statuses["status"] = {"conditions": [{"type": f"example.com/c{i}", "status": "True"} for i in range(5_000)]}
    yield one("running-5000-conditions", statuses)


# --- objects beside pods ------------------------------------------------------------------------------------------


def beside_cases() -> Iterator[HostileCase]:
    selector = {"matchExpressions": [is_in(key, words(10), "NotIn") for key in keys(3_000)]}
    budget = head("PodDisruptionBudget", "hostile", "policy/v1")
    yield one("budget-3000-expressions", {**budget, "spec": {"minAvailable": 1, "selector": selector}})
    yield HostileCase("budgets-200-of-everybody", lambda: [
        {**head("PodDisruptionBudget", f"b{i}", "policy/v1"), "spec": {"minAvailable": 1, "selector": {}}}
        for i in range(200)
    ])  # fmt: skip
    service = head("Service", "hostile")
    chosen = {f"l{i}": "v" for i in range(20_000)}
    yield one("service-20000-keys", {**service, "spec": {"selector": chosen, "ports": [{"port": 80}]}})
    yield HostileCase("services-300", lambda: [
        {**head("Service", f"s{i}"), "spec": {"selector": {"app": "hostile"}, "clusterIP": "None"}}
        for i in range(300)
    ] + [pod()])  # fmt: skip
    template = {"metadata": {"labels": {"app": "hostile"}}, "spec": pod()["spec"]}
    wide = {"matchLabels": {"app": "hostile"}, "matchExpressions": selector["matchExpressions"]}
    replicas = {
        **head("ReplicaSet", "hostile", "apps/v1"),
        "spec": {"replicas": 0, "selector": wide, "template": template},
    }
    yield one("replica-set-3000-expressions", replicas)
    yield one("volume-claim-3000-expressions", {
        **head("PersistentVolumeClaim", "hostile"),
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "selector": selector},
    }, pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "hostile"}}]))  # fmt: skip
    for kind, amount in {"digits": "9" * 400, "zeros": "0" * 5_000 + "1", "exponent": "1e18", "tiny": "1n"}.items():
        yield one(f"volume-claim-{kind}", {
            **head("PersistentVolumeClaim", "hostile"),
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": amount}}},
        }, pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "hostile"}}]))  # fmt: skip
    terms = [{"matchExpressions": [is_in(HOSTNAME, [f"node-{i}"])]} for i in range(5_000)]
    volume = {
        **head("PersistentVolume", "hostile", namespace=None),
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "late",
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    }
    late = {
        **head("StorageClass", "late", "storage.k8s.io/v1", namespace=None),
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    claim = {
        **head("PersistentVolumeClaim", "hostile"),
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "late",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    user = pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "hostile"}}])
    yield one("volume-5000-terms", late, volume, claim, user)
    topologies = [
        {"matchLabelExpressions": [{"key": f"k{i}-{n}.example.com/x", "values": words(5)} for n in range(30)]}
        for i in range(400)
    ]
    restricted = {
        **late,
        "metadata": {"name": "restricted"},
        "provisioner": "csi.example.com",
        "allowedTopologies": topologies,
    }
    elsewhere = {**claim, "spec": {**claim["spec"], "storageClassName": "restricted"}}
    yield one("storage-class-400-topologies", restricted, elsewhere, user)
    limits = {"limits": [{"type": "Container", "default": {"cpu": "1m"}, "defaultRequest": {"cpu": "1m"}}]}
    yield one("limit-range", {**head("LimitRange", "hostile"), "spec": limits}, pod())


# --- nodes --------------------------------------------------------------------------------------------------------


def machine_cases() -> Iterator[HostileCase]:
    """A node that was taken over says of itself what it likes."""
    yield one("node-15000-labels", machine(labels={f"l{i}": "v" for i in range(15_000)}))
    labels = {f"l{i}": "v" for i in range(8_000)}
    yield one("node-8000-labels-and-their-selector", machine(labels=labels), pod(nodeSelector=labels))
    liked = [[exists(key)] for key in labels]
    yield one("node-8000-labels-preferred", machine(labels=labels), pod(affinity=preferred_nodes(*liked)))
    taints = [{"key": key, "effect": "NoSchedule"} for key in keys(10_000)]
    yield one("node-10000-taints", machine(taints=taints))
    tolerated = [{"key": key, "operator": "Exists"} for key in keys(10_000)]
    yield one("node-10000-taints-tolerated", machine(taints=taints), pod(tolerations=tolerated))
    amounts = dict.fromkeys((f"r{i}.io/a" for i in range(10_000)), "1")
    yield one("node-10000-resources", machine(amounts=amounts))
    wanted = {"requests": amounts, "limits": amounts}
    yield one("node-10000-resources-wanted", machine(amounts=amounts), pod(resources=wanted))
    for kind, amount in {"digits": "9" * 400, "zeros": "0" * 5_000 + "1", "exa": "8Ei", "negative-zero": "-0"}.items():
        yield one(f"node-memory-{kind}", machine(amounts={"memory": amount}))
        yield one(f"node-cpu-{kind}", machine(amounts={"cpu": amount}))
    images = [{"names": [f"registry.example.com/{i}:v"], "sizeBytes": 2**60} for i in range(10_000)]
    yield one("node-10000-images", machine(images=images))
    pulled = [{**part, "image": f"registry.example.com/{i}:v"} for i, part in enumerate(containers(3_000))]
    yield one("node-10000-images-used", machine(images=images), pod(containers=pulled))
    attached = [{"name": f"kubernetes.io/csi/d^{i}", "devicePath": ""} for i in range(10_000)]
    yield one("node-10000-volumes", machine(volumesAttached=attached, volumesInUse=[one["name"] for one in attached]))
    conditions = [{"type": f"c{i}", "status": "True"} for i in range(5_000)]
    yield one("node-5000-conditions", machine(conditions=conditions))


def machine(
    *, labels: Json | None = None, taints: list[Json] | None = None, amounts: Json | None = None, **status: Any
) -> Json:
    made = head("Node", "hostile-node", namespace=None, labels={HOSTNAME: "hostile-node", **(labels or {})})
    allocatable = {"cpu": "4", "memory": "16Gi", "pods": "110", **(amounts or {})}
    ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}]
    facts = {"capacity": allocatable, "allocatable": allocatable, "conditions": ready, **status}
    return {**made, "spec": {"taints": taints or []}, "status": facts}


# --- queues -------------------------------------------------------------------------------------------------------

_KUEUE = "kueue.x-k8s.io/v1beta2"


def queueing_cases() -> Iterator[HostileCase]:
    for kind, amount in {
        "digits": "9" * 5_000, "zeros": "0" * 5_000 + "1", "decimals": "0." + "0" * 5_000 + "1", "exa": "8Ei",
        "exponent": "1e18", "tiny": "1n",
    }.items():  # fmt: skip
        yield queued(f"workload-{kind}", workload("hostile", cpu=amount))
        yield queued(f"queue-quota-{kind}", cluster_queue(nominalQuota=amount))
    for weight in ("1e999", "0", "9" * 100):
        yield queued(f"queue-weight-{weight[:6]}", cluster_queue(fair={"weight": weight}))
    yield queued("workload-2-billion-pods", workload("hostile", count=2**31 - 1))
    yield queued("workload-2-billion-pods-of-8Ei", workload("hostile", count=2**31 - 1, cpu="8Ei"))
    amounts = dict.fromkeys((f"r{i}.io/a" for i in range(5_000)), "1")
    yield queued("workload-5000-resources", workload("hostile", requests=amounts))
    yield queued(
        "workload-high-priority",
        {**workload("hostile")} | {"spec": workload("hostile")["spec"] | {"priority": 2**31 - 1}},
    )
    cohorts = [
        {**head("Cohort", f"cohort-{i}", _KUEUE, namespace=None), "spec": {"parentName": f"cohort-{(i + 1) % 50}"}}
        for i in range(50)
    ]
    yield queued("cohorts-in-a-circle", *cohorts)
    chain = [
        {**head("Cohort", f"chain-{i}", _KUEUE, namespace=None), "spec": {"parentName": f"chain-{i + 1}"}}
        for i in range(300)
    ]
    yield queued("cohorts-in-a-chain", *chain)
    # A tree that is deeper than any recursion: the canary's queue is beside it, the hostile one below.
    deep = [
        {**head("Cohort", f"deep-{i}", _KUEUE, namespace=None), "spec": {"parentName": f"deep-{i + 1}"}}
        for i in range(1_200)
    ]
    below = cluster_queue("below")
    yield queued("cohorts-1200-deep", *deep, {**below, "spec": {**below["spec"], "cohortName": "deep-0"}})
    for limit in ("borrowingLimit",):
        yield queued(f"queue-{limit}-digits", cluster_queue(**{limit: "9" * 5_000}))
        yield queued(f"queue-{limit}-exa", cluster_queue(nominalQuota="8Ei", **{limit: "8Ei"}))
    yield queued("queue-weight-tiny", cluster_queue(fair={"weight": "2n"}))
    for timeout in ("9" * 400 + "h", "9" * 5_000 + "ns", "-1h"):
        impatient = workload("hostile")
        impatient["metadata"]["annotations"] = {"queueing.pilotage.dev/pods-ready-timeout": timeout}
        yield queued(f"workload-timeout-{len(timeout)}-digits", impatient)
    endless = workload("hostile")
    yield queued(
        "workload-68-years", {**endless, "spec": {**endless["spec"], "maximumExecutionTimeSeconds": 2**31 - 1}}
    )
    yield queued("job-2-billion-pods", queued_job("hostile", parallelism=2**31 - 1, completions=2**31 - 1))
    yield queued("queues-100", *(cluster_queue(f"hostile-{i}", nominalQuota="1") for i in range(100)))
    yield queued("workloads-200", *(workload(f"w{i}") for i in range(200)))


def queued(name: str, *objects: Json) -> HostileCase:
    return HostileCase(name, lambda: list(objects), needs_queueing=True)


def queued_job(name: str, **spec: Any) -> Json:
    template = {"spec": {"containers": [{"name": "c", "image": "pause"}], "restartPolicy": "Never"}}
    made = head("Job", name, "batch/v1", labels={"kueue.x-k8s.io/queue-name": "tenant"})
    return {**made, "spec": {"suspend": True, "template": template, **spec}}


def cluster_queue(name: str = "hostile", *, fair: Json | None = None, **quota: Any) -> Json:
    resources = [{"name": "cpu", "nominalQuota": "1", **quota}]
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "canary", "resources": resources}]}
    spec: Json = {"namespaceSelector": {}, "cohortName": "hostile", "resourceGroups": [group]}
    made = head("ClusterQueue", name, _KUEUE, namespace=None)
    return {**made, "spec": {**spec, **({"fairSharing": fair} if fair else {})}}


def workload(name: str, *, count: int = 1, cpu: str = "1", requests: Json | None = None, queue: str = "tenant") -> Json:
    container = {"name": "c", "image": "pause", "resources": {"requests": requests or {"cpu": cpu}}}
    pod_set = {
        "name": "main",
        "count": count,
        "template": {"spec": {"containers": [container], "restartPolicy": "Never"}},
    }
    return {**head("Workload", name, _KUEUE), "spec": {"queueName": queue, "podSets": [pod_set]}}


# --- all of them --------------------------------------------------------------------------------------------------


def one(name: str, *objects: Json) -> HostileCase:
    return HostileCase(name, lambda: list(objects))


def all_cases() -> list[HostileCase]:
    families: Iterable[Iterable[HostileCase]] = (
        resource_cases(),
        node_cases(),
        neighbour_cases(),
        shape_cases(),
        running_cases(),
        beside_cases(),
        machine_cases(),
        queueing_cases(),
    )
    return [case for family in families for case in family]
