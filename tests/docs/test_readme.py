"""The README shows every command, and a plugin that is one."""

from __future__ import annotations

import re
from pathlib import Path

import click

from pilotage.cli.main import cli
from pilotage.framework.plugin_files import load_plugin_file
from pilotage.testing import check_plugin
from tests.docs.pages import ROOT, page

README = page(ROOT / "README.md")


def test_every_command_is_in_the_table_and_leads_to_its_page() -> None:
    shown = dict(re.findall(r"\[`pilotage (\w+)`\]\(docs/commands/(\w+)\.md\)", README.text))
    assert sorted(shown) == sorted(cli.list_commands(click.Context(cli)))
    assert all(name == linked for name, linked in shown.items())


def test_the_plugin_is_one(tmp_path: Path) -> None:
    [source] = re.findall(r"```python\n(.*?)```", README.text, flags=re.DOTALL)
    file = tmp_path / "sunny_nodes.py"
    file.write_text(source)
    [plugin] = load_plugin_file(file)
    assert plugin.plugin_name() == "SunnyNodes"
    check_plugin(plugin)


def test_no_sentence_stands_twice() -> None:
    sentences = [" ".join(one.split()) for one in re.split(r"(?<=[.:;])\s", README.prose)]
    long = [one for one in sentences if len(one) > 25]
    assert len(long) == len(set(long))
