"""One row of every printed kind, compared with what kubectl shows for it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from pilotage.sandbox.http.tables import render_table

NOW = 1_000_000_000.0  # 2001-09-09T01:46:40Z
CREATED = "2001-09-09T01:41:40Z"  # five minutes earlier

CASES: list[tuple[str, str, str]] = [
    (
        "{kind: Node, metadata: {labels: {node-role.kubernetes.io/worker: '', node-role.kubernetes.io/edge: ''}},"
        " spec: {unschedulable: true}, status: {conditions: [{type: Ready, status: 'True'}],"
        " nodeInfo: {kubeletVersion: v1.34.0, osImage: Linux}, addresses: [{type: InternalIP, address: 1.2.3.4}]}}",
        "NAME STATUS ROLES AGE VERSION INTERNAL-IP EXTERNAL-IP OS-IMAGE KERNEL-VERSION CONTAINER-RUNTIME",
        "x|Ready,SchedulingDisabled|edge,worker|5m|v1.34.0|1.2.3.4|<none>|Linux|<unknown>|<unknown>",
    ),
    ("{kind: Node}", "NAME STATUS ROLES AGE VERSION ...", "x|Unknown|<none>|5m||..."),
    ("{kind: Namespace, status: {phase: Active}}", "NAME STATUS AGE", "x|Active|5m"),
    (
        "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 3, selector: {matchLabels: {a: b}},"
        " template: {spec: {containers: [{name: c, image: i}, {name: d, image: j}]}}},"
        " status: {readyReplicas: 2, updatedReplicas: 3, availableReplicas: 1}}",
        "NAME READY UP-TO-DATE AVAILABLE AGE CONTAINERS IMAGES SELECTOR",
        "x|2/3|3|1|5m|c,d|i,j|a=b",
    ),
    (
        "{apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: 3, selector: {matchExpressions:"
        " [{key: a, operator: In, values: [c, b]}, {key: d, operator: Exists}, {key: e, operator: DoesNotExist}]}},"
        " status: {replicas: 2, readyReplicas: 1}}",
        "NAME DESIRED CURRENT READY AGE CONTAINERS IMAGES SELECTOR",
        "x|3|2|1|5m|||a in (b,c),d,!e",
    ),
    (
        "{kind: ReplicationController, spec: {replicas: 1, selector: {b: '2', a: '1'}}}",
        "NAME DESIRED CURRENT READY AGE CONTAINERS IMAGES SELECTOR",
        "x|1|0|0|5m|||a=1,b=2",
    ),
    (
        "{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2}, status: {readyReplicas: 1}}",
        "NAME READY AGE CONTAINERS IMAGES",
        "x|1/2|5m||",
    ),
    (
        "{apiVersion: apps/v1, kind: DaemonSet, spec: {template: {spec: {nodeSelector: {a: b}}}},"
        " status: {desiredNumberScheduled: 5, currentNumberScheduled: 4, numberReady: 3, updatedNumberScheduled: 2,"
        " numberAvailable: 1}}",
        "NAME DESIRED CURRENT READY UP-TO-DATE AVAILABLE NODE_SELECTOR AGE CONTAINERS IMAGES SELECTOR",
        "x|5|4|3|2|1|a=b|5m|||<none>",
    ),
    (
        "{apiVersion: batch/v1, kind: Job, spec: {completions: 3}, status: {succeeded: 1,"
        " startTime: '2001-09-09T01:45:40Z'}}",
        "NAME STATUS COMPLETIONS DURATION AGE CONTAINERS IMAGES SELECTOR",
        "x|Running|1/3|60s|5m|||<none>",
    ),
    (
        "{apiVersion: batch/v1, kind: Job, spec: {parallelism: 4}, status: {succeeded: 1,"
        " conditions: [{type: Complete, status: 'True'}],"
        " startTime: '2001-09-09T01:45:40Z', completionTime: '2001-09-09T01:45:50Z'}}",
        "NAME STATUS COMPLETIONS DURATION AGE ...",
        "x|Complete|1/1 of 4|10s|5m|...",
    ),
    (
        "{apiVersion: batch/v1, kind: Job, spec: {completions: 1}, status: {conditions: [{type: Suspended,"
        " status: 'True'}]}}",
        "NAME STATUS COMPLETIONS DURATION AGE ...",
        "x|Suspended|0/1||5m|...",
    ),
    (
        "{apiVersion: batch/v1, kind: CronJob, spec: {schedule: '@daily', suspend: false},"
        " status: {active: [{}], lastScheduleTime: '2001-09-09T01:45:40Z'}}",
        "NAME SCHEDULE TIMEZONE SUSPEND ACTIVE LAST_SCHEDULE AGE ...",
        "x|@daily|<none>|False|1|60s|5m|...",
    ),
    (
        "{kind: Service, spec: {type: NodePort, clusterIP: 10.96.0.5, selector: {a: b},"
        " ports: [{port: 80, nodePort: 30080, protocol: TCP}, {port: 53, protocol: UDP}]}}",
        "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE SELECTOR",
        "x|NodePort|10.96.0.5|<none>|80:30080/TCP,53/UDP|5m|a=b",
    ),
    (
        "{kind: Service, spec: {type: LoadBalancer}}",
        "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE SELECTOR",
        "x|LoadBalancer|<none>|<pending>|<none>|5m|<none>",
    ),
    (
        "{kind: Endpoints, subsets: [{ports: [{port: 80}], addresses: [{ip: a}, {ip: b}, {ip: c}, {ip: d}]}]}",
        "NAME ENDPOINTS AGE",
        "x|a:80,b:80,c:80 + 1 more...|5m",
    ),
    (
        "{kind: Event, involvedObject: {kind: Pod, name: p}, type: Warning, reason: FailedScheduling,"
        " message: '0/1 nodes', source: {component: pilotage}, lastTimestamp: '2001-09-09T01:45:40Z',"
        " firstTimestamp: '2001-09-09T01:41:40Z', count: 3}",
        "LAST_SEEN TYPE REASON OBJECT SUBOBJECT SOURCE MESSAGE FIRST_SEEN COUNT NAME",
        "60s|Warning|FailedScheduling|pod/p||pilotage|0/1 nodes|5m|3|x",
    ),
    (
        "{apiVersion: events.k8s.io/v1, kind: Event, regarding: {kind: Pod, name: p}, type: Normal, reason: Scheduled,"
        " note: done, reportingController: pilotage, reportingInstance: i, eventTime: '2001-09-09T01:45:40.5Z'}",
        "LAST_SEEN TYPE REASON OBJECT SUBOBJECT SOURCE MESSAGE FIRST_SEEN COUNT NAME",
        "59s|Normal|Scheduled|pod/p||pilotage, i|done|59s|1|x",
    ),
    ("{kind: ConfigMap, data: {a: b}, binaryData: {c: d}}", "NAME DATA AGE", "x|2|5m"),
    ("{kind: Secret, type: Opaque, data: {a: b}}", "NAME TYPE DATA AGE", "x|Opaque|1|5m"),
    (
        "{kind: PersistentVolume, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany, ReadWriteOnce],"
        " persistentVolumeReclaimPolicy: Delete, claimRef: {namespace: d, name: c}, storageClassName: s,"
        " volumeMode: Filesystem}, status: {phase: Bound}}",
        "NAME CAPACITY ACCESS_MODES RECLAIM_POLICY STATUS CLAIM STORAGECLASS VOLUMEATTRIBUTESCLASS REASON AGE "
        "VOLUMEMODE",
        "x|1Gi|RWO,RWX|Delete|Bound|d/c|s|<unset>||5m|Filesystem",
    ),
    (
        "{kind: PersistentVolumeClaim, spec: {volumeName: v, storageClassName: s, volumeMode: Block},"
        " status: {phase: Bound, capacity: {storage: 1Gi}, accessModes: [ReadWriteOncePod]}}",
        "NAME STATUS VOLUME CAPACITY ACCESS_MODES STORAGECLASS VOLUMEATTRIBUTESCLASS AGE VOLUMEMODE",
        "x|Bound|v|1Gi|RWOP|s|<unset>|5m|Block",
    ),
    (
        "{apiVersion: storage.k8s.io/v1, kind: StorageClass, provisioner: p, reclaimPolicy: Delete,"
        " volumeBindingMode: Immediate,"
        " metadata: {annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}}",
        "NAME PROVISIONER RECLAIMPOLICY VOLUMEBINDINGMODE ALLOWVOLUMEEXPANSION AGE",
        "x (default)|p|Delete|Immediate|False|5m",
    ),
    ("{apiVersion: storage.k8s.io/v1, kind: CSINode, spec: {drivers: [{}, {}]}}", "NAME DRIVERS AGE", "x|2|5m"),
    (
        "{apiVersion: storage.k8s.io/v1, kind: CSIDriver, spec: {attachRequired: true, volumeLifecycleModes: [A, B]}}",
        "NAME ATTACHREQUIRED PODINFOONMOUNT STORAGECAPACITY TOKENREQUESTS REQUIRESREPUBLISH MODES AGE",
        "x|True|False|False|<unset>|False|A,B|5m",
    ),
    (
        "{apiVersion: storage.k8s.io/v1, kind: CSIStorageCapacity, storageClassName: s, capacity: 5Gi}",
        "NAME STORAGECLASSNAME CAPACITY",
        "x|s|5Gi",
    ),
    (
        "{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, spec: {attacher: a, nodeName: n,"
        " source: {persistentVolumeName: v}}, status: {attached: true}}",
        "NAME ATTACHER PV NODE ATTACHED AGE",
        "x|a|v|n|True|5m",
    ),
    (
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, value: 7, preemptionPolicy: Never}",
        "NAME VALUE GLOBAL-DEFAULT AGE PREEMPTIONPOLICY",
        "x|7|False|5m|Never",
    ),
    (
        "{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: 50%},"
        " status: {disruptionsAllowed: 2}}",
        "NAME MIN_AVAILABLE MAX_UNAVAILABLE ALLOWED_DISRUPTIONS AGE",
        "x|50%|N/A|2|5m",
    ),
    (
        "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, spec: {schedulingPolicy: {basic: {}}}}",
        "NAME POLICY WORKLOAD STATUS AGE",
        "x|Basic|<none>|Pending|5m",
    ),
    (
        "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, spec: {schedulingPolicy: {gang: {minCount: 2}},"
        " workloadRef: {workloadName: w, templateName: t}},"
        " status: {conditions: [{type: PodGroupInitiallyScheduled, status: 'False', reason: SchedulerError}]}}",
        "NAME POLICY WORKLOAD STATUS AGE",
        "x|Gang|w|Unschedulable|5m",
    ),
    (
        "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup,"
        " status: {conditions: [{type: PodGroupInitiallyScheduled, status: 'True'}]}}",
        "NAME POLICY WORKLOAD STATUS AGE",
        "x|Basic|<none>|Scheduled|5m",
    ),
    (
        "{apiVersion: scheduling.k8s.io/v1alpha3, kind: PodGroup, status: {conditions:"
        " [{type: PodGroupInitiallyScheduled, status: 'True'},"
        " {type: DisruptionTarget, status: 'True', reason: PreemptionByScheduler}]}}",
        "NAME POLICY WORKLOAD STATUS AGE",
        "x|Basic|<none>|PreemptionByScheduler|5m",
    ),
    ("{apiVersion: scheduling.k8s.io/v1beta1, kind: Workload}", "NAME AGE", "x|5m"),
    ("{apiVersion: coordination.k8s.io/v1, kind: Lease, spec: {holderIdentity: h}}", "NAME HOLDER AGE", "x|h|5m"),
    ("{apiVersion: resource.k8s.io/v1, kind: ResourceClaim}", "NAME STATE AGE", "x|pending|5m"),
    (
        "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, status: {allocation: {}, reservedFor: [{}]}}",
        "NAME STATE AGE",
        "x|allocated,reserved|5m",
    ),
    ("{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate}", "NAME AGE", "x|5m"),
    ("{apiVersion: resource.k8s.io/v1, kind: DeviceClass}", "NAME AGE", "x|5m"),
    (
        "{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, spec: {nodeName: n, driver: d, pool: {name: p}}}",
        "NAME NODE DRIVER POOL AGE",
        "x|n|d|p|5m",
    ),
    (
        "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}",
        "NAME CREATED_AT",
        f"x|{CREATED}",
    ),
    (
        "{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, spec: {queueName: q},"
        " status: {admission: {clusterQueue: c},"
        " conditions: [{type: QuotaReserved, status: 'True'}, {type: Admitted, status: 'True'}]}}",
        "NAME QUEUE RESERVED_IN ADMITTED FINISHED AGE",
        "x|q|c|True|None|5m",
    ),
    (
        "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, spec: {clusterQueue: c}, status: {pendingWorkloads: 1,"
        " admittedWorkloads: 2}}",
        "NAME CLUSTERQUEUE PENDING_WORKLOADS ADMITTED_WORKLOADS",
        "x|c|1|2",
    ),
    (
        "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, spec: {cohortName: c, queueingStrategy: StrictFIFO},"
        " status: {pendingWorkloads: 3}}",
        "NAME COHORT STRATEGY PENDING_WORKLOADS ADMITTED_WORKLOADS",
        "x|c|StrictFIFO|3|None",
    ),
    ("{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor}", "NAME AGE", "x|5m"),
    ("{apiVersion: batch.example.com/v1, kind: Job}", "NAME AGE", "x|5m"),
]


def read(text: str) -> dict[str, Any]:
    obj: dict[str, Any] = yaml.safe_load(text)
    obj.setdefault("apiVersion", "v1")
    obj["metadata"] = {"name": "x", "creationTimestamp": CREATED, **obj.get("metadata", {})}
    return obj


@pytest.mark.parametrize(
    ("text", "header", "row"), CASES, ids=[f"{read(c[0])['kind']}-{n}" for n, c in enumerate(CASES)]
)
def test_kind_prints(text: str, header: str, row: str) -> None:
    obj = read(text)
    table = render_table(obj["kind"], [obj], NOW)
    names = [column["name"].upper().replace(" ", "_") for column in table["columnDefinitions"]]
    cells = [str(cell) for cell in table["rows"][0]["cells"]]
    assert len(names) == len(cells)
    if header.endswith(" ..."):
        names, cells = names[: len(header.split()) - 1], cells[: len(header.split()) - 1]
    assert " ".join(names) == header.removesuffix(" ...")
    assert "|".join(cells) == row.removesuffix("|...")


@pytest.mark.parametrize(
    "garbage", ["spec: 5", "status: []", "metadata: {labels: 7, ownerReferences: {}}", "spec: {ports: 1}"]
)
def test_broken_object_is_printed_somehow(garbage: str) -> None:
    for kind in {read(case[0])["kind"] for case in CASES} | {"Pod"}:
        table = render_table(kind, [{"apiVersion": "v1", **yaml.safe_load(garbage)}], NOW)
        assert len(table["rows"][0]["cells"]) == len(table["columnDefinitions"])
