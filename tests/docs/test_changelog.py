"""The changelog is put together from fragments; those of the project are such that it can be."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import changelog

from tests.docs.pages import ROOT


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "changes").mkdir()
    return tmp_path


def _write(root: Path, **texts: str) -> None:
    for name, text in texts.items():
        number, kind = name.removeprefix("n").split("_")
        (root / "changes" / f"{number}.{kind}.md").write_text(text)


def test_the_fragments_of_the_project_can_be_put_together() -> None:
    found = changelog.fragments(ROOT / "changes")
    text = changelog.section("Unreleased", found)
    assert all(one.text.split("\n", 1)[0].replace("](../", "](") in text for one in found)


def test_entries_are_grouped_by_type_with_the_newest_first(root: Path) -> None:
    _write(
        root,
        n2_feature="- old,\n  long\n- older\n",
        n10_feature="new,\nlonger\n\nsecond\n",
        n3_removal="gone\n",
        n3_docs="[a](../docs/a.md)\n",
    )
    assert changelog.main([], root) == 0
    page = (root / "CHANGELOG.md").read_text()
    assert page.partition("## Unreleased\n\n")[2] == (
        "### Removed\n\n- gone\n\n"
        "### Added and changed\n\n- new,\n  longer\n- second\n- old,\n  long\n- older\n\n"
        "### Documentation\n\n- [a](docs/a.md)\n"
    )


def test_putting_together_twice_changes_nothing_and_check_says_what_is_old(root: Path) -> None:
    _write(root, n1_fix="mended\n")
    changelog.main([], root)
    first = (root / "CHANGELOG.md").read_text()
    assert changelog.main(["--check"], root) == 0
    changelog.main([], root)
    assert (root / "CHANGELOG.md").read_text() == first
    _write(root, n2_fix="more\n")
    assert changelog.main(["--check"], root) == 1


def test_a_release_takes_the_fragments_and_stays_when_others_come(root: Path) -> None:
    _write(root, n1_fix="mended\n")
    changelog.main(["0.2.0"], root)
    assert list((root / "changes").iterdir()) == []
    _write(root, n2_feature="later\n")
    changelog.main([], root)
    page = (root / "CHANGELOG.md").read_text()
    assert page.index("## Unreleased") < page.index("- later") < page.index("## 0.2.0 (") < page.index("- mended")
    changelog.main(["0.3.0"], root)
    assert [line[:8] for line in (root / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")] == [
        "## 0.3.0",
        "## 0.2.0",
    ]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (
            "1.feat.md",
            "x",
            "changes/1.feat.md: call it NUMBER.TYPE.md with one of the types removal, feature, fix, docs",
        ),
        ("new.feature.md", "x", "changes/new.feature.md: call it NUMBER.TYPE.md"),
        ("1.fix.md", " \n", "changes/1.fix.md: is empty"),
    ],
)
def test_a_bad_fragment_is_named(
    name: str, text: str, problem: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "changes" / name).write_text(text)
    assert changelog.main([], root) == 2
    assert problem in capsys.readouterr().err and not (root / "CHANGELOG.md").exists()
