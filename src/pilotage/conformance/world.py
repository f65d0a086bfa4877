"""The cluster of a recorded case, loaded into the same state that the live scheduler uses."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from pilotage.assembly import SchedulerOptions, build_profiles
from pilotage.clock import SystemClock
from pilotage.cluster.state import Cluster
from pilotage.conformance.cases import ConformanceCase, ConformanceCaseError, Object
from pilotage.cycle.handle import FrameworkHandle
from pilotage.cycle.placement import ProfileEngine
from pilotage.model import DecodeError, Pod, kind_of
from pilotage.rng import seeded


@dataclass(frozen=True, slots=True)
class LoadedCase:
    """A loaded case: the engine of the pod's profile, and the pod in question."""

    cluster: Cluster
    handle: FrameworkHandle
    engine: ProfileEngine
    pod: Pod


def load_cluster(objects: list[Object]) -> Cluster:
    """All objects of a case; finished pods are left out, waiting ones keep their nominations."""
    cluster = Cluster()
    for raw in objects:
        kind = kind_of(raw.get("kind", ""))
        if kind is None:
            raise ConformanceCaseError(f"an object of the unknown kind {raw.get('kind')!r}")
        cluster.put(kind.kind, kind.decode(msgspec.json.encode(raw)))
    return cluster


def cluster_of(case: ConformanceCase) -> Cluster:
    """The cluster of a case; ConformanceCaseError names the case if an object cannot be read."""
    try:
        return load_cluster(case.objects)
    except (ConformanceCaseError, DecodeError) as error:
        raise ConformanceCaseError(f"{case.name}: {error}") from error


def load_world(case: ConformanceCase, options: SchedulerOptions) -> LoadedCase:
    cluster = cluster_of(case)
    clock, rng = SystemClock(), seeded(0)
    engines: dict[str, ProfileEngine] = {}
    handle = FrameworkHandle(cluster, clock, rng, engines=engines)
    profiles = build_profiles(options, handle)
    pod = _asked(case, cluster)
    profile = profiles.get(pod.spec.scheduler_name)
    if profile is None:
        raise ConformanceCaseError(f"{case.name}: no profile for scheduler name {pod.spec.scheduler_name}")
    engine = engines[profile.scheduler_name] = ProfileEngine(profile, cluster)
    return LoadedCase(cluster, handle, engine, pod)


def _asked(case: ConformanceCase, cluster: Cluster) -> Pod:
    """The pod that the case is about."""
    pod: Pod | None = cluster.objects("Pod").get(case.pod)
    if pod is None:
        raise ConformanceCaseError(f"{case.name}: no pod {case.pod} among the objects that has not ended yet")
    return pod
