"""Labels, annotations and other names by which jobs, pods and workloads know of each other: Kueue's."""

from __future__ import annotations

from typing import Final

QUEUE_NAME: Final = "kueue.x-k8s.io/queue-name"
DEFAULT_QUEUE: Final = "default"
"""The LocalQueue of whoever names none."""
PRIORITY_CLASS: Final = "kueue.x-k8s.io/priority-class"
MAX_EXECUTION_SECONDS: Final = "kueue.x-k8s.io/max-exec-time-seconds"
JOB_UID: Final = "kueue.x-k8s.io/job-uid"
IN_USE: Final = "kueue.x-k8s.io/resource-in-use"
"""The finalizer of workloads, queues, flavors and checks."""

POD_SET: Final = "kueue.x-k8s.io/podset"
"""On the pods of admitted workloads only: whoever carries it was steered to the nodes of a flavor."""
CLUSTER_QUEUE_NAME: Final = "kueue.x-k8s.io/cluster-queue-name"
LOCAL_QUEUE_NAME: Final = "kueue.x-k8s.io/local-queue-name"

MIN_PARALLELISM: Final = "kueue.x-k8s.io/job-min-parallelism"
COMPLETIONS_EQUAL_PARALLELISM: Final = "kueue.x-k8s.io/job-completions-equal-parallelism"

HELD: Final = "queueing.pilotage.dev/suspended-with-ancestor"
"""On child Jobs that were suspended because the job that they belong to must not run."""

GATE: Final = "kueue.x-k8s.io/admission"
MANAGED: Final = "kueue.x-k8s.io/managed"
GROUP_NAME: Final = "kueue.x-k8s.io/pod-group-name"
GROUP_TOTAL_COUNT: Final = "kueue.x-k8s.io/pod-group-total-count"
GROUP_FAST_ADMISSION: Final = "kueue.x-k8s.io/pod-group-fast-admission"
GROUP_SERVING: Final = "kueue.x-k8s.io/pod-group-serving"
RETRIABLE_IN_GROUP: Final = "kueue.x-k8s.io/retriable-in-group"
ROLE_HASH: Final = "kueue.x-k8s.io/role-hash"
"""On pods that were let go: which pod set they belong to, because their own shape was changed by then."""
