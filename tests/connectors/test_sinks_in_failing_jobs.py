"""Whole jobs that fail again and again between and during checkpoints: each sink holds each record once at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from benchmarks.servers.postgres_server import postgres_server
from rayflink.common import Encoder, WatermarkStrategy
from rayflink.common.connector_base.commits import CommitRequest
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.file_system import BucketAssigner, FileSink
from rayflink.datastream.connectors.postgres import PostgresSink, staged_rows
from tests.operators.test_commits import Pages, Shelf

pytestmark = pytest.mark.slow
RECORDS = 400
FAILURES: list[int] = []
PAGES: dict[str, Any] = {}
SHELVES: list[Shelf] = []
SEEN: list[int] = []


def _see(number: int) -> None:
    """A sink that writes at once."""
    SEEN.append(number)


def _fragile(number: int) -> int:
    """Raises once at each of the numbers that are to fail."""
    if number in FAILURES:
        FAILURES.remove(number)
        raise OSError(f"lost at {number}")
    return number


def _run(folder: Path, *sinks: Any) -> int:
    """Run a job of two subtasks into the sinks, failing four times; gives how often it failed."""
    FAILURES[:] = [50, 130, 210, 390]
    options = {
        "execution.target": "local", "parallelism.default": 2, "execution.checkpointing.interval": "20 ms",
        "execution.checkpointing.dir": str(folder / "checkpoints"), "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 10, "restart-strategy.fixed-delay.delay": "1 ms",
    }  # fmt: skip
    env = StreamExecutionEnvironment(options)
    source = DataGeneratorSource(lambda n: n, RECORDS, records_per_second=1000)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").map(_fragile)
    for sink in sinks:
        numbers.add_sink(sink)
    env.execute()
    return 4 - len(FAILURES)


@pytest.mark.spec("H23", "commit", "H24", "H01", "end-to-end", "H22", "twice")
def test_part_files_hold_each_record_once(tmp_path: Path) -> None:
    out = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder())
    sink = out.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    SEEN.clear()
    assert _run(tmp_path, sink, _see) == 4
    repeated = [number for number in SEEN if SEEN.count(number) > 1]
    assert repeated, "nothing was worked twice, so the test shows nothing"
    found = [int(line) for path in (tmp_path / "out").glob("part-*") for line in path.read_text().split()]
    assert sorted(found) == list(range(RECORDS))


class GlobalShelf(Shelf):
    """Its copies, one for each subtask and attempt, put boxes on one shelf."""

    def create_committer(self) -> Any:
        committer: Any = super().create_committer()
        committer.shelf = SHELVES[0]
        return committer


def _retry(request: CommitRequest[Any]) -> None:
    request.retry_later(OSError("busy"))


def test_a_committing_sink_with_a_busy_committer_commits_each_record_once(tmp_path: Path) -> None:
    SHELVES[:] = [Shelf(*[_retry] * 5)]
    assert _run(tmp_path, GlobalShelf()) == 4
    assert sorted(SHELVES[0].values) == list(range(RECORDS))


class GlobalPages(Pages):
    """Its copies publish in one place."""

    def __init__(self) -> None:
        super().__init__(PAGES)

    def initialize_state(self, context: Any) -> None:
        self.place = PAGES
        super().initialize_state(context)

    def commit(self, transaction: str) -> None:
        PAGES["published"].setdefault(transaction, self.place[transaction])

    def recover_and_commit(self, transaction: str) -> None:
        self.commit(transaction)


def test_a_two_phase_function_commits_each_record_once(tmp_path: Path) -> None:
    PAGES.clear()
    PAGES["published"] = {}
    assert _run(tmp_path, GlobalPages()) == 4
    assert sorted(n for page in PAGES["published"].values() for n in page) == list(range(RECORDS))


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with postgres_server() as dsn:
        yield dsn


@pytest.mark.parametrize("keys", [[], ["n"]])
def test_postgres_holds_each_record_once(tmp_path: Path, dsn: str, keys: list[str]) -> None:
    with psycopg.connect(dsn, autocommit=True) as db:
        db.execute("DROP TABLE IF EXISTS t")
        db.execute("CREATE TABLE t (n int PRIMARY KEY)" if keys else "CREATE TABLE t (n int)")
        assert _run(tmp_path, PostgresSink(dsn, "t", keys=keys)) == 4
        assert db.execute("SELECT n FROM t ORDER BY n").fetchall() == [(n,) for n in range(RECORDS)]
    assert staged_rows(dsn) == []
