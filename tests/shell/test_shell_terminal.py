"""The SQL shell in a real terminal, as a user sees it: its screen is compared."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pexpect = pytest.importorskip("pexpect")
pyte = pytest.importorskip("pyte")

pytestmark = pytest.mark.slow
WIDTH, HEIGHT = 100, 24
PATIENCE_S = 90


class Screen:
    """A shell in a terminal of 100 by 24 characters."""

    def __init__(self, home: Path) -> None:
        environment = {**os.environ, "XDG_STATE_HOME": str(home), "TERM": "xterm", "PAGER": "cat", "NO_COLOR": "1"}
        command = ["-m", "rayflink", "sql", "--local"]
        self.child = pexpect.spawn(
            sys.executable, command, env=environment, dimensions=(HEIGHT, WIDTH), encoding="utf-8", timeout=60
        )
        self._screen = pyte.Screen(WIDTH, HEIGHT)
        self._stream = pyte.Stream(self._screen)
        # prompt_toolkit asks where the cursor is, and draws when that is answered
        self.child.delaybeforesend = None

    def show(self, pattern: str) -> list[str]:
        """Wait until the screen shows a pattern, and return its lines."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            try:
                text = self.child.read_nonblocking(4096, timeout=0.1)
            except pexpect.TIMEOUT:
                text = ""
            except pexpect.EOF:
                break
            self._stream.feed(text)
            if "\x1b[6n" in text:
                self.child.send(f"\x1b[{self._screen.cursor.y + 1};{self._screen.cursor.x + 1}R")
            lines = [line.rstrip() for line in self._screen.display]
            if re.search(pattern, "\n".join(lines)):
                return lines
        raise AssertionError(f"no {pattern!r} in\n" + "\n".join(self._screen.display))

    def type(self, text: str) -> None:
        self.child.send(text)


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Screen]:
    shown = Screen(tmp_path)
    yield shown
    shown.child.close(force=True)


def test_a_user_types_a_query_and_reads_its_rows(screen: Screen):
    screen.show("rayflink>")
    assert "default_catalog.default_database | streaming | no jobs" in "\n".join(screen.show("no jobs"))
    screen.type("SELECT a, COUNT(*) AS n\rFROM (VALUES ('x'), ('y'), ('x')) AS t(a) GROUP BY a;\r")
    lines = screen.show("2 rows in set")
    begin = next(index for index, line in enumerate(lines) if line.startswith("+---+---+"))
    assert lines[begin + 1 : begin + 5] == ["| a | n |", "+---+---+", "| x | 2 |", "| y | 1 |"]
    screen.type("SELECT missing;\r")
    lines = screen.show(r"\[ERROR\]")
    assert any(line.strip() == "^^^^^^^" for line in screen.show(r"\^\^\^\^"))
    screen.type("sel\t")
    assert any(line.startswith("rayflink> select") for line in screen.show("rayflink> select"))
    screen.type("\x15quit;\r")
    screen.child.expect(pexpect.EOF)
    screen.child.wait()
    assert screen.child.exitstatus == 0


def test_ctrl_c_ends_an_endless_query_and_not_the_shell(screen: Screen):
    screen.show("rayflink>")
    screen.type("CREATE TABLE s (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '5', ")
    screen.type("'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '1000000');\r")
    screen.show("OK")
    screen.type("SELECT n FROM s;\r")
    screen.show(r"\d+ rows, \d+ changes")
    screen.show(r"\| +3 \|")
    screen.type("\x03")
    screen.show("Query canceled")
    screen.show(r"rows in set")
    screen.type("SHOW TABLES;\r")
    screen.show(r"1 row in set.*\n+rayflink>")
    screen.type("\x04")
    screen.child.expect(pexpect.EOF)
