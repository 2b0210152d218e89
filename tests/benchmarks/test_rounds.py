"""Runs take turns, and one that fails says why and stops nobody else."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks import __main__ as program
from benchmarks.runs.contestants import FlinkJvm
from benchmarks.runs.environments import Unavailable
from benchmarks.runs.rounds import RunFailed, measure, run


@dataclass(frozen=True)
class _Script:
    name: str
    code: str
    about: str = ""
    divisor: int = 1

    def command(self, cache: Path, data: Path | None) -> list[str]:
        if not self.code:
            raise Unavailable("no code")
        return [sys.executable, "-S", "-c", self.code]


def test_contestants_take_turns_and_a_failure_sits_out_the_rest(tmp_path: Path) -> None:
    good, short = (_Script(name, f"print('{{\"rows\": {rows}}}')") for name, rows in (("good", 8), ("short", 7)))
    absent = _Script("absent", "")
    said: list[str] = []
    records = measure([(one, 8, None) for one in (good, short, absent)], 2, tmp_path, said.append)
    assert [len(record.results) for record in records] == [2, 0, 0]
    assert [record.missing for record in records] == [None, "run 1: counted 7 words, the file has 8", "no code"]
    assert said[3:] == [
        "run 1 of 2: good", "run 1 of 2: good: rows 8", "run 1 of 2: short",
        "run 2 of 2: good", "run 2 of 2: good: rows 8",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import sys; sys.exit('out of luck')", "exit 1: out of luck"),
        ("print('done')", "the last line is 'done', wanted a JSON object"),
        ("print('8')", "the last line is '8', wanted a JSON object"),
        ("pass", "the last line is '', wanted a JSON object"),
    ],
)
def test_a_run_without_its_line_says_what_came(code: str, reason: str) -> None:
    with pytest.raises(RunFailed, match=reason):
        run([sys.executable, "-S", "-c", code])


def test_a_run_over_its_limit_is_killed() -> None:
    with pytest.raises(RunFailed, match=r"not done within 0.05 s"):
        run([sys.executable, "-S", "-c", "import threading; threading.Event().wait()"], limit_seconds=0.05)


@pytest.mark.slow
def test_a_run_over_its_limit_can_clear_away_what_it_has_made(tmp_path: Path) -> None:
    code = """
import signal, sys, tempfile, threading
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
with tempfile.TemporaryDirectory(dir=sys.argv[1]):
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    threading.Event().wait()
"""
    with pytest.raises(RunFailed, match=r"not done within 2 s"):
        run([sys.executable, "-S", "-c", code, str(tmp_path)], limit_seconds=2)
    assert not list(tmp_path.iterdir())


def test_a_missing_jdk_is_said_and_not_raised_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (record,) = measure(
        [(FlinkJvm("flink", "", "WordCount", ("file-source", "4")), 8, None)], 1, tmp_path, lambda line: None
    )
    assert record.missing is not None and "install a JDK 17" in record.missing


def test_a_benchmark_of_ours_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAYFLINK_BENCH_CACHE", str(tmp_path))
    monkeypatch.setattr("benchmarks.runs.contestants.importlib.util.find_spec", lambda module: None)
    monkeypatch.setattr("benchmarks.runs.machine.describe", lambda: {"cores": 2, "packages": {}})
    assert program.main(["latency", "--runs", "1"]) == 2
    assert "not measured: ours: there is no benchmarks/streams/ours_latency.py" in capsys.readouterr().out


def test_an_unknown_peer_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        program.main(["w1", "--peers", "flink,storm"])
    assert "no peer storm; there are flink, pyflink, bytewax, pathway" in capsys.readouterr().err
