"""For each kind a document that names every field which the model reads, with a value that is not the default."""

from __future__ import annotations

from typing import Any

from .fragments import (
    CLAIM_SPEC,
    CONDITION,
    NODE_SELECTOR,
    OBJECT_REFERENCE,
    POD_SPEC,
    POD_STATUS,
    REFERENCE,
    SELECTOR,
    TAINT,
    TEMPLATE,
    TOLERATION,
    VOLUME_SPEC,
)

_REPLICAS = {"replicas": 3, "readyReplicas": 2, "availableReplicas": 1, "observedGeneration": 4}

_QUOTA = {"name": "cpu", "nominalQuota": "5", "borrowingLimit": "1", "lendingLimit": "2"}
_GROUPS = [{"coveredResources": ["cpu"], "flavors": [{"name": "std", "resources": [_QUOTA]}]}]
_USAGE = [{"name": "std", "resources": [{"name": "cpu", "total": "3", "borrowed": "1"}]}]
_QUEUE_STATUS = {
    "conditions": [CONDITION],
    "pendingWorkloads": 1,
    "reservingWorkloads": 2,
    "admittedWorkloads": 3,
    "flavorsReservation": _USAGE,
    "flavorsUsage": _USAGE,
    "fairSharing": {
        "weightedShare": 5,
        "admissionFairSharingStatus": {
            "consumedResources": {"cpu": "3"},
            "lastUpdate": "2026-01-01T00:00:00Z",
        },
    },
}

_DEVICE_SELECTORS = [{"cel": {"expression": "true"}}]
_OPAQUE = {"driver": "d", "parameters": {"a": [1, None, {"b": None}]}}
_COUNTERS = {"memory": {"value": "1Gi"}}
_REQUEST = {
    "deviceClassName": "gpu",
    "selectors": _DEVICE_SELECTORS,
    "allocationMode": "All",
    "count": 2,
    "tolerations": [TOLERATION],
    "capacity": {"requests": {"memory": "1Gi"}},
}
_DEVICE_CLAIM = {
    "requests": [
        {"name": "r", "exactly": {**_REQUEST, "adminAccess": True}, "firstAvailable": [{"name": "s", **_REQUEST}]}
    ],
    "constraints": [{"requests": ["r"], "matchAttribute": "a", "distinctAttribute": "b"}],
    "config": [{"requests": ["r"], "opaque": _OPAQUE}],
}
_DEVICE = {
    "name": "gpu-0",
    "attributes": {"any": {"int": 1, "bool": True, "string": "s", "version": "1.0.0"}},
    "capacity": {
        "memory": {
            "value": "8Gi",
            "requestPolicy": {
                "default": "1Gi",
                "validValues": ["1Gi", "2Gi"],
                "validRange": {"min": "1Gi", "max": "4Gi", "step": "1Gi"},
            },
        }
    },
    "consumesCounters": [{"counterSet": "set", "counters": _COUNTERS}],
    "nodeName": "n",
    "nodeSelector": NODE_SELECTOR,
    "allNodes": True,
    "taints": [TAINT],
    "bindsToNode": True,
    "bindingConditions": ["Ready"],
    "bindingFailureConditions": ["Broken"],
    "allowMultipleAllocations": True,
}
_ALLOCATED = {"driver": "d", "pool": "p", "device": "gpu-0", "shareID": "s"}

