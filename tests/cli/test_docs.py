"""The commands of docs/cli.md print what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from rayflink.cli.main import main

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "cli.md"
BLOCK = re.compile(r"^```(\S+)(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(kind: str, runs_on: str = "") -> list[str]:
    """The blocks of the page of a kind; those that need a cluster say so."""
    text = PAGE.read_text(encoding="utf-8")
    return [found[3] for found in BLOCK.finditer(text) if (found[1], found[2] or "") == (kind, runs_on)]


def commands(block: str) -> list[tuple[list[str], str]]:
    """The arguments of each command of a block, and a pattern of what it prints."""
    found = []
    for part in re.split(r"^\$ rayflink ", block, flags=re.MULTILINE)[1:]:
        line, _, said = part.partition("\n")
        found.append((shlex.split(line), pattern(said)))
    return found


def pattern(said: str) -> str:
    """A line of dots stands for any lines, dots within a line for any text; runs of spaces for some."""
    whole = ""
    for line in said.splitlines():
        text = re.sub(r"(?:\\ ){2,}", r"\\ +", re.escape(line)).replace(r"\.\.\.", ".*")
        whole += r"(?:.*\n)*?" if line == "..." else f"{text}\n"
    return whole


@pytest.mark.parametrize("block", blocks("console"))
def test_a_command_prints_what_the_page_says(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    for name in ("RAYFLINK_CONF", "RAYFLINK_CONF_DIR", "RAYFLINK_OPTIONS", "RAYFLINK_COMMAND_LINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    [program] = blocks("python")
    (tmp_path / "counts.py").write_text(program, encoding="utf-8")
    [script] = blocks("sql")
    (tmp_path / "report.sql").write_text(script, encoding="utf-8")
    for arguments, wanted in commands(block):
        main(arguments)
        said = capsys.readouterr()
        assert re.fullmatch(wanted, said.out + said.err), f"rayflink {arguments} printed:\n{said.out}{said.err}"


def test_every_command_is_on_the_page(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    names = re.findall(r"^    ([a-z][\w-]*)\s", capsys.readouterr().out, re.MULTILINE)
    shown = "".join(blocks("console") + blocks("console", "cluster")) + PAGE.read_text(encoding="utf-8")
    assert len(names) >= 16
    assert [name for name in names if f"rayflink {name}" not in shown and f"- `{name}`" not in shown] == []
    jobs = {"list", "status", "cancel", "stop", "logs", "savepoint", "checkpoints", "rescale"}
    assert {"run", "explain", "sql", "sql-gateway", "cluster", "config", "version", "state"} | jobs <= set(names)
