"""Kubernetes objects as typed structs decoded straight from JSON bytes; quantities and selectors. No I/O.

Objects are immutable. Unknown fields are ignored; only what scheduling reads is kept.
"""

from pilotage.model.errors import DecodeError
from pilotage.model.kinds import KINDS, Bookmark, KindInfo, ListPage, StatusError, WatchEvent, kind_of
from pilotage.model.meta import Condition, ObjectMeta, OwnerReference
from pilotage.model.node import Node, NodeSpec, NodeStatus, Taint
from pilotage.model.pod import Pod, PodSpec, PodStatus, decode_pod, shared_spec
from pilotage.model.pod_resources import non_zero_requests, pod_limits, pod_requests
from pilotage.model.quantity import QuantityError, format_quantity, parse_quantity, quantity_milli, quantity_value
from pilotage.model.selectors import (
    FieldRequirement,
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
)

__all__ = [
    "KINDS",
    "Bookmark",
    "Condition",
    "DecodeError",
    "FieldRequirement",
    "KindInfo",
    "LabelSelector",
    "ListPage",
    "Node",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "NodeSpec",
    "NodeStatus",
    "ObjectMeta",
    "OwnerReference",
    "Pod",
    "PodSpec",
    "PodStatus",
    "QuantityError",
    "SelectorError",
    "StatusError",
    "Taint",
    "WatchEvent",
    "decode_pod",
    "format_quantity",
    "kind_of",
    "non_zero_requests",
    "parse_field_selector",
    "parse_label_selector",
    "parse_quantity",
    "pod_limits",
    "pod_requests",
    "quantity_milli",
    "quantity_value",
    "shared_spec",
]
