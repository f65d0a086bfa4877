"""Any JSON may arrive: defaults, admission and validation answer, they never crash.

Valid objects of all kinds are mutated at random places; what comes out is judged, defaulted, admitted, and judged
again as an update of the valid one.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.sandbox.errors import ApiError, FieldError, invalid
from pilotage.sandbox.kinds.builtin_kinds import builtin_registry
from pilotage.sandbox.kinds.shapes import check_shape
from pilotage.sandbox.rules.admission import admit_create, admit_update
from pilotage.sandbox.rules.defaults import apply_defaults, ignored_fields
from pilotage.sandbox.rules.validation import validate_create, validate_status, validate_update

VALID: list[dict[str, Any]] = list(
    yaml.safe_load_all("""
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: d, uid: u, labels: {a: b}, annotations: {c: d}, finalizers: [a/b],
  ownerReferences: [{apiVersion: v1, kind: X, name: x, uid: y, controller: true}]}
spec:
  containers:
  - {name: c, image: i, ports: [{containerPort: 1, protocol: TCP, name: w}], env: [{name: A, value: b}],
     resources: {requests: {cpu: 1, memory: 1Gi, x.io/y: "1"}, limits: {cpu: "2", x.io/y: "1"}, claims: [{name: r}]},
     volumeMounts: [{name: v, mountPath: /x}], readinessProbe: {httpGet: {port: 1}}}
  initContainers: [{name: i, image: i, restartPolicy: Always}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: c}}, {name: w, projected: {sources: []}}]
  nodeSelector: {a: b}
  tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 3}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}],
          matchFields: [{key: metadata.name, operator: In, values: [n]}]}]
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 1, preference: {matchExpressions: [{key: a, operator: Gt, values: ["1"]}]}}
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: z, labelSelector: {matchLabels: {a: b}}}]
      preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: z}}]
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, minDomains: 2,
    labelSelector: {matchExpressions: [{key: a, operator: Exists}]}, matchLabelKeys: [q]}]
  schedulingGates: [{name: g}]
  schedulingGroup: {podGroupName: g}
  resourceClaims: [{name: r, resourceClaimName: s}]
  resources: {limits: {cpu: "4"}}
  overhead: {cpu: 1m}
  priorityClassName: high
  activeDeadlineSeconds: 5
---
apiVersion: v1
kind: Node
metadata: {name: n, labels: {a: b}}
spec: {taints: [{key: a, effect: NoSchedule, value: b}], providerID: x, podCIDRs: [a]}
status: {capacity: {cpu: "4", memory: 8Gi}, allocatable: {cpu: "4"}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: x}
spec:
  replicas: 3
  selector: {matchLabels: {a: b}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 1}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: x}
spec:
  selector: {matchLabels: {a: b}}
  serviceName: s
  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}
  volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: [ReadWriteOnce]}}]
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: x}
spec:
  selector: {matchLabels: {a: b}}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: x}
spec: {selector: {a: b}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: x, uid: u}
spec:
  suspend: true
  parallelism: 2
  completions: 2
  completionMode: Indexed
  scheduling: {schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: {topology: [{key: zone}]},
    disruptionMode: {all: {}}, resourceClaims: [{name: r, resourceClaimTemplateName: t}]}
  podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: X}]}]}
  selector: {matchLabels: {batch.kubernetes.io/controller-uid: u}}
  template:
    metadata: {labels: {batch.kubernetes.io/controller-uid: u}}
    spec: {restartPolicy: Never, containers: [{name: c, image: i}], affinity: {nodeAffinity: {}}, nodeSelector: {a: b}}
status: {}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: x}
spec:
  schedule: "*/5 * * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
