"""SparkApplication (sparkoperator.k8s.io): a driver and executors, whose requests follow from Spark's own settings.

Spark asks for memory plus an overhead: a share of the memory, 384 MiB at least. What it needs to know is in typed
fields, or in `sparkConf` under Spark's names; a typed field goes first.
"""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec.structs import replace

from pilotage.jobs.adapters.facts import JobEnding
from pilotage.jobs.adapters.kinds.custom import CustomKind, Standing, suspended_by
from pilotage.jobs.adapters.kinds.job_kind import CannotQueue
from pilotage.jobs.adapters.kinds.pods_in_spec import (
    Json,
    PodsInSpec,
    map_at,
    number_at,
    read_template,
    text_at,
)
from pilotage.model.custom_jobs import CustomJob, custom_kind
from pilotage.model.meta import ObjectMeta
from pilotage.model.pod_spec import Container
from pilotage.model.quantity import parse_quantity
from pilotage.model.workloads import PodTemplate

_MEMORY: Final = re.compile(r"(\d{1,15})\s*([kmgtp]?)b?")
_KIBS: Final = {"k": 1, "m": 1024, "": 1024, "g": 1024**2, "t": 1024**3, "p": 1024**4}
_DEFAULT_MIB: Final = 1024
_LEAST_OVERHEAD_MIB: Final = 384
_OVERHEAD: Final = 0.1
_OVERHEAD_OF_PYTHON_AND_R: Final = 0.4
_RUNNING: Final = frozenset(
    {"SUBMITTED", "RUNNING", "SUCCEEDING", "FAILING", "INVALIDATING", "PENDING_RERUN", "SUSPENDING", "UNKNOWN"}
)


def _pods(job: CustomJob) -> list[PodsInSpec]:
    spec = job.spec
    if map_at(spec, "dynamicAllocation").get("enabled") is True:
        raise CannotQueue("dynamicAllocation would start executors that no quota was given for; disable it")
    if spec.get("nodeSelector"):
        raise CannotQueue("write nodeSelector for driver and executor, not for both: each is sent to its own flavor")
    return [
        PodsInSpec("driver", 1, ("driver",), "flat", _template(spec, "driver")),
        PodsInSpec(
            "executor", number_at(spec, 1, "executor", "instances"), ("executor",), "flat", _template(spec, "executor")
        ),
    ]


def _template(spec: Json, role: str) -> PodTemplate:
    """As the operator makes its pods."""
    own = map_at(spec, role)
    read = read_template(
        {
            "metadata": {"labels": own.get("labels") or {}, "annotations": own.get("annotations") or {}},
            "spec": {
                "nodeSelector": own.get("nodeSelector") or {},
                "tolerations": own.get("tolerations") or [],
                "affinity": own.get("affinity"),
                "priorityClassName": own.get("priorityClassName") or "",
                "initContainers": own.get("initContainers") or [],
                "containers": [_container(spec, role, own), *(own.get("sidecars") or [])],
            },
        },
        role,
    )
    given = read_template(own.get("template"), f"{role}.template")
    kept: tuple[Container, ...] = given.spec.containers[1:]
    whole = replace(read.spec, containers=(*read.spec.containers, *kept), overhead=given.spec.overhead)
    return PodTemplate(ObjectMeta(labels=read.metadata.labels, annotations=read.metadata.annotations), whole)


def _container(spec: Json, role: str, own: Json) -> Json:
    requests = {"cpu": _cores(spec, role, own), "memory": f"{_memory_mib(spec, role, own)}Mi"}
    gpu = map_at(own, "gpu")
    if text_at(gpu, "name") and number_at(gpu, 0, "quantity") > 0:
        requests[text_at(gpu, "name")] = str(gpu["quantity"])
    return {"name": role, "resources": {"requests": requests}}


def _cores(spec: Json, role: str, own: Json) -> str:
    conf = map_at(spec, "sparkConf")
    settings = (
        own.get("coreRequest"),
        conf.get(f"spark.kubernetes.{role}.request.cores"),
        own.get("cores"),
        conf.get(f"spark.{role}.cores"),
        1,
    )
    cores = str(next(one for one in settings if one is not None))
    try:
        parse_quantity(cores)
    except ValueError as error:
        raise CannotQueue(f'{role}: "{cores}" is no number of cores') from error
    return cores


def _memory_mib(spec: Json, role: str, own: Json) -> int:
    conf = map_at(spec, "sparkConf")
    memory = _first(own.get("memory"), conf.get(f"spark.{role}.memory"))
    mib = _DEFAULT_MIB if memory is None else _mib(role, memory)
    overhead = _first(own.get("memoryOverhead"), conf.get(f"spark.{role}.memoryOverhead"))
    if overhead is not None:
        extra = _mib(role, overhead)
    else:
        extra = max(int(_overhead_factor(spec, role, conf) * mib), _LEAST_OVERHEAD_MIB)
    return mib + extra + (_beside_the_heap_mib(spec, conf) if role == "executor" else 0)


def _overhead_factor(spec: Json, role: str, conf: Json) -> float:
    given = _first(
        conf.get(f"spark.{role}.memoryOverheadFactor"),
        conf.get("spark.kubernetes.memoryOverheadFactor"),
        spec.get("memoryOverheadFactor"),
    )
    if given is None:
        return _OVERHEAD_OF_PYTHON_AND_R if spec.get("type") in ("Python", "R") else _OVERHEAD
    try:
        factor = float(given)
    except ValueError:
        factor = -1.0
    if not 0 <= factor < 1e6:
        raise CannotQueue(f'memoryOverheadFactor "{given}" is no number that is not negative')
    return factor


def _beside_the_heap_mib(spec: Json, conf: Json) -> int:
    python = conf.get("spark.executor.pyspark.memory") if spec.get("type") == "Python" else None
    mib = 0 if python is None else _mib("executor", python)
    size = conf.get("spark.memory.offHeap.size")
    if size is not None and str(conf.get("spark.memory.offHeap.enabled", "")).lower() == "true":
        # Of all sizes only this one counts bytes if it says nothing else.
        text = str(size).strip()
        mib += int(text) // 2**20 if text.isdecimal() and len(text) < 20 else _mib("executor", size)
    return mib


def _first(*settings: Any) -> Any:
    return next((one for one in settings if one is not None), None)


def _mib(role: str, text: Any) -> int:
    match = _MEMORY.fullmatch(str(text).strip().lower())
    if match is None:
        raise CannotQueue(f'{role}: "{text}" is no amount of memory such as 512m or 2g')
    return int(match[1]) * _KIBS[match[2]] // 1024


def _standing(job: CustomJob) -> Standing:
    state = text_at(job.status, "applicationState", "state")
    executors = map_at(job.status, "executorState").values()
    ready = sum(one in ("RUNNING", "COMPLETED") for one in executors)
    ending = None
    if state in ("COMPLETED", "FAILED", "SUBMISSION_FAILED"):
        default = "Job finished successfully" if state == "COMPLETED" else "Job failed"
        ending = JobEnding(state == "COMPLETED", text_at(job.status, "applicationState", "errorMessage") or default)
    return Standing(
        is_active=state in _RUNNING,
        are_pods_ready=state == "RUNNING" and ready >= number_at(job.spec, 1, "executor", "instances"),
        ending=ending,
    )


SPARK_APPLICATION = CustomKind(
    **suspended_by("sparkoperator.k8s.io", "SparkApplication"),
    resource=custom_kind("sparkoperator.k8s.io", "v1beta2", "SparkApplication"),
    pods=_pods,
    standing=_standing,
)
