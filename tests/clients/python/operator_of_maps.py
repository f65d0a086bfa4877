"""A kopf operator: every ConfigMap that is asked to gets an answer."""

import kopf


@kopf.on.create("configmaps", labels={"asks": "kopf"})
def answer(patch: kopf.Patch, **_: object) -> None:
    patch.setdefault("data", {})["answer"] = "kopf"