---
apiVersion: v1
kind: Service
metadata: {name: x}
spec: {type: NodePort, selector: {a: b}, sessionAffinity: ClientIP,
  ports: [{name: a, port: 80, targetPort: web, protocol: TCP, nodePort: 30000}, {name: b, port: 81, protocol: UDP}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: x}
data: {a: b}
binaryData: {c: eA==}
---
apiVersion: v1
kind: Secret
metadata: {name: x}
type: Opaque
data: {a: eA==}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: x}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, selector: {matchLabels: {a: b}}}
status: {capacity: {storage: 1Gi}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: x}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /x}, nodeAffinity: {required:
  {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: x}
provisioner: p
parameters: {a: b}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: x}
spec: {drivers: [{name: d, nodeID: n, topologyKeys: [z], allocatable: {count: 3}}]}
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: x}
spec: {attachRequired: true}
---
apiVersion: storage.k8s.io/v1
kind: CSIStorageCapacity
metadata: {name: x}
storageClassName: s
capacity: 1Gi
nodeTopology: {matchLabels: {a: b}}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: x}
spec: {attacher: a, nodeName: n, source: {persistentVolumeName: p}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: x}
value: 5
globalDefault: true
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: x, finalizers: [a/b]}
spec: {schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: {topology: [{key: zone}]},
  disruptionMode: {all: {}}, resourceClaims: [{name: r, resourceClaimTemplateName: t}, {name: s, resourceClaimName: c}],
  workloadRef: {workloadName: w, templateName: t}, priorityClassName: high, priority: 7,
  preemptionPolicy: PreemptLowerPriority}
status: {conditions: [{type: X, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}],
  resourceClaimStatuses: [{name: r, resourceClaimName: q}]}
---
apiVersion: scheduling.k8s.io/v1beta1
kind: Workload
metadata: {name: x}
spec: {controllerRef: {apiGroup: batch, kind: Job, name: j}, podGroupTemplates: [
  {name: a, schedulingPolicy: {gang: {minCount: 2}}, priorityClassName: high}, {name: b, schedulingPolicy: {basic: {}},
  priorityClassName: high, resourceClaims: [{name: r, resourceClaimTemplateName: t}]}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: x}
spec: {minAvailable: 50%, selector: {matchLabels: {a: b}}}
status: {disruptionsAllowed: 1}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: x}
spec: {holderIdentity: h, leaseDurationSeconds: 15, leaseTransitions: 0}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: x}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c, selectors: [{cel: {expression: "true"}}]}},
  {name: s, firstAvailable: [{name: t, deviceClassName: c}]}],
  constraints: [{requests: [r, s/t], matchAttribute: a/b}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: x}
spec: {metadata: {labels: {a: b}}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: x}
spec: {selectors: [{cel: {expression: "true"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: x}
spec: {driver: d, pool: {name: p, generation: 1, resourceSliceCount: 1}, nodeName: n, devices: [{name: e}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: x}
spec: {group: g, names: {kind: K, plural: k}, scope: Namespaced}
---
apiVersion: v1
kind: Namespace
metadata: {name: x}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: x}
spec:
  namespaceSelector: {}
  cohortName: team
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 5,
    lendingLimit: "2", borrowingLimit: "1"}]}]}]
  preemption: {reclaimWithinCohort: Any, borrowWithinCohort: {policy: LowerPriority}}
  fairSharing: {weight: "1"}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: x}
