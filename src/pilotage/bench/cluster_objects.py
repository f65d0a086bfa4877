"""What a workload needs besides nodes and pods, created as a user would: first the object, then its status.

And what happens to the cluster meanwhile.
"""

from __future__ import annotations

import msgspec

from pilotage.bench.workloads import ClusterChange, Object
from pilotage.kube.client import KubeClient
from pilotage.kube.errors import ApiStatusError
from pilotage.model import KINDS
from pilotage.model.kinds import KindInfo, kind_of


async def create_object(client: KubeClient, manifest: Object) -> None:
    """Create an object of any kind that scheduling reads; its status is written on its own."""
    kind = _kind_of(manifest)
    metadata = manifest["metadata"]
    namespace = metadata.get("namespace", "")
    try:
        await client.create(kind, namespace, msgspec.json.encode(manifest))
    except ApiStatusError as error:
        kind = kind.in_other_version()
        if error.code != 404 or not kind.other_version:
            raise
        await client.create(kind, namespace, msgspec.json.encode({**manifest, "apiVersion": kind.api_version}))
    if "status" in manifest:
        body = msgspec.json.encode({"status": manifest["status"]})
        await client.patch(kind, namespace, metadata["name"], body, subresource="status")


async def apply_change(client: KubeClient, change: ClusterChange) -> None:
    """Let it happen."""
    manifest = change.manifest
    if change.verb == "create":
        await create_object(client, manifest)
        return
    kind, metadata = _kind_of(manifest), manifest["metadata"]
    namespace, name = metadata.get("namespace", ""), metadata["name"]
    if change.verb == "delete":
        await client.delete(kind, namespace, name)
    else:
        await client.patch(kind, namespace, name, msgspec.json.encode({"metadata": metadata}))


def _kind_of(manifest: Object) -> KindInfo:
    kind = kind_of(manifest["kind"])
    if kind is None:
        raise ValueError(f"workloads know no kind {manifest['kind']}; there are: {', '.join(sorted(KINDS))}")
    return kind
