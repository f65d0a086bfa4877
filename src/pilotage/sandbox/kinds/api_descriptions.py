"""What `kubectl explain` says about the kinds and fields that scheduling is about, in our own words.

The rest of the API is described by names and types only; its full documentation is that of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

KINDS: Final[Mapping[str, str]] = {
    "v1.Pod": "One or more containers that are placed on a node together. In the sandbox they are simulated.",
    "v1.Node": "A machine that pods are placed on: what it has, how it is labelled, and what keeps pods away.",
    "v1.Namespace": "A scope for names. Deleting it deletes everything in it.",
    "v1.Deployment": "Keeps a number of equal pods running and replaces them step by step when the template changes.",
    "v1.ReplicaSet": "Keeps a number of equal pods running.",
    "v1.Job": "Runs pods until enough of them have succeeded.",
    "v1.PriorityClass": "A name for a pod priority; a pod of higher priority may take the place of others.",
    "v1.PodDisruptionBudget": "How many of the selected pods may be evicted at a time.",
    "v1.PersistentVolumeClaim": "A request for storage, fulfilled by a persistent volume.",
    "v1.PersistentVolume": "A piece of storage that a claim can be bound to.",
    "v1.StorageClass": "A kind of storage, and how volumes of it come into being.",
    "resource.v1.ResourceClaim": "A request for devices, fulfilled when the pod that uses it is scheduled.",
    "v1.ResourceSlice": "Devices that a driver offers on a node or in a pool.",
    "v1.DeviceClass": "A kind of device, given by expressions over the attributes of devices.",
    "v1beta1.PodGroup": "Pods that are scheduled together; they name it in spec.schedulingGroup.podGroupName.",
    "v1beta1.Workload": "Templates of PodGroups. The scheduler reads the PodGroups that are made from them, not this.",
    "v1.Lease": "A record that one holder renews, such as the leader among several schedulers.",
    "v1.CustomResourceDefinition": "Makes the server serve a new kind.",
}

COMMON: Final[Mapping[str, str]] = {
    "apiVersion": "APIVersion defines in which version of its group the object is written.",
    "kind": "The kind of the object.",
    "metadata": "Standard object's metadata: name, labels, owners and all else that every object has.",
    "spec": "What is wished for.",
    "status": "The observed state of the object.",
}
"""Fields of every kind."""

_GROUP: Final[Mapping[str, str]] = {
    "disruptionMode": "Whether pods of the group are preempted one by one (the default) or all together.",
    "preemptionPolicy": "Whether the group may take the place of pods of lower priority.",
    "priority": "Higher goes first, and may preempt lower. Set from the class; pods must have the same.",
    "priorityClassName": "The PriorityClass that gives the group its priority.",
    "resourceClaims": "Devices that the pods share; each pod asks for them with an equal entry of its own.",
    "schedulingConstraints": "Where the pods have to be, together.",
    "schedulingPolicy": "Gang or basic, chosen for ever; of a gang, minCount may change.",
}

FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    "v1.PodSpec": {
        "affinity": "Which nodes the pod wants or needs, by their labels or by the pods that run there.",
        "containers": "What the pod runs; their requests decide where it fits.",
        "initContainers": "What runs, one after the other, before the containers; those that restart always stay.",
        "nodeName": "The node that the pod is bound to; empty while the pod waits to be scheduled.",
        "nodeSelector": "Labels that a node must have.",
        "overhead": "What running the pod costs beyond the requests of its containers.",
        "preemptionPolicy": "Whether the pod may take the place of pods of lower priority.",
        "priority": "Higher goes first, and may preempt lower. Set from the priority class.",
        "priorityClassName": "The PriorityClass that gives the pod its priority.",
        "resourceClaims": "Devices that the pod needs.",
        "schedulerName": "The scheduler, or the profile of one, that is to place the pod.",
        "schedulingGates": "While there is any, the pod is not considered for scheduling.",
        "schedulingGroup": "The PodGroup with which the pod is scheduled.",
        "terminationGracePeriodSeconds": "How long the pod may take to end after its deletion.",
        "tolerations": "Taints of nodes that do not keep this pod away.",
        "topologySpreadConstraints": "How evenly the pod and its like are to be spread over zones, nodes or others.",
        "volumes": "Storage that the containers can mount; where it is decides where the pod can run.",
    },
    "v1.PodStatus": {
        "conditions": "What is true of the pod by now; PodScheduled says why it waits.",
        "nominatedNodeName": "The node on which room was made for the pod by preemption.",
        "phase": "Pending, Running, Succeeded, Failed or Unknown.",
    },
    "v1.ResourceRequirements": {
        "claims": "Which of the pod's resource claims the container uses.",
        "limits": "The most that the container may use; stands for the request where there is none.",
        "requests": "What the container is sure to get; the scheduler counts with it.",
    },
    "v1.Toleration": {
        "effect": "The effect that is tolerated; empty tolerates all.",
        "key": "The key of the taint; empty, with operator Exists, tolerates every taint.",
        "operator": "Equal compares key and value, Exists the key alone.",
        "tolerationSeconds": "How long a NoExecute taint is tolerated; absent means for ever.",
        "value": "The value of the taint.",
    },
    "v1.TopologySpreadConstraint": {
        "labelSelector": "Which pods are counted.",
        "maxSkew": "By how many pods a domain may be ahead of the emptiest one.",
        "minDomains": "With fewer domains than this, the emptiest counts as having no pods.",
        "topologyKey": "The node label whose values are the domains.",
        "whenUnsatisfiable": "DoNotSchedule lets the pod wait, ScheduleAnyway prefers better nodes.",
    },
    "v1.NodeSpec": {
        "podCIDR": "The range from which pods of the node get their addresses.",
        "taints": "Keep away pods that do not tolerate them.",
        "unschedulable": "No new pods; what kubectl cordon sets.",
    },
    "v1.NodeStatus": {
        "allocatable": "What pods can be given: capacity without what the system needs.",
        "capacity": "What the node has.",
        "conditions": "How the node is; Ready says whether it can run pods.",
        "images": "Container images that the node has already.",
    },
    "v1.PodDisruptionBudgetSpec": {
        "maxUnavailable": "How many of the pods may be missing, as a number or a percentage.",
        "minAvailable": "How many of the pods must stay, as a number or a percentage.",
        "selector": "The pods that the budget is about.",
        "unhealthyPodEvictionPolicy": "Whether pods that are not ready may always be evicted.",
    },
    "v1beta1.PodGroupSpec": {
        **_GROUP,
        "parentCompositePodGroupName": "Groups of groups: not served here, ignored with a warning.",
        "workloadRef": "The template that the group was made from.",
    },
    "v1beta1.PodGroupTemplate": {**_GROUP, "name": "Unique among the templates of the Workload."},
    "v1beta1.PodGroupSchedulingPolicy": {
        "basic": "Pods are placed as many as fit, as if there were no group.",
        "gang": "All or nothing: none is bound unless enough of them have a place at the same time.",
    },
    "v1beta1.GangSchedulingPolicy": {
        "minCount": "How many pods have to have a place for any to be bound; running ones count.",
    },
    "v1beta1.DisruptionMode": {
        "all": "A preemption of one pod of the group preempts all.",
        "single": "Each pod may be preempted by itself.",
    },
    "v1beta1.TopologyConstraint": {"key": "The node label of which all nodes of the group have the same value."},
    "v1beta1.WorkloadReference": {
        "templateName": "The template that the group was made from.",
        "workloadName": "The Workload that has it.",
    },
    "v1beta1.PodGroupStatus": {
        "conditions": "PodGroupInitiallyScheduled says whether the group has started, and if not, why.",
        "resourceClaimStatuses": "The claims that were made from templates for the group.",
    },
    "v1beta1.WorkloadSpec": {
        "compositePodGroupTemplates": "Groups of groups: not served here, ignored with a warning.",
        "controllerRef": "What the Workload was made for, such as a Job.",
        "podGroupTemplates": "At most eight; none can be added or removed.",
    },
    "v1.JobSchedulingConfiguration": {
        "disruptionMode": "Whether pods are preempted one by one or all together.",
        "resourceClaims": "Devices that the pods share; each pod asks for them with an equal entry of its own.",
        "schedulingConstraints": "Where the pods have to be, together.",
        "schedulingPolicy": "Gang or basic; nothing means basic. Of a gang without minCount all pods start together.",
    },
    "v1.ObjectMeta": {
        "annotations": "Notes on the object that nothing selects by.",
        "creationTimestamp": "CreationTimestamp is a timestamp of the server's: when the object was created.",
        "deletionTimestamp": "Set when the deletion has begun; the object goes when nothing holds it any more.",
        "finalizers": "Who has to do something before the object may go.",
        "generation": "Rises with every change of what is wished for.",
        "labels": "What selectors select by.",
        "name": "Unique among objects of the kind in the namespace.",
        "namespace": "The scope of the name.",
        "ownerReferences": "Objects that this one belongs to; it goes when all of them are gone.",
        "resourceVersion": "The version of the object; an update with an older one is rejected.",
        "uid": "Distinguishes this object from others that had or will have its name.",
    },
}