spec: {clusterQueue: q}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: x}
spec: {nodeLabels: {a: b}, nodeTaints: [{key: a, effect: NoSchedule}], tolerations: [{operator: Exists}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: x}
value: 1
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: x}
spec: {controllerName: c}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: x}
spec: {queueName: q, podSets: [{name: main, count: 2, minCount: 1, template: {spec: {containers: []}}}]}
status: {conditions: [{type: QuotaReserved, status: "True"}]}
""")
)

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["", "-1", "1Gi", "50%", "Always", "Exists", "metadata.name", "None", "\ud800"]),
)
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)

ALIKE: dict[type, st.SearchStrategy[Any]] = {
    str: st.text(max_size=8) | st.sampled_from(["", "-1", "50%", "Exists", "In", "metadata.name", "\ud800"]),
    int: st.integers(-(2**31), 2**31 - 1) | st.sampled_from([0, 1, 70000]),
    list: st.builds(list),
    dict: st.builds(dict),
}
REGISTRY = builtin_registry()


def places(value: Any, found: list[tuple[Any, Any]] | None = None) -> list[tuple[Any, Any]]:
    """Every (container, key) in a JSON value."""
    found = [] if found is None else found
    items = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    for key, child in items:
        found.append((value, key))
        places(child, found)
    return found


@st.composite
def mutants(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    original = draw(st.sampled_from(VALID))
    mutant = copy.deepcopy(original)
    for _ in range(draw(st.integers(1, 3))):
        candidates = places(mutant)
        if not candidates:
            break
        parent, key = draw(st.sampled_from(candidates))
        if draw(st.booleans()) and isinstance(parent, dict):
            del parent[key]
        else:
            parent[key] = draw(ALIKE.get(type(parent[key]), JSON_VALUES) if draw(st.booleans()) else JSON_VALUES)
    return original, mutant


class EmptyCluster:
    def get(self, resource: str, namespace: str, name: str) -> dict[str, Any] | None:
        return {"metadata": {"name": name}, "value": 7} if name == "high" else None

    def list(self, resource: str, namespace: str | None = None) -> list[dict[str, Any]]:
        return []


def check_rendering(kind: str, errors: list[FieldError]) -> None:
    if errors:
        invalid(kind, "", "x", errors).status()


def has_shape(original: dict[str, Any], obj: dict[str, Any]) -> bool:
    """What the server asks first: a wrong type is answered there, with a Status, and nothing behind it sees it."""
    resource_type = REGISTRY.for_kind(original["apiVersion"], original["kind"])
    assert resource_type is not None
    try:
        check_shape(resource_type, obj)
    except ApiError as error:
        assert error.status()["code"] in (400, 422)
        return False
    except UnicodeEncodeError:
        return False  # a name of a field that JSON text cannot hold
    return True


@pytest.mark.parametrize("obj", VALID, ids=[obj["kind"] for obj in VALID])
def test_the_originals_are_valid_before_and_after_defaulting_and_may_stay_as_they_are(obj: dict[str, Any]) -> None:
    assert validate_create(obj["kind"], obj) == []
    defaulted = copy.deepcopy(obj)
    apply_defaults(obj["kind"], defaulted)
    admit_create(obj["kind"], defaulted, EmptyCluster())
    assert validate_create(obj["kind"], defaulted) == []
    again = copy.deepcopy(defaulted)
    apply_defaults(obj["kind"], again)
    assert again == defaulted
    assert validate_update(obj["kind"], obj, copy.deepcopy(obj)) == []


@pytest.mark.parametrize("original", VALID, ids=[obj["kind"] for obj in VALID])
def test_a_stored_object_with_any_wrong_type_may_be_mended(original: dict[str, Any]) -> None:
    """No one checks the types of what is stored: an older version may have written it."""
    changed = {**original, "spec": {**(original.get("spec") or {}), "unknown": 1}}
    for number in range(len(places(original))):
        for wrong in ([], {}, "x", 3, None, [{"name": []}], {"name": {}}):
            stored = copy.deepcopy(original)
            parent, key = places(stored)[number]
            parent[key] = wrong
            check_rendering(original["kind"], validate_update(original["kind"], stored, changed))


@settings(max_examples=400, deadline=None)
@given(mutants())
def test_mutated_objects_never_crash(pair: tuple[dict[str, Any], dict[str, Any]]) -> None:
    original, mutant = pair
    kind = original["kind"]
    is_sound = has_shape(original, mutant)
    if is_sound:
        check_rendering(kind, validate_create(kind, mutant))
        check_rendering(kind, validate_update(kind, original, mutant))
    check_rendering(kind, validate_update(kind, mutant, original))
    if is_sound:
        check_rendering(kind, validate_status(kind, original, mutant))
    check_rendering(kind, validate_status(kind, mutant, original))
    ignored_fields(kind, mutant)
    apply_defaults(kind, mutant)
    admit_update(kind, original, copy.deepcopy(mutant))
    admit_update(kind, mutant, copy.deepcopy(original))
    try:
        admit_create(kind, mutant, EmptyCluster())
    except ApiError as error:
        assert error.code == 403
    if is_sound:
        check_rendering(kind, validate_create(kind, mutant))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(VALID), st.dictionaries(st.text(max_size=5), JSON_VALUES))
def test_garbage_never_crashes(original: dict[str, Any], garbage: dict[str, Any]) -> None:
    kind = original["kind"]
    is_sound = has_shape(original, garbage)
    if is_sound:
        check_rendering(kind, validate_create(kind, garbage))
    check_rendering(kind, validate_update(kind, garbage, original))
    apply_defaults(kind, garbage)
    if is_sound:
        check_rendering(kind, validate_create(kind, garbage))
