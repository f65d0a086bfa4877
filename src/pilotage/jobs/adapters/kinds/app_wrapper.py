"""AppWrapper (workload.codeflare.dev): objects of other kinds that start together.

A component says where the templates of its pods are (`podSets`). Of components that do not, those templates are found
by themselves; how many pods each makes is then read beside it. What admission adds is written into `podSetInfos`.
"""

from __future__ import annotations

from pilotage.jobs.adapters.facts import JobEnding
from pilotage.jobs.adapters.kinds.custom import CustomKind, Standing, condition_of, suspended_by
from pilotage.jobs.adapters.kinds.generic import templates_in
from pilotage.jobs.adapters.kinds.job_kind import CannotQueue
from pilotage.jobs.adapters.kinds.pods_in_spec import (
    Json,
    PodsInSpec,
    at,
    maps_at,
    number_at,
    numbered_maps_at,
    read_template,
    text_at,
)
from pilotage.model.custom_jobs import CustomJob, custom_kind


def _pods(job: CustomJob) -> list[PodsInSpec]:
    found: list[PodsInSpec] = []
    for index, component in numbered_maps_at(job.spec, "components"):
        for number, (path, count) in enumerate(_templates(component)):
            where = ("components", index, *path)
            value = at(component, path)
            if type(value) is not dict:
                raise CannotQueue(f"spec.{'.'.join(map(str, where))} is no template of pods: there is nothing")
            found.append(
                PodsInSpec(
                    name=f"{job.name}-{len(found)}",
                    count=count,
                    path=("components", index, "podSetInfos", number),
                    form="added",
                    template=read_template(value, ".".join(map(str, where))),
                )
            )
    return found


def _templates(component: Json) -> list[tuple[tuple[str | int, ...], int]]:
    """Where the templates of a component are, and how many pods are made of each."""
    declared = maps_at(component, "podSets")
    if declared:
        return [(tuple(text_at(one, "path").split(".")), number_at(one, 1, "replicas")) for one in declared]
    template = component.get("template")
    if type(template) is dict and template.get("kind") == "Pod":
        return [(("template",), 1)]
    return [(pods.path, pods.count) for pods in templates_in(template, ("template",))]


def _standing(job: CustomJob) -> Standing:
    phase = text_at(job.status, "phase")
    ending = None
    if phase == "Succeeded":
        ending = JobEnding(True, "AppWrapper finished successfully")
    elif phase == "Failed" and condition_of(job, "ResourcesDeployed") is None:
        ending = JobEnding(False, "AppWrapper failed")
    return Standing(
        is_active=condition_of(job, "QuotaReserved") is not None,
        are_pods_ready=condition_of(job, "PodsReady") is not None,
        ending=ending,
    )


APP_WRAPPER = CustomKind(
    **suspended_by("workload.codeflare.dev", "AppWrapper"),
    resource=custom_kind("workload.codeflare.dev", "v1beta2", "AppWrapper"),
    pods=_pods,
    standing=_standing,
)
