"""What a terminal shows while a job runs, and what the program prints beside it."""

from __future__ import annotations

import doctest
import io
import re
import sys
from typing import Any

import pytest

from rayflink.common.metrics import live_table
from rayflink.common.metrics.live_table import Progress
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment


class Screen(io.StringIO):
    """A terminal: what is written moves its cursor, erases, and stands on its lines."""

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.row, self.column = [""], 0, 0

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        super().write(text)
        for part in re.findall(r"\x1b\[\d*[A-Z]|[\r\n]|[^\x1b\r\n]+", text):
            if part == "\n":
                self.row, self.column = self.row + 1, 0
                self.rows += [""] * (self.row + 1 - len(self.rows))
            elif part == "\r":
                self.column = 0
            elif part.endswith("A") and part[0] == "\x1b":
                self.row -= int(part[2:-1])
            elif part == "\x1b[J":
                del self.rows[self.row + 1 :]
                self.rows[self.row] = self.rows[self.row][: self.column]
            else:
                line = self.rows[self.row].ljust(self.column)
                self.rows[self.row] = line[: self.column] + part + line[self.column + len(part) :]
                self.column += len(part)
        return len(text)


def vertex(received: int, seen: int | None = 0, name: str = "Map", **metrics: Any) -> dict[str, Any]:
    operator = {"name": name, "numRecordsOut": 0, "currentInputWatermark": seen, "metrics": {}}
    subtask = {"subtask": 0, "state": "RUNNING", "metrics": {"operators": [operator], **metrics}}
    return {"id": name, "name": name, "parallelism": 1, "numRecordsIn": received, "subtasks": [subtask]}


def status(*vertices: dict[str, Any]) -> dict[str, Any]:
    return {"state": "RUNNING", "name": "words", "vertices": list(vertices)}


def terminal(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Standard output and error on one terminal, from now to the end of the test."""
    shown = Screen()
    monkeypatch.setattr(sys, "stdout", shown)
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    return shown


def test_elsewhere_a_line_follows_the_other_with_the_rate_since_the_last_look() -> None:
    seconds = iter([0.0, 1.0, 3.0])
    stream = io.StringIO()
    show = Progress(stream, clock=lambda: next(seconds))
    show(status(vertex(1_500)))
    show(status(vertex(2_500)))
    show.close()
    assert stream.getvalue().splitlines() == [
        "  1.0 s  RUNNING  Map 1,500/s to 1970-01-01 00:00:00",
        "  3.0 s  RUNNING  Map 500/s to 1970-01-01 00:00:00",
    ]


def test_a_terminal_shows_one_table_of_rate_lag_and_load_by_vertex(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    seconds = iter([0.0, 1.0, 3.0])
    show = Progress(clock=lambda: next(seconds), now_ms=lambda: 62_500)
    load = {"busyTimeMsPerSecond": 870, "backPressuredTimeMsPerSecond": 40}
    show(status(vertex(1_500, seen=None, **load)))
    show(status(vertex(2_500, seen=60_000, **load), vertex(0, name="Out")))
    show.close()
    assert [row.split() for row in screen.rows] == [
        ["3.0", "s", "RUNNING", "words"],
        ["vertex", "subtasks", "records", "in", "records/s", "lag", "busy", "back-pressure"],
        ["------", "--------", "----------", "---------", "-------", "----", "-------------"],
        ["Map", "1", "2,500", "500", "2.5", "s", "87", "%", "4", "%"],
        ["Out", "1", "0", "0", "1.0", "min", "-", "-"],
        [],
    ]


def test_the_split_that_holds_back_the_watermark_stands_below_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    show = Progress(clock=iter([0.0, 1.0]).__next__)
    source = vertex(9, name="in")
    marks = {f"split.{name}.watermark.currentWatermark": at for name, at in (("a.txt", 1_000), ("b.txt", 31_000))}
    source["subtasks"][0]["metrics"]["operators"][0]["metrics"] = marks
    show(status(source))
    show.close()
    told = "watermark held back by split 'a.txt' of 'in' (subtask 0) at 1970-01-01 00:00:01, 30.0 s behind the others"
    assert screen.rows[-2].rstrip() == told[:79]


def test_the_busiest_running_subtask_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    loads = [("RUNNING", 300), ("RUNNING", 600), ("FINISHED", 1000)]
    subtasks = [{"state": state, "metrics": {"busyTimeMsPerSecond": busy}} for state, busy in loads]
    Progress()(status({**vertex(0), "subtasks": subtasks}))
    assert screen.rows[3].split()[-3:] == ["60", "%", "-"]


def test_what_the_program_prints_stands_above_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    show = Progress(clock=lambda: 0.0)
    show(status(vertex(1)))
    print("first")
    print("second", file=sys.stderr)
    assert screen.rows == ["first", "second", ""]
    show(status(vertex(2)))
    assert screen.rows[:2] == ["first", "second"] and screen.rows[2].endswith("RUNNING  words")
    print("a question? ", end="", flush=True)
    show(status(vertex(3)))
    assert screen.rows == ["first", "second", "a question? "], "a line that has been begun is not written over"
    print("an answer")
    show(status(vertex(4)))
    show.close(erase=True)
    assert screen.rows == ["first", "second", "a question? an answer", ""]
    assert sys.stdout is screen and sys.stderr is screen


def test_an_output_that_is_no_terminal_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    file = io.StringIO()
    monkeypatch.setattr(sys, "stdout", file)
    show = Progress(clock=lambda: 0.0)
    show(status(vertex(1)))
    print("result")
    assert sys.stdout is file and file.getvalue() == "result\n"
    assert screen.rows[0].endswith("RUNNING  words")
    show.close()


def test_a_table_longer_than_the_terminal_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    show = Progress(clock=lambda: 0.0)
    show(status(*(vertex(0, name=f"Map {number} with a name that is much longer") for number in range(40))))
    show.close()
    assert len(screen.rows) <= 24 and screen.rows[-2] == "... and 21 vertices more"
    assert max(map(len, screen.rows)) < 80
    shown = sum(row.startswith("Map ") for row in screen.rows)
    assert shown + 21 == 40


@pytest.mark.parametrize("term", ["dumb", "xterm"])
def test_a_terminal_that_cannot_erase_gets_lines(monkeypatch: pytest.MonkeyPatch, term: str) -> None:
    screen = terminal(monkeypatch)
    monkeypatch.setenv("TERM", term)
    Progress(clock=lambda: 0.0)(status(vertex(1)))
    assert len(screen.getvalue().splitlines()) == (1 if term == "dumb" else 4)


@pytest.mark.slow
@pytest.mark.parametrize("shown", ["true", "false"])
def test_whoever_waits_for_a_job_on_a_terminal_sees_how_it_gets_on(monkeypatch: pytest.MonkeyPatch, shown: str) -> None:
    screen = terminal(monkeypatch)
    env = StreamExecutionEnvironment({"execution.target": "local", "rayflink.terminal.progress": shown})
    numbers = env.from_source(DataGeneratorSource(count=200, records_per_second=150), None, "Numbers")
    numbers.filter(lambda value: value == 0).print()
    env.execute("words")
    assert ("records/s" in screen.getvalue()) is (shown == "true")
    assert screen.rows == ["0", ""], "the table is gone, what was printed is there"


def test_the_examples_of_the_docstrings_run() -> None:
    assert doctest.testmod(live_table).failed == 0
