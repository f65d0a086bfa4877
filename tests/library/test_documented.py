"""The page about the library: its examples are run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = (Path(__file__).parents[2] / "docs" / "library.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_examples_run_one_after_another() -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for example in EXAMPLES:
        exec(compile(example, "docs/library.md", "exec"), names)
    assert names["name"] == "web-3" and names["Alphabetical"].plugin_name() == "Alphabetical"


def test_the_first_question_takes_ten_lines() -> None:
    lines = [line for line in EXAMPLES[0].splitlines() if line and not line.startswith("assert")]
    assert len(lines) <= 10


def test_the_cluster_outside_of_pytest_does_what_its_page_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
    [example] = [
        text for text in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL) if "import SandboxCluster" in text
    ]
    exec(compile(example, "docs/testing.md", "exec"), {})
