from __future__ import annotations

import pytest

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.http.negotiation import View, view_for, wants_aggregated_discovery

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("accept", "view"),
    [
        ("", View.OBJECT),
        ("application/json", View.OBJECT),
        ("*/*", View.OBJECT),
        (f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", View.TABLE),
        (f"{PROTOBUF},application/json", View.OBJECT),
        (f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
         "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json", View.METADATA),
        ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", View.METADATA),
        ("application/json;as=Hologram;g=meta.k8s.io;v=v1,application/json", View.OBJECT),
        ("text/html, */*;q=0.8", View.OBJECT),
    ],
)  # fmt: skip
def test_the_first_form_that_can_be_given_is_given(accept: str, view: View) -> None:
    assert view_for(accept) is view


@pytest.mark.parametrize("accept", [PROTOBUF, "application/yaml", "application/json;as=Hologram;g=x;v=v1"])
def test_nothing_that_can_be_given_is_406(accept: str) -> None:
    with pytest.raises(ApiError) as refused:
        view_for(accept)
    assert refused.value.code == 406


def test_aggregated_discovery_is_given_to_those_who_ask_for_it_first() -> None:
    assert wants_aggregated_discovery(f"{AGGREGATED},application/json")
    assert not wants_aggregated_discovery("application/json")
    assert not wants_aggregated_discovery(AGGREGATED.replace("v=v2", "v=v9") + ",application/json")
