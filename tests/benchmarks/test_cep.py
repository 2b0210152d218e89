"""Events of the pattern benchmark are the same everywhere, and both APIs find the same matches in them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from benchmarks.inputs.cep_events import event_columns, event_file
from benchmarks.runs.contestants import PythonModule
from benchmarks.runs.report import equal_counts
from benchmarks.runs.rounds import Record, RunFailed
from benchmarks.streams.ours_cep import run


def test_the_events_are_those_that_java_computes() -> None:
    columns = event_columns(49_000, 51_000, 100)
    digest = hashlib.sha256(b"".join(column.tobytes() for column in columns)).hexdigest()[:16]
    assert (digest, np.bincount(columns[1]).tolist()) == ("81c8b61b5d05eb4f", [0, 322, 837, 841])
    assert not event_columns(0, 2_000, 0)[1].any()


@pytest.mark.slow
def test_the_query_finds_as_many_matches_as_the_pattern(tmp_path: Path) -> None:
    path = str(event_file(tmp_path, 40_000, 100))
    jobs = [(case, 40_000, 100, path, "measured") for case in ("strict-all", "sql-all")]
    assert [job["matches"] for job in run(None, jobs)["jobs"]] == [5_241, 5_241]


def test_contestants_that_count_differently_are_refused() -> None:
    def session(name: str, matches: int) -> Record:
        jobs = [{"query": "strict-all", "events": 9, "matches": matches}]
        return Record(PythonModule(name, name, "nowhere"), None, [{"jobs": jobs}])

    assert equal_counts([session("ours", 3), session("flink", 3)], "matches") == {("strict-all", 9): 3}
    with pytest.raises(RunFailed, match="flink counted 4 matches"):
        equal_counts([session("ours", 3), session("flink", 4)], "matches")