DOCUMENTS: dict[str, dict[str, Any]] = {
    "pods": {"spec": POD_SPEC, "status": POD_STATUS},
    "nodes": {
        "spec": {"unschedulable": True, "taints": [TAINT], "providerID": "cloud://1"},
        "status": {
            "capacity": {"cpu": "4"},
            "allocatable": {"cpu": "3900m", "pods": 110},
            "images": [{"names": ["web:1"], "sizeBytes": 5}],
            "conditions": [CONDITION],
            "declaredFeatures": ["A"],
        },
    },
    "namespaces": {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}},
    "limitranges": {
        "spec": {
            "limits": [
                {
                    "type": "Container",
                    "max": {"cpu": "4"},
                    "min": {"cpu": "10m"},
                    "default": {"cpu": "2"},
                    "defaultRequest": {"cpu": "1"},
                    "maxLimitRequestRatio": {"cpu": "4"},
                }
            ]
        }
    },
    "services": {"spec": {"selector": {"app": "web"}, "type": "NodePort"}},
    "replicationcontrollers": {"spec": {"replicas": 2, "selector": {"app": "web"}}, "status": _REPLICAS},
    "replicasets": {"spec": {"replicas": 2, "selector": SELECTOR, "template": TEMPLATE}, "status": _REPLICAS},
    "statefulsets": {
        "spec": {
            "replicas": 2,
            "selector": SELECTOR,
            "serviceName": "s",
            "podManagementPolicy": "Parallel",
            "template": TEMPLATE,
        },
        "status": _REPLICAS,
    },
    "deployments": {
        "spec": {"replicas": 2, "selector": SELECTOR, "paused": True, "template": TEMPLATE},
        "status": _REPLICAS,
    },
    "jobs": {
        "spec": {
            "parallelism": 2,
            "completions": 3,
            "completionMode": "Indexed",
            "backoffLimit": 4,
            "activeDeadlineSeconds": 5,
            "suspend": True,
            "managedBy": "kueue",
            "selector": SELECTOR,
            "template": TEMPLATE,
        },
        "status": {
            "active": 1,
            "ready": 1,
            "terminating": 1,
            "succeeded": 2,
            "failed": 3,
            "startTime": "2026-01-01T00:00:00Z",
            "completionTime": "2026-01-01T00:01:00Z",
            "uncountedTerminatedPods": {"succeeded": ["u1"], "failed": ["u2"]},
            "conditions": [CONDITION],
        },
    },
    "podgroups": {
        "spec": {
            "parentCompositePodGroupName": "parent",
            "schedulingPolicy": {"basic": {}, "gang": {"minCount": 3}},
            "schedulingConstraints": {"topology": [{"key": "rack"}]},
            "disruptionMode": {"single": {}, "all": {}},
            "resourceClaims": [{"name": "card", "resourceClaimName": "c", "resourceClaimTemplateName": "t"}],
            "priorityClassName": "high",
            "priority": 7,
            "preemptionPolicy": "Never",
        },
        "status": {
            "conditions": [
                {
                    "type": "PodGroupInitiallyScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "m",
                    "observedGeneration": 2,
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ]
        },
    },
    "poddisruptionbudgets": {
        "spec": {
            "minAvailable": "50%",
            "maxUnavailable": 1,
            "selector": SELECTOR,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
        "status": {
            "disruptionsAllowed": 1,
            "currentHealthy": 2,
            "desiredHealthy": 3,
            "expectedPods": 4,
            "observedGeneration": 5,
            "disruptedPods": {"p": "2026-01-01T00:00:00Z"},
            "conditions": [CONDITION],
        },
    },
    "priorityclasses": {"value": 5, "globalDefault": True, "description": "d", "preemptionPolicy": "Never"},
    "runtimeclasses": {"overhead": {"podFixed": {"cpu": "100m"}}},
    "leases": {
        "spec": {
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:01.000000Z",
            "leaseTransitions": 2,
            "strategy": "OldestEmulationVersion",
            "preferredHolder": "you",
        }
    },
    "events": {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"},
        "reportingController": "pilotage",
        "reportingInstance": "pilotage-1",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": OBJECT_REFERENCE,
        "related": OBJECT_REFERENCE,
        "note": "done",
        "type": "Normal",
    },
    "persistentvolumes": {"spec": VOLUME_SPEC, "status": {"phase": "Bound", "reason": "r", "message": "m"}},
    "persistentvolumeclaims": {
        "spec": CLAIM_SPEC,
        "status": {
            "phase": "Bound",
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "conditions": [CONDITION],
            "currentVolumeAttributesClassName": "gold",
        },
    },
    "storageclasses": {
        "provisioner": "d",
        "parameters": {"a": "b"},
        "reclaimPolicy": "Delete",
        "mountOptions": ["ro"],
        "allowVolumeExpansion": True,
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
    },
    "csinodes": {
        "spec": {"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": ["zone"], "allocatable": {"count": 5}}]}
    },
    "csidrivers": {
        "spec": {
            "attachRequired": True,
            "storageCapacity": True,
            "preventPodSchedulingIfMissing": True,
            "volumeLifecycleModes": ["Ephemeral"],
        }
    },
    "csistoragecapacities": {
        "nodeTopology": SELECTOR,
        "storageClassName": "fast",
        "capacity": "1Gi",
        "maximumVolumeSize": "512Mi",
    },
    "volumeattachments": {
        "spec": {
            "attacher": "d",
            "nodeName": "n",
            "source": {"persistentVolumeName": "pv", "inlineVolumeSpec": VOLUME_SPEC},
        },
        "status": {"attached": True},
    },
    "resourceclaims": {
        "spec": {"devices": _DEVICE_CLAIM},
        "status": {
            "allocation": {
                "devices": {
                    "results": [
                        {
                            "request": "r",
                            **_ALLOCATED,
                            "adminAccess": True,
                            "tolerations": [TOLERATION],
                            "bindingConditions": ["Ready"],
                            "bindingFailureConditions": ["Broken"],
                            "consumedCapacity": {"memory": "1Gi"},
                        }
                    ],
                    "config": [{"source": "FromClaim", "requests": ["r"], "opaque": _OPAQUE}],
                },
                "nodeSelector": NODE_SELECTOR,
                "allocationTimestamp": "2026-01-01T00:00:00Z",
            },
            "reservedFor": [{"apiGroup": "g", "resource": "pods", "name": "p", "uid": "1"}],
            "devices": [{**_ALLOCATED, "conditions": [CONDITION], "data": {"a": None}, "networkData": {"b": 1}}],
        },
    },
    "resourceclaimtemplates": {"spec": {"metadata": {"labels": {"a": "b"}}, "spec": {"devices": _DEVICE_CLAIM}}},
    "resourceslices": {
        "spec": {
            "driver": "d",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 2},
            "nodeName": "n",
            "nodeSelector": NODE_SELECTOR,
            "allNodes": True,
            "perDeviceNodeSelection": True,
            "devices": [_DEVICE],
            "sharedCounters": [{"name": "set", "counters": _COUNTERS}],
        }
    },
    "deviceclasses": {
        "spec": {
            "selectors": _DEVICE_SELECTORS,
            "config": [{"opaque": _OPAQUE}],
            "extendedResourceName": "example.com/gpu",
        }
    },
    "devicetaintrules": {
        "spec": {"deviceSelector": {"driver": "d", "pool": "p", "device": "gpu-0"}, "taint": TAINT},
    },
    "workloads": {
        "spec": {
            "podSets": [
                {
                    "name": "workers",
                    "template": TEMPLATE,
                    "count": 3,
                    "minCount": 2,
                    "topologyRequest": {"required": "rack", "preferred": "block"},
                }
            ],
            "queueName": "lq",
            "priorityClassRef": {"group": "g", "kind": "K", "name": "n"},
            "priority": 5,
            "active": False,
            "maximumExecutionTimeSeconds": 60,
        },
        "status": {
            "conditions": [CONDITION],
            "admission": {
                "clusterQueue": "cq",
                "podSetAssignments": [
                    {
                        "name": "workers",
                        "flavors": {"cpu": "std"},
                        "resourceUsage": {"cpu": "3"},
                        "count": 3,
                        "topologyAssignment": {
                            "levels": ["rack"],
                            "slices": [
                                {
                                    "domainCount": 1,
                                    "valuesPerLevel": [{"universal": "a"}],
                                    "podCounts": {"universal": 3},
                                }
                            ],
                        },
                    }
                ],
            },
            "requeueState": {"count": 1, "requeueAt": "2026-01-01T00:00:00Z"},
            "schedulingStats": {"evictions": [{"reason": "r", "underlyingCause": "c", "count": 2}]},
            "reclaimablePods": [{"name": "workers", "count": 1}],
            "admissionChecks": [
                {
                    "name": "check",
                    "state": "Ready",
                    "message": "m",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                    "requeueAfterSeconds": 5,
                    "retryCount": 1,
                    "podSetUpdates": [
                        {
                            "name": "workers",
                            "labels": {"a": "b"},
                            "annotations": {"c": "d"},
                            "nodeSelector": {"e": "f"},
                            "tolerations": [TOLERATION],
                        }
                    ],
                }
            ],
            "resourceRequests": [{"name": "workers", "resources": {"cpu": "3"}}],
            "accumulatedPastExecutionTimeSeconds": 9,
        },
    },
    "localqueues": {
        "spec": {"clusterQueue": "cq", "stopPolicy": "Hold", "fairSharing": {"weight": "2"}},
        "status": _QUEUE_STATUS,
    },
    "clusterqueues": {
        "spec": {
            "resourceGroups": _GROUPS,
            "cohortName": "ring",
            "queueingStrategy": "StrictFIFO",
            "namespaceSelector": SELECTOR,
            "flavorFungibility": {
                "whenCanBorrow": "TryNextFlavor",
                "whenCanPreempt": "MayStopSearch",
                "preference": "BorrowingOverPreemption",
            },
            "preemption": {
                "withinClusterQueue": "LowerPriority",
                "reclaimWithinCohort": "Any",
                "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 100},
            },
            "admissionChecksStrategy": {"admissionChecks": [{"name": "check", "onFlavors": ["std"]}]},
            "stopPolicy": "HoldAndDrain",
            "fairSharing": {"weight": "2"},
            "admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
        },
        "status": _QUEUE_STATUS,
    },
    "cohorts": {
        "spec": {"parentName": "root", "resourceGroups": _GROUPS, "fairSharing": {"weight": 1}},
        "status": {
            "fairSharing": {
                "weightedShare": 5,
                "admissionFairSharingStatus": {
                    "consumedResources": {"cpu": "3"},
                    "lastUpdate": "2026-01-01T00:00:00Z",
                },
            }
        },
    },
    "resourceflavors": {"spec": {"nodeLabels": {"pool": "p"}, "nodeTaints": [TAINT], "tolerations": [TOLERATION]}},
    "workloadpriorityclasses": {"value": 5, "description": "d"},
    "admissionchecks": {
        "spec": {"controllerName": "c", "parameters": REFERENCE},
        "status": {"conditions": [CONDITION]},
    },
}
