"""Lists of prices, good and bad."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.lab.lives import NodeStory
from pilotage.lab.prices import PriceError, Prices, read_prices


def priced(folder: Path, text: str) -> Prices:
    file = folder / "prices.yaml"
    file.write_text(text)
    return read_prices(file)


def test_a_price_by_label(tmp_path: Path) -> None:
    prices = priced(tmp_path, "currency: EUR\nperHour: {large: 0.5, free: 0}\n")
    kind = "node.kubernetes.io/instance-type"
    found = [prices.of(NodeStory("n", 0, labels={kind: name})) for name in ("large", "free", "other")]
    assert found == [0.5, 0, None] and prices.of(NodeStory("n", 0)) is None


def test_another_label_and_a_default(tmp_path: Path) -> None:
    prices = priced(tmp_path, "label: pool\nperHour: {a: 1}\ndefault: 2.5\n")
    assert (prices.of(NodeStory("n", 0, labels={"pool": "a"})), prices.of(NodeStory("n", 0))) == (1, 2.5)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no list of prices"),
        ("- 1", "no list of prices"),
        ("perHour: {a: cheap}", r"\$\.perHour\[\.\.\.\]"),
        ("perHour: {a: -1}", "a: -1 is no price"),
        ("perHour: {a: .nan}", "perHour.a: .nan"),
        ("perHour: {}\ndefault: -2", "default: -2 is no price"),
        ("perHours: {a: 1}", "perHour"),
        ("perHour: {a: 1}\nlable: x", "lable"),
        ("perHour: [", "is no valid YAML"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(PriceError, match=problem) as error:
        priced(tmp_path, text)
    assert "prices.yaml: " in str(error.value) and "\n" not in str(error.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(PriceError, match="cannot be read"):
        read_prices(tmp_path / "none")
