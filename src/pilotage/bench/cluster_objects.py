"""What a workload needs besides nodes and pods, created as a user would: first the object, then its status."""

from __future__ import annotations

import msgspec

from pilotage.bench.workloads import Object
from pilotage.kube.client import KubeClient
from pilotage.model import KINDS
from pilotage.model.kinds import kind_of


async def create_object(client: KubeClient, manifest: Object) -> None:
    """Create an object of any kind that scheduling reads; its status is written on its own."""
    kind = kind_of(manifest["kind"])
    if kind is None:
        raise ValueError(f"workloads know no kind {manifest['kind']}; there are: {', '.join(sorted(KINDS))}")
    metadata = manifest["metadata"]
    namespace = metadata.get("namespace", "")
    await client.create(kind, namespace, msgspec.json.encode(manifest))
    if "status" in manifest:
        body = msgspec.json.encode({"status": manifest["status"]})
        await client.patch(kind, namespace, metadata["name"], body, subresource="status")
