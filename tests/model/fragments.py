"""Parts that the documents of several kinds have in common; every field with a value that is not the default."""

from __future__ import annotations

CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Fine",
    "message": "all well",
    "observedGeneration": 2,
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
PLAIN_CONDITION = {key: value for key, value in CONDITION.items() if key != "lastTransitionTime"}
SELECTOR = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a"]}]}
NODE_REQUIREMENT = {"key": "zone", "operator": "In", "values": ["a"]}
NODE_TERM = {"matchExpressions": [NODE_REQUIREMENT], "matchFields": [{**NODE_REQUIREMENT, "key": "metadata.name"}]}
NODE_SELECTOR = {"nodeSelectorTerms": [NODE_TERM]}
RESOURCES = {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}
TOLERATION = {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoExecute", "tolerationSeconds": 30}
TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
REFERENCE = {"apiGroup": "g", "kind": "K", "name": "n", "namespace": "ns"}
OBJECT_REFERENCE = {
    "kind": "Pod",
    "namespace": "ns",
    "name": "p",
    "uid": "1",
    "apiVersion": "v1",
    "resourceVersion": "3",
    "fieldPath": "spec",
}

CLAIM_SPEC = {
    "accessModes": ["ReadWriteOnce"],
    "selector": SELECTOR,
    "resources": {"requests": {"storage": "1Gi"}, "limits": {"storage": "2Gi"}},
    "volumeName": "pv",
    "storageClassName": "fast",
    "volumeMode": "Block",
    "volumeAttributesClassName": "gold",
    "dataSource": REFERENCE,
    "dataSourceRef": REFERENCE,
}
IN_TREE = {
    "gcePersistentDisk": {"pdName": "disk", "partition": 1, "readOnly": True},
    "awsElasticBlockStore": {"volumeID": "vol", "partition": 1, "readOnly": True},
    "iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.1", "lun": 1, "readOnly": True},
    "rbd": {"monitors": ["m"], "image": "i", "pool": "p", "readOnly": True},
    "azureDisk": {"diskName": "d", "diskURI": "uri", "kind": "Managed", "readOnly": True},
    "azureFile": {"shareName": "s", "secretName": "t", "readOnly": True},
    "cinder": {"volumeID": "vol", "readOnly": True},
    "vsphereVolume": {"volumePath": "path"},
    "portworxVolume": {"volumeID": "vol", "readOnly": True},
}
VOLUME_SPEC = {
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "claimRef": OBJECT_REFERENCE,
    "persistentVolumeReclaimPolicy": "Delete",
    "storageClassName": "fast",
    "volumeMode": "Block",
    "volumeAttributesClassName": "gold",
    "mountOptions": ["ro"],
    "nodeAffinity": {"required": NODE_SELECTOR},
    "csi": {
        "driver": "d",
        "volumeHandle": "h",
        "readOnly": True,
        "fsType": "ext4",
        "volumeAttributes": {"a": "b"},
    },
    **IN_TREE,
    "nfs": {"server": "s", "path": "/p", "readOnly": True},
    "local": {"path": "/l"},
    "hostPath": {"path": "/h"},
}
POD_TERM = {
    "labelSelector": SELECTOR,
    "namespaces": ["ns"],
    "namespaceSelector": SELECTOR,
    "topologyKey": "zone",
    "matchLabelKeys": ["hash"],
    "mismatchLabelKeys": ["other"],
}
POD_AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": [POD_TERM],
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": POD_TERM}],
}
CONTAINER = {
    "name": "app",
    "image": "web:1",
    "resources": RESOURCES,
    "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "UDP", "hostIP": "1.2.3.4"}],
    "restartPolicy": "Always",
    "restartPolicyRules": [{"action": "RestartAllContainers"}],
    "volumeMounts": [{"bindMountOptions": ["noexec"]}],
}
POD_SPEC = {
    "schedulerName": "other",
    "priority": 7,
    "priorityClassName": "high",
    "preemptionPolicy": "Never",
    "nodeSelector": {"disk": "ssd"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": NODE_SELECTOR,
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "preference": NODE_TERM}],
        },
        "podAffinity": POD_AFFINITY,
        "podAntiAffinity": POD_AFFINITY,
    },
    "tolerations": [TOLERATION],
    "topologySpreadConstraints": [
        {
            "maxSkew": 2,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": SELECTOR,
            "minDomains": 3,
            "nodeAffinityPolicy": "Ignore",
            "nodeTaintsPolicy": "Honor",
            "matchLabelKeys": ["hash"],
        }
    ],
    "containers": [CONTAINER],
    "initContainers": [CONTAINER],
    "ephemeralContainers": [CONTAINER],
    "overhead": {"cpu": "10m"},
    "resources": RESOURCES,
    "volumes": [
        {
            "name": "everything",
            "persistentVolumeClaim": {"claimName": "claim", "readOnly": True},
            "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": CLAIM_SPEC}},
            "csi": {"driver": "d", "readOnly": True},
            "image": {"reference": "models:1", "pullPolicy": "Always"},
            **IN_TREE,
        }
    ],
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "c", "resourceClaimTemplateName": "t"}],
    "schedulingGates": [{"name": "wait"}],
    "hostNetwork": True,
    "hostUsers": False,
    "os": {"name": "windows"},
    "terminationGracePeriodSeconds": 5,
    "schedulingGroup": {"podGroupName": "group"},
}
POD_STATUS = {
    "phase": "Running",
    "nominatedNodeName": "n",
    "startTime": "2026-01-01T00:00:00Z",
    "conditions": [PLAIN_CONDITION],
    "containerStatuses": [{"name": "app", "resources": RESOURCES, "allocatedResources": {"cpu": "1"}}],
    "initContainerStatuses": [{"name": "init", "resources": RESOURCES, "allocatedResources": {"cpu": "1"}}],
    "resources": RESOURCES,
    "allocatedResources": {"cpu": "2"},
    "resize": "Deferred",
    "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c"}],
    "extendedResourceClaimStatus": {
        "resourceClaimName": "c",
        "requestMappings": [{"containerName": "app", "resourceName": "example.com/gpu", "requestName": "r"}],
    },
    "observedGeneration": 4,
}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {**POD_SPEC, "runtimeClassName": "kata"}}
