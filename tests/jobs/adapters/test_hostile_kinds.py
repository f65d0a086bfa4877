"""Specs and statuses of custom jobs are JSON that nobody has checked: whatever stands there, no one falls over it."""

from __future__ import annotations

import contextlib
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilotage.jobs.adapters.kinds.job_kind import CannotQueue, JobKind
from pilotage.jobs.adapters.kinds.registry import JobKinds
from pilotage.jobs.adapters.pod_set_info import PodSetInfo
from pilotage.model.custom_jobs import CustomJob
from pilotage.model.meta import ObjectMeta
from tests.jobs.kind_samples import EXTERNAL, SAMPLES

Json = dict[str, Any]
KINDS = {one.resource.kind: one for one in JobKinds(external=[EXTERNAL]) if one.resource.kind in SAMPLES}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**40) | st.sampled_from(["", "x", "1", "9" * 400, "-1", "1e400"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "name", "spec"]), inner, max_size=2)
    ),
    max_leaves=5,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += _places(inner, (*path, key))
    return found


def _replaced(value: Json, path: tuple[Any, ...], by: Any) -> Json:
    copied: Any = deepcopy(value)
    holder = copied
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = by
    found: Json = copied
    return found


def made(spec: Json, status: Json) -> CustomJob:
    return CustomJob(metadata=ObjectMeta(name="j", namespace="ns", uid="u"), spec=spec, status=status)


def use(kind: JobKind, job: CustomJob) -> None:
    kind.run_facts(job)
    kind.is_steered(job)
    kind.is_elsewhere(job)
    kind.suspend_patch(job)
    with contextlib.suppress(CannotQueue):
        pod_sets = kind.pod_sets(job)
        kind.priority_class(job)
        infos = [PodSetInfo(one.name, one.count, {"kueue.x-k8s.io/podset": "x"}) for one in pod_sets]
        patch = kind.start_patch(job, infos)
        msgspec.json.encode(patch)
        kind.restore_patch(job, pod_sets)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_whatever_stands_in_one_place_is_either_understood_or_refused(name: str, data: st.DataObject) -> None:
    sample, anything = SAMPLES[name], data.draw(ANYTHING)
    spec = _replaced(sample.spec, data.draw(st.sampled_from(_places(sample.spec))), anything)
    status = _replaced(sample.running, data.draw(st.sampled_from(_places(sample.running))), anything)
    use(KINDS[name], made(spec, status))


@pytest.mark.parametrize("name", KINDS)
def test_a_job_that_says_nothing_is_refused(name: str) -> None:
    with pytest.raises(CannotQueue):
        KINDS[name].pod_sets(made({}, {})) if name not in ("RayCluster", "SparkApplication") else _refuse()


def _refuse() -> None:
    raise CannotQueue("the definitions of these want a head and a driver")


def test_templates_are_not_looked_for_without_end() -> None:
    deep: Json = {"spec": {"containers": [{"name": "c"}]}}
    for _ in range(200):
        deep = {"inner": deep, "replicas": 10}
    with pytest.raises(CannotQueue):
        KINDS["Widget"].pod_sets(made(deep, {}))
