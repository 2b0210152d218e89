"""Files and sources in plain Python on Ray: the same jobs as in tests/connectors/test_jobs.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rayflink.common import JobFailed
from tests.connectors import jobs

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]

ON_RAY: dict[str, Any] = {"parallelism.default": 2}


def test_rows_go_through_text_json_and_parquet_files(tmp_path: Path) -> None:
    assert jobs.through_files(ON_RAY, tmp_path) == jobs.ROWS


def test_a_watched_folder_gives_each_file_once_while_the_job_runs(tmp_path: Path) -> None:
    assert jobs.watched(ON_RAY, tmp_path) == (["a1", "a2"], ["b1"])


def test_an_async_generator_and_a_hybrid_source() -> None:
    assert jobs.plain_python(ON_RAY) == ([0, 1, 2, 3, 4], list(range(1, 10)))


def test_an_async_generator_that_raises_fails_the_job() -> None:
    with pytest.raises(JobFailed, match="LookupError: no more"):
        jobs.failing_midway(ON_RAY)
