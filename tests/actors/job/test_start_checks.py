"""What is wrong with a new job is said before it has slots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rayflink.actors.checkpoints.completed import CompletedCheckpoint
from rayflink.actors.job.restoring import RestoreError
from rayflink.actors.job.start_checks import ensure_can_start
from rayflink.common.errors import PlanError
from rayflink.common.watermark_strategy import WatermarkStrategy
from rayflink.connectors.files.file_source import FileSource, StreamFormat
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.state.storage.manifest import CheckpointManifest, OperatorManifest


def reading(path: Path, **options: str) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment(options)
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path)).build()
    env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").uid("lines").print()
    return env.get_job_graph("reading")


def savepoint_of_another_program() -> CompletedCheckpoint:
    gone = OperatorManifest("ab" * 16, "counts", "Count", 1, 128, (), coordinator=b"state")
    manifest = CheckpointManifest("savepoint", 7, 1, "0" * 32, "before", 0, 1, True, (gone,))
    return CompletedCheckpoint("/savepoints/7", manifest, is_owned=False)


def test_a_folder_that_is_missing_is_named_with_the_source_and_its_line(tmp_path):
    with pytest.raises(PlanError, match=r"source .*lines.* cannot be read: FileNotFoundError: .*absent") as raised:
        ensure_can_start(reading(tmp_path / "absent"), ())
    assert "test_start_checks.py:" in raised.value.line
    (tmp_path / "absent").mkdir()
    ensure_can_start(reading(tmp_path / "absent"), ())


def test_state_without_a_place_in_the_job_is_refused_unless_it_may_stay_behind(tmp_path):
    named = [savepoint_of_another_program()]
    with pytest.raises(RestoreError, match="savepoint 7 of job 'before' has state of operators .*uid 'counts'"):
        ensure_can_start(reading(tmp_path), named)
    allowed = {"execution.state-recovery.ignore-unclaimed-state": "true"}
    ensure_can_start(reading(tmp_path / "absent", **allowed), named)  # what was read is in the savepoint


def test_sources_without_files_are_ready():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_sequence(1, 3).union(env.from_collection([4])).print()
    ensure_can_start(env.get_job_graph(), ())
