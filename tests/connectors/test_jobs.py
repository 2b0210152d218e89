"""Whole jobs with files and sources in plain Python, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pytest

from rayflink.common import JobFailed, WatermarkStrategy
from rayflink.connectors.formats.csv_files import CsvFileSource
from rayflink.datastream import StreamExecutionEnvironment
from tests.connectors import jobs

LOCAL: dict[str, Any] = {"execution.target": "local", "parallelism.default": 2}


@pytest.mark.spec("C26", "rolling-files")
def test_rows_go_through_text_json_and_parquet_files(tmp_path: Path) -> None:
    assert jobs.through_files(LOCAL, tmp_path) == jobs.ROWS
    assert all(path.name.startswith("part-") for path in (tmp_path / "json").iterdir())


def test_a_watched_folder_gives_each_file_once_while_the_job_runs(tmp_path: Path) -> None:
    assert jobs.watched(LOCAL, tmp_path) == (["a1", "a2"], ["b1"])


def test_an_async_generator_and_a_hybrid_source_in_jobs() -> None:
    assert jobs.plain_python(LOCAL) == ([0, 1, 2, 3, 4], list(range(1, 10)))


def test_an_async_generator_that_raises_fails_the_job_with_the_program_s_lines() -> None:
    with pytest.raises(JobFailed, match="no more") as failure:
        jobs.failing_midway(LOCAL)
    assert "jobs.py" in str(failure.value) and "LookupError: no more" in str(failure.value)


@pytest.mark.spec("C26", "custom", "rolling-files")
def test_a_file_sink_writes_typed_records_as_java_does_and_add_sink_takes_it(tmp_path: Path) -> None:
    assert jobs.streaming_file_sink(LOCAL, tmp_path) == ["(a,1)\n"]


@pytest.mark.parametrize("strategy", [None, WatermarkStrategy.no_watermarks()])
def test_columns_of_a_file_stay_columns_in_batches_of_many_rows(tmp_path: Path, strategy: Any) -> None:
    (tmp_path / "f.csv").write_text("n\n" + "".join(f"{number}\n" for number in range(20_000)))
    env = StreamExecutionEnvironment(LOCAL | {"parallelism.default": 1})
    batches = env.from_source(CsvFileSource(tmp_path / "f.csv"), strategy).map_batches(_width)
    widths = [row.rows for row in batches.execute_and_collect()]
    assert sum(widths) == 20_000 and len(widths) < 1_000


def _width(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    return pyarrow.RecordBatch.from_pydict({"rows": [batch.num_rows]})
