"""A small operator: a Worker of size N has N pods, and says in its status how many of them are ready."""

import os

import kopf
import kubernetes


@kopf.on.startup()
def connect(settings: kopf.OperatorSettings, **_):
    # The client looks at KUBECONFIG when it is imported, unless it is told where to look.
    kubernetes.config.load_kube_config(config_file=os.environ.get("KUBECONFIG"))
    settings.posting.enabled = False


@kopf.on.login()
def log_in(settings: kopf.OperatorSettings, **_):
    return kopf.login_with_kubeconfig(settings=settings)


@kopf.on.create("example.com", "v1", "workers", backoff=1)
@kopf.on.update("example.com", "v1", "workers", field="spec.size", backoff=1)
def have_pods(name, namespace, spec, body, **_):
    template = {
        "metadata": {"labels": {"worker": name}},
        "spec": {"containers": [{"name": "main", "image": "worker"}]},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"worker": name}},
        "spec": {
            "replicas": spec.get("size", 1),
            "selector": {"matchLabels": {"worker": name}},
            "template": template,
        },
    }
    kopf.append_owner_reference(deployment, owner=body)
    apps = kubernetes.client.AppsV1Api()
    try:
        apps.create_namespaced_deployment(namespace, deployment)
    except kubernetes.client.ApiException as error:
        if error.status != 409:
            raise
        apps.patch_namespaced_deployment(name, namespace, {"spec": deployment["spec"]})


@kopf.on.event("apps", "v1", "deployments", labels={"worker": kopf.PRESENT})
def tell_ready(name, namespace, status, **_):
    custom = kubernetes.client.CustomObjectsApi()
    ready = {"status": {"ready": status.get("readyReplicas", 0)}}
    try:
        custom.patch_namespaced_custom_object_status("example.com", "v1", namespace, "workers", name, ready)
    except kubernetes.client.ApiException as error:
        if error.status != 404:  # The worker is gone, and the deployment follows it.
            raise
