"""ImageLocality: prefer nodes that have the pod's images already.

An image counts the more, the larger it is and the more nodes have it: otherwise the first node with a large image
would draw all pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping

import numpy as np

from pilotage.api import ClusterIndex, CycleState, Handle, NodeTable, NodeView, Plugin, Score, Scores, Sees, VectorScore
from pilotage.model import Node, Pod, PodSpec
from pilotage.plugins.fragments import fragment_of

_MIB = 1024 * 1024
_LEAST = 23 * _MIB
_MOST_PER_CONTAINER = 1000 * _MIB


class ImageLocality(Plugin, Score, VectorScore):
    name = "ImageLocality"
    score_sees = Sees.NODE

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        most = _MOST_PER_CONTAINER * len(image_names(pod.spec))
        worth = sum(worth for worth, nodes in self._images(state, pod, most) if node.name in nodes)
        return 100 * (min(max(worth, _LEAST), most) - _LEAST) // (most - _LEAST)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        most = _MOST_PER_CONTAINER * len(image_names(pod.spec))
        worth = np.zeros(len(nodes), dtype=np.int64)
        images = list(self._images(state, pod, most))
        if not images:
            return worth
        for image_worth, names in images:
            state.budget.spend(1 + len(names) // 8)
            worth[nodes.rows_of(frozenset(names))] += image_worth
        scores: Scores = 100 * (np.clip(worth, _LEAST, most) - _LEAST) // (most - _LEAST)
        return scores

    def _images(self, state: CycleState, pod: Pod, most: int) -> Iterator[tuple[int, set[str]]]:
        """For each of the pod's images that some node has: what it is worth (`most` is enough), and those nodes."""
        images = self._handle.index(ImageIndex)
        total = len(self._handle.nodes)
        for name, times in image_counts(pod.spec).items():
            state.budget.spend()
            known = images.find(name)
            if known is not None:
                size, nodes = known
                yield min(times * int(size * (len(nodes) / total)), most), nodes

    def sign(self, pod: Pod) -> Hashable | None:
        return fragment_of(image_names(pod.spec))

    def facts_version(self) -> Hashable:
        return self._handle.index(ImageIndex).version


class ImageIndex(ClusterIndex):
    """Images by name: their size as the first node reported it, and the nodes that have them."""

    def __init__(self) -> None:
        self._images: dict[str, tuple[int, set[str]]] = {}
        self.version = 0
        """Grows whenever the answers may have changed."""

    def find(self, name: str) -> tuple[int, set[str]] | None:
        return self._images.get(name)

    def node_put(self, old: Node | None, new: Node) -> None:
        before = _reported(old)
        after = _reported(new)
        if before == after:
            return
        self.version += 1
        for name in before.keys() - after.keys():
            self._drop(name, new.name)
        for name, size in after.items():
            self._images.setdefault(name, (size, set()))[1].add(new.name)

    def node_removed(self, node: Node) -> None:
        self.version += 1
        for name in _reported(node):
            self._drop(name, node.name)

    def _drop(self, image: str, node_name: str) -> None:
        known = self._images.get(image)
        if known is None:
            return
        known[1].discard(node_name)
        if not known[1]:
            del self._images[image]


def _reported(node: Node | None) -> dict[str, int]:
    if node is None:
        return {}
    sizes: dict[str, int] = {}
    for image in node.status.images:
        for name in image.names:
            sizes.setdefault(name, image.size_bytes)
    return sizes


def image_names(spec: PodSpec) -> tuple[str, ...]:
    """The images of a pod under their full names; one that is used twice counts twice."""
    known: tuple[str, ...] | None = spec.memo.get(image_names)
    if known is None:
        images = [container.image for container in (*spec.init_containers, *spec.containers)]
        images += [volume.image.reference for volume in spec.volumes if volume.image is not None]
        known = spec.memo[image_names] = tuple(_full_name(image) for image in images)
    return known


def image_counts(spec: PodSpec) -> Mapping[str, int]:
    """The distinct images, and how often each is used."""
    known: Counter[str] | None = spec.memo.get(image_counts)
    if known is None:
        known = spec.memo[image_counts] = Counter(image_names(spec))
    return known


def _full_name(image: str) -> str:
    """With its tag: an image without one is the latest."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
