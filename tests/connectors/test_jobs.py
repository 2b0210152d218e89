"""Whole jobs with files and sources in plain Python, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rayflink.common import JobFailed
from tests.connectors import jobs

LOCAL: dict[str, Any] = {"execution.target": "local", "parallelism.default": 2}


@pytest.mark.spec("C24", "C26")
def test_rows_go_through_text_json_and_parquet_files(tmp_path: Path) -> None:
    assert jobs.through_files(LOCAL, tmp_path) == jobs.ROWS
    assert all(path.name.startswith("part-") for path in (tmp_path / "json").iterdir())


def test_a_watched_folder_gives_each_file_once_while_the_job_runs(tmp_path: Path) -> None:
    assert jobs.watched(LOCAL, tmp_path) == (["a1", "a2"], ["b1"])


@pytest.mark.spec("C24")
def test_an_async_generator_and_a_hybrid_source_in_jobs() -> None:
    assert jobs.plain_python(LOCAL) == ([0, 1, 2, 3, 4], list(range(1, 10)))


def test_an_async_generator_that_raises_fails_the_job_with_the_program_s_lines() -> None:
    with pytest.raises(JobFailed, match="no more") as failure:
        jobs.failing_midway(LOCAL)
    assert "jobs.py" in str(failure.value) and "LookupError: no more" in str(failure.value)


@pytest.mark.spec("C26")
def test_a_file_sink_writes_typed_records_as_java_does_and_add_sink_takes_it(tmp_path: Path) -> None:
    assert jobs.streaming_file_sink(LOCAL, tmp_path) == ["(a,1)\n"]
