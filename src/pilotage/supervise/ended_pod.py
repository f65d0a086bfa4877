"""The mark on a pod whose scheduling had to be ended by killing the process: whoever leads next tries it late."""

from __future__ import annotations

import logging

import msgspec

from pilotage.api.conditions import BUDGET_EXCEEDED, POD_SCHEDULED, PodCondition
from pilotage.calls.pod_status import new_conditions, write_status
from pilotage.clock import Clock, rfc3339
from pilotage.kube.client import KubeClient
from pilotage.kube.errors import ApiStatusError
from pilotage.kube.transport import TransportError
from pilotage.model import KINDS, Pod
from pilotage.supervise.shared_state import Work

log = logging.getLogger(__name__)


async def mark_ended(client: KubeClient, work: Work, seconds: float, clock: Clock) -> None:
    """Write it into the pod's status; what goes wrong is logged, the next leader then meets the pod unwarned."""
    kind = KINDS["pods"]
    by = f" in plugin {work.plugin}" if work.plugin else ""
    message = (
        f"scheduling this pod was ended: the scheduler gave no sign of life for {seconds:.0f} s{by} and was restarted"
    )
    try:
        pod: Pod = kind.decode(await client.get(kind, work.namespace, work.name))
        if pod.uid != work.uid or pod.node_name:
            return
        now = rfc3339(clock.time())
        condition = PodCondition(POD_SCHEDULED, "False", BUDGET_EXCEEDED, message, pod.generation, now)
        await write_status(client, pod, new_conditions(pod, [condition]))
    except (ApiStatusError, TransportError, msgspec.MsgspecError) as error:
        log.warning("the pod is not marked: pod=%s/%s error=%s", work.namespace, work.name, error)
