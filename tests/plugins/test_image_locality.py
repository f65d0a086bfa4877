"""ImageLocality: prefer nodes that have the pod's images already."""

from __future__ import annotations

from pilotage.plugins import ImageLocality
from pilotage.plugins.image_locality import image_names
from pilotage.testing import NodeBuilder, PodBuilder, node, pod
from tests.plugins.handle import with_handle

MIB = 1024 * 1024


def having(name: str, **images: int) -> NodeBuilder:
    reported = [{"names": [f"{image}:latest"], "sizeBytes": size * MIB} for image, size in images.items()]
    return node(name).status(images=reported)


def running(*images: str) -> PodBuilder:
    return pod("p").spec(containers=[{"name": f"c{at}", "image": image} for at, image in enumerate(images)])


def test_image_counts_by_size_and_by_how_many_nodes_have_it() -> None:
    world = with_handle(ImageLocality, having("a", big=400), having("b", big=400), having("c"), having("d"))
    # 400 MiB on half of the nodes is worth 200 MiB; the line goes from 23 MiB (0) to 1000 MiB (100).
    worth = 100 * (200 - 23) // (1000 - 23)
    assert world.raw_scores(running("big")) == {"a": worth, "b": worth, "c": 0, "d": 0}


def test_images_of_a_pod_add_up_and_the_best_grows_with_their_number() -> None:
    world = with_handle(ImageLocality, having("a", x=500, y=700), having("b", x=500))
    x, y = 500, 700 // 2
    expected = 100 * (x + y - 23) // (2 * 1000 - 23)
    assert world.raw_scores(running("x", "y"))["a"] == expected
    assert world.raw_scores(running("x", "y"))["b"] == 100 * (x - 23) // (2 * 1000 - 23)


def test_of_an_image_that_a_node_reports_twice_the_first_counts() -> None:
    twice = [{"names": ["big:latest"], "sizeBytes": size * MIB} for size in (400, 800)]
    world = with_handle(ImageLocality, node("a").status(images=twice))
    assert world.raw_scores(running("big")) == {"a": 100 * (400 - 23) // (1000 - 23)}


def test_score_stays_within_bounds() -> None:
    world = with_handle(ImageLocality, having("small", x=5), having("huge", y=5000))
    assert world.raw_scores(running("x")) == {"small": 0, "huge": 0}
    assert world.raw_scores(running("y")) == {"small": 0, "huge": 100}


def test_image_name_without_tag_means_latest() -> None:
    spec = running("app", "host:5000/app", "host:5000/app:v1", "app@sha256:12").build().spec
    assert image_names(spec) == ("app:latest", "host:5000/app:latest", "host:5000/app:v1", "app@sha256:12")


def test_version_of_the_facts_changes_with_the_images_and_only_then() -> None:
    world = with_handle(ImageLocality, having("a", x=100))
    before = world.plugin.facts_version()
    world.cluster.put_node(having("a", x=100).label("l", "1").build())
    assert world.plugin.facts_version() == before
    world.cluster.put_node(having("a", x=100, y=900).build())
    assert world.plugin.facts_version() != before
    assert world.raw_scores(running("y"))["a"] == 100 * (900 - 23) // (1000 - 23)


def test_image_is_forgotten_with_the_last_node_that_had_it() -> None:
    world = with_handle(ImageLocality, having("a", x=500), having("b"))
    assert world.raw_scores(running("x"))["a"] > 0
    world.cluster.remove_node("a")
    world.cluster.put_node(having("a").build())
    assert world.raw_scores(running("x")) == {"a": 0, "b": 0}
