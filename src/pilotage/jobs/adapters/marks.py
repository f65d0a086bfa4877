"""Labels, annotations and other names by which jobs, pods and workloads know of each other: Kueue's."""

from __future__ import annotations

from typing import Final

from pilotage.model import queue_admission

QUEUE_NAME: Final = queue_admission.QUEUE_NAME
DEFAULT_QUEUE: Final = "default"
"""The LocalQueue of jobs that name none."""
DEFAULT_PRIORITY_CLASS: Final = "default"
"""The WorkloadPriorityClass of jobs that name none."""
PRIORITY_CLASS: Final = queue_admission.PRIORITY_CLASS
MAX_EXECUTION_SECONDS: Final = "kueue.x-k8s.io/max-exec-time-seconds"
JOB_UID: Final = "kueue.x-k8s.io/job-uid"
IN_USE: Final = "kueue.x-k8s.io/resource-in-use"
"""The finalizer of workloads, queues, flavors and checks."""

POD_SET: Final = "kueue.x-k8s.io/podset"
"""On the pods of admitted workloads only: a pod that carries it was steered to the nodes of a flavor."""
WORKLOAD: Final = "kueue.x-k8s.io/workload"
"""On the same pods: the workload that they were started for."""
CLUSTER_QUEUE_NAME: Final = "kueue.x-k8s.io/cluster-queue-name"
LOCAL_QUEUE_NAME: Final = "kueue.x-k8s.io/local-queue-name"

PREBUILT_WORKLOAD: Final = "kueue.x-k8s.io/prebuilt-workload-name"
"""The workload of the job, made by somebody else."""
REQUIRED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-required-topology"
"""On pod templates: a label of nodes, one value of which holds all pods."""
PREFERRED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-preferred-topology"
TOPOLOGY: Final = (REQUIRED_TOPOLOGY, PREFERRED_TOPOLOGY)
ELASTIC: Final = "kueue.x-k8s.io/elastic-job"
MIN_PARALLELISM: Final = "kueue.x-k8s.io/job-min-parallelism"
COMPLETIONS_EQUAL_PARALLELISM: Final = "kueue.x-k8s.io/job-completions-equal-parallelism"

HELD: Final = queue_admission.HELD
"""On child Jobs that were suspended because the job that they belong to must not run."""

GATE: Final = queue_admission.GATE
MANAGED: Final = "kueue.x-k8s.io/managed"
GROUP_NAME: Final = "kueue.x-k8s.io/pod-group-name"
GROUP_TOTAL_COUNT: Final = "kueue.x-k8s.io/pod-group-total-count"
GROUP_FAST_ADMISSION: Final = "kueue.x-k8s.io/pod-group-fast-admission"
GROUP_SERVING: Final = "kueue.x-k8s.io/pod-group-serving"
RETRIABLE_IN_GROUP: Final = "kueue.x-k8s.io/retriable-in-group"
ROLE_HASH: Final = "kueue.x-k8s.io/role-hash"
"""On pods that were let go: which pod set they belong to, because their own shape was changed by then."""
