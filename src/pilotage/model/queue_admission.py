"""What admission does to new objects that name a queue, so that nothing of them starts before its turn.

    a job with a switch that suspends it    is suspended
    a Pod                                   gets the scheduling gate of admission
    what makes pods or Jobs by a template   gives them the labels of its queue and priority, by its template
    a job that cannot be queued             is refused: it would run without quota

The same rules are served in three ways, which must agree: by the sandbox, by a webhook, and by the
MutatingAdmissionPolicies in `deploy/workload-queueing`. Objects are JSON that nobody has checked: a wrong type is left
to validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

QUEUE_NAME: Final = "kueue.x-k8s.io/queue-name"
PRIORITY_CLASS: Final = "kueue.x-k8s.io/priority-class"
GATE: Final = "kueue.x-k8s.io/admission"
HELD: Final = "queueing.pilotage.dev/suspended-with-ancestor"

Json = dict[str, Any]
Path = tuple[str, ...]

_COPIED: Final = (QUEUE_NAME, PRIORITY_CLASS)
_LEADER_WORKERS: Final = ("spec", "leaderWorkerTemplate")

SUSPENDED: Final[Mapping[tuple[str, str], tuple[str, Path]]] = {
    ("batch", "Job"): ("batch/job", ("spec", "suspend")),
    ("jobset.x-k8s.io", "JobSet"): ("jobset.x-k8s.io/jobset", ("spec", "suspend")),
    ("ray.io", "RayJob"): ("ray.io/rayjob", ("spec", "suspend")),
    ("ray.io", "RayCluster"): ("ray.io/raycluster", ("spec", "suspend")),
    ("kubeflow.org", "PyTorchJob"): ("kubeflow.org/pytorchjob", ("spec", "runPolicy", "suspend")),
    ("kubeflow.org", "TFJob"): ("kubeflow.org/tfjob", ("spec", "runPolicy", "suspend")),
    ("kubeflow.org", "XGBoostJob"): ("kubeflow.org/xgboostjob", ("spec", "runPolicy", "suspend")),
    ("kubeflow.org", "PaddleJob"): ("kubeflow.org/paddlejob", ("spec", "runPolicy", "suspend")),
    ("kubeflow.org", "JAXJob"): ("kubeflow.org/jaxjob", ("spec", "runPolicy", "suspend")),
    ("kubeflow.org", "MPIJob"): ("kubeflow.org/mpijob", ("spec", "runPolicy", "suspend")),
    ("sparkoperator.k8s.io", "SparkApplication"): ("sparkoperator.k8s.io/sparkapplication", ("spec", "suspend")),
    ("workload.codeflare.dev", "AppWrapper"): ("workload.codeflare.dev/appwrapper", ("spec", "suspend")),
}
"""By group and kind: the name of the integration, and the switch that keeps pods from being made."""

POD: Final = "pod"
_JOB: Final = "batch/job"

LABELLED: Final[Mapping[tuple[str, str], tuple[frozenset[str], tuple[Path, ...]]]] = {
    ("apps", "Deployment"): (frozenset({"deployment", POD}), (("spec", "template"),)),
    ("apps", "ReplicaSet"): (frozenset({"replicaset", POD}), (("spec", "template"),)),
    ("apps", "StatefulSet"): (frozenset({"statefulset", POD}), (("spec", "template"),)),
    ("batch", "CronJob"): (frozenset({_JOB}), (("spec", "jobTemplate"),)),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (
        frozenset({"leaderworkerset.x-k8s.io/leaderworkerset", POD}),
        ((*_LEADER_WORKERS, "leaderTemplate"), (*_LEADER_WORKERS, "workerTemplate")),
    ),
}
"""By group and kind: the integrations that it takes, and where the templates of what it makes are."""

REFUSED: Final[Mapping[tuple[str, str], str]] = {
    ("trainer.kubeflow.org", "TrainJob"): (
        "TrainJobs are not queued: what their pods ask for stands elsewhere, in a runtime"
    ),
}
"""By group and kind: what would run without quota although it names a queue, and why."""

FRAMEWORKS: Final[frozenset[str]] = frozenset(name for name, _ in SUSPENDED.values()).union(
    *(names for names, _ in LABELLED.values())
)
"""The integrations that admission knows."""


def admit(obj: Json, frameworks: frozenset[str] = FRAMEWORKS, *, is_new: bool = True) -> bool:
    """Change the object in place; whether there was anything to change. Of an object that exists only labels count."""
    group, _, _ = str(obj.get("apiVersion", "")).rpartition("/")
    kind = (group, str(obj.get("kind", "")))
    if _label(obj, QUEUE_NAME) is None and not _takes_labels_of_pods(obj, kind):
        return False
    if kind in LABELLED:
        needed, paths = LABELLED[kind]
        return needed <= frameworks and sum(_label_template(obj, path) for path in paths) > 0
    if not is_new:
        return False
    if kind == ("", "Pod"):
        return POD in frameworks and _gate(obj)
    if kind in SUSPENDED:
        framework, path = SUSPENDED[kind]
        return framework in frameworks and _suspend(obj, path)
    return False


def refusal(obj: Json) -> str:
    """Why it must not be created with a queue; "" if it may be."""
    group, _, _ = str(obj.get("apiVersion", "")).rpartition("/")
    why = REFUSED.get((group, str(obj.get("kind", ""))))
    if why is None or _label(obj, QUEUE_NAME) is None:
        return ""
    return f"{why}; without the label {QUEUE_NAME} it runs, and takes no quota"


def is_followed(group: str, kind: str) -> bool:
    """Whether what makes others follows when only its labels change."""
    return (group, kind) in LABELLED


def _takes_labels_of_pods(obj: Json, kind: tuple[str, str]) -> bool:
    """A Job without labels gets those of its pods' template, by default."""
    if kind != ("batch", "Job") or _at(obj, ("metadata", "labels")):
        return False
    return type(_at(obj, ("spec", "template", "metadata", "labels", QUEUE_NAME))) is str


