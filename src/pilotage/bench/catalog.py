"""All workloads by name."""

from __future__ import annotations

from pilotage.bench.device_workloads import DEVICE_WORKLOADS
from pilotage.bench.fleet_workloads import FLEET_WORKLOADS
from pilotage.bench.group_workloads import GROUP_WORKLOADS
from pilotage.bench.mixed_fleet import MIXED_FLEET
from pilotage.bench.placement_workloads import PLACEMENT_WORKLOADS
from pilotage.bench.volume_workloads import VOLUME_WORKLOADS
from pilotage.bench.workloads import PREEMPTION_BASIC, SCHEDULING_BASIC, UNSCHEDULABLE

WORKLOADS = {
    workload.name: workload
    for workload in (
        SCHEDULING_BASIC,
        *PLACEMENT_WORKLOADS,
        PREEMPTION_BASIC,
        UNSCHEDULABLE,
        *FLEET_WORKLOADS,
        MIXED_FLEET,
        *GROUP_WORKLOADS,
        *DEVICE_WORKLOADS,
        *VOLUME_WORKLOADS,
    )
}