def differences(before: Json, after: Json) -> list[Json]:
    """The JSON patch from one to the other: maps by their keys, lists as a whole."""
    return list(_differences(before, after, ""))


def _differences(before: Json, after: Json, path: str) -> Iterator[Json]:
    for key in before.keys() - after.keys():
        yield {"op": "remove", "path": f"{path}/{_escaped(key)}"}
    for key, value in after.items():
        place = f"{path}/{_escaped(key)}"
        if key not in before:
            yield {"op": "add", "path": place, "value": value}
        elif type(value) is dict and type(before[key]) is dict:
            yield from _differences(before[key], value, place)
        elif value != before[key]:
            yield {"op": "replace", "path": place, "value": value}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _label(obj: Json, name: str) -> str | None:
    found = _at(obj, ("metadata", "labels", name))
    return found if type(found) is str else None


def _gate(pod: Json) -> bool:
    """No one can add a gate later."""
    spec = pod.get("spec")
    if type(spec) is not dict or spec.get("nodeName"):
        return False
    gates = spec.get("schedulingGates")
    if gates is None:
        gates = []
    if type(gates) is not list or any(type(one) is dict and one.get("name") == GATE for one in gates):
        return False
    spec["schedulingGates"] = [*gates, {"name": GATE}]
    return True


def _suspend(job: Json, path: Path) -> bool:
    holder = _made(job, path[:-1])
    if holder is None or holder.get(path[-1]) is True:
        return False
    holder[path[-1]] = True
    if _belongs_to_job(job) and (annotations := _made(job, ("metadata", "annotations"))) is not None:
        # It is let go again with the job that it belongs to.
        annotations[HELD] = "true"
    return True


def _belongs_to_job(job: Json) -> bool:
    owners = _at(job, ("metadata", "ownerReferences"))
    for one in owners if type(owners) is list else ():
        if type(one) is dict and one.get("controller") is True:
            group, _, _ = str(one.get("apiVersion", "")).rpartition("/")
            return (group, str(one.get("kind", ""))) in SUSPENDED
    return False


def _label_template(obj: Json, path: Path) -> bool:
    if type(_at(obj, path)) is not dict:
        return False
    labels = _made(obj, (*path, "metadata", "labels"))
    if labels is None:
        return False
    copied = {name: value for name in _COPIED if (value := _label(obj, name)) is not None}
    if all(labels.get(name) == value for name, value in copied.items()):
        return False
    labels.update(copied)
    return True


def _at(obj: Any, path: Path) -> Any:
    for key in path:
        obj = obj.get(key) if type(obj) is dict else None
    return obj


def _made(obj: Json, path: Path) -> Json | None:
    """The map there, made if it is missing; None if something else is in the way."""
    for key in path:
        if obj.get(key) is None:
            obj[key] = {}
        obj = obj[key]
        if type(obj) is not dict:
            return None
    return obj
