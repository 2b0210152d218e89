"""The file sink on an object store: whole jobs, and single writers and committers."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from rayflink.common import Encoder
from rayflink.common.connector_base.commits import CommitOutcome, CommitRequest
from rayflink.common.connector_base.sink import WriterContext
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import RowBatch
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.file_systems.store_errors import ObjectStoreError
from rayflink.connectors.files.file_source import FileSource, StreamFormat
from rayflink.connectors.files.object_parts import LostUpload, PendingObject
from rayflink.connectors.files.rolling import RollingPolicy
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.file_system import BucketAssigner, FileSink
from rayflink.table import TableEnvironment
from tests.operators.running import FixedClock

from .stores import BUCKET, Server

pytestmark = pytest.mark.slow
HERE = BucketAssigner.base_path_bucket_assigner()
TEXT = Encoder.simple_string_encoder()


def _sink(folder: str = "out", part_size: int = 1 << 30) -> FileSink:
    builder = FileSink.for_row_format(f"s3://{BUCKET}/{folder}", TEXT).with_bucket_assigner(HERE)
    sink: FileSink = builder.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size)).build()
    return sink


def _env(server: Server, **more: Any) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment({"execution.target": "local", **server.options, **more})


class Writing:
    """One writer, and what it prepares."""

    def __init__(self, server: Server, sink: FileSink, attempt: int = 0, restored: tuple[Any, ...] = ()) -> None:
        self.sink = pickle.loads(pickle.dumps(sink)).configured(server.options)
        self.metrics = MetricGroup()
        context = WriterContext(attempt=attempt, restored=restored, clock=FixedClock(), metrics=self.metrics, epoch=1)
        self.writer, self.committer = self.sink.create_writer(context), self.sink.create_committer()

    def write(self, lines: list[str]) -> None:
        self.writer.write(RowBatch(lines))

    def checkpoint(self, end: bool = False) -> tuple[list[Any], list[Any]]:
        """What is to be committed, and what only a restore would commit."""
        self.writer.flush(end)
        return list(self.writer.prepare_commit()), list(self.writer.snapshot_unfinished())

    def commit(self, committables: list[Any], restored: bool = False) -> list[CommitRequest[Any]]:
        requests = [CommitRequest(pickle.loads(pickle.dumps(one)), restored) for one in committables]
        self.committer.commit(requests)
        return requests


def test_a_job_writes_objects_and_another_reads_them(s3: Server) -> None:
    env = _env(s3, **{"parallelism.default": 2})
    env.from_collection([f"line {number}" for number in range(1000)]).sink_to(_sink())
    env.execute()
    assert len(s3.objects("out/")) >= 1 and s3.uploads() == []
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), f"s3://{BUCKET}/out").build()
    lines = _env(s3).from_source(source, WatermarkStrategy.no_watermarks(), "in").execute_and_collect()
    assert sorted(lines) == sorted(f"line {number}" for number in range(1000))


DONE = (CommitOutcome.COMMITTED, CommitOutcome.ALREADY_COMMITTED)  # S3 itself repeats the answer for some time
LINES = [f"{number:099d}" for number in range(70_000)]
"""7 MB: one part and more."""


def test_parts_are_uploaded_early_and_nothing_is_visible_before_the_commit(s3: Server) -> None:
    writing = Writing(s3, _sink())
    writing.write(LINES)
    assert s3.uploads() == ["out/part-00000000-0-0"]
    whole, unfinished = writing.checkpoint()
    assert whole == [] and unfinished[0].size == 7_000_000 and len(unfinished[0].tail) == 7_000_000 - (5 << 20)
    writing.write(LINES)
    whole, unfinished = writing.checkpoint(end=True)
    assert unfinished == [] and s3.objects() == {} and "14000000 bytes, 3 parts" in repr(whole[0])
    requests = writing.commit(whole)
    assert [request.outcome for request in requests] == [CommitOutcome.COMMITTED]
    (data,) = s3.objects().values()
    assert data.decode().splitlines() == LINES * 2 and s3.uploads() == []
    writing.writer.close()


def test_a_commit_that_is_repeated_changes_nothing(s3: Server) -> None:
    writing = Writing(s3, _sink())
    writing.write(LINES)
    whole, _ = writing.checkpoint(end=True)
    writing.commit(whole)
    before = s3.objects()
    again = Writing(s3, _sink())
    requests = again.commit(whole, restored=True)
    assert requests[0].outcome in DONE
    assert s3.objects() == before


def test_a_commit_whose_answer_is_lost_is_complete(s3: Server) -> None:
    writing = Writing(s3, _sink())
    writing.write(LINES)
    whole, _ = writing.checkpoint(end=True)
    lost = iter(["lost"])
    s3.fault = lambda method, path: next(lost, None) if method == "POST" and "uploadId" in path else None
    (request,) = writing.commit(whole)
    assert request.outcome in DONE and len(s3.objects()) == 1


def test_a_restored_writer_finishes_what_was_in_the_checkpoint_and_aborts_the_rest(s3: Server) -> None:
    first = Writing(s3, _sink())
    first.write(LINES)
    _, unfinished = first.checkpoint()
    state = first.writer.snapshot_state()
    first.write(["lost"] * 200_000)
    assert len(s3.uploads()) == 1
    first.writer.flush(True)  # and another file begins, of which no checkpoint knows
    first.write(LINES)
    assert len(s3.uploads()) == 2
    second = Writing(s3, _sink(), attempt=1, restored=(state,))
    second.commit(unfinished, restored=True)
    assert [data.decode().splitlines() for data in s3.objects("out/part").values()] == [LINES]
    assert s3.uploads() == []
    zombie = Writing(s3, _sink(), attempt=2, restored=(state,))
    zombie.write(LINES)
    late = Writing(s3, _sink(), attempt=1, restored=(state,))  # comes late, and leaves what is not its own
    assert len(s3.uploads()) == 1
    for writing in (zombie, late):
        writing.writer.close()
    assert s3.uploads() == []


def test_an_upload_that_is_aborted_by_somebody_else_is_an_error_with_the_remedy(s3: Server) -> None:
    writing = Writing(s3, _sink())
    writing.write(LINES)
    whole, _ = writing.checkpoint(end=True)
    client = s3.client()
    client.abort_multipart_upload(Bucket=BUCKET, Key=s3.uploads()[0], UploadId=whole[0].upload_id)
    (request,) = writing.commit(whole)
    assert request.outcome is CommitOutcome.UNKNOWN_FAILURE and isinstance(request.error, LostUpload)
    assert "let the bucket's rule for incomplete uploads wait longer" in str(request.error)


def test_a_store_that_is_busy_at_the_commit_is_tried_again_later(s3: Server) -> None:
    writing = Writing(s3, _sink())
    writing.write(["a"])
    whole, _ = writing.checkpoint(end=True)
    assert len(whole[0].tail) == 2 and whole[0].upload_id == ""
    s3.fault = lambda method, path: (503, "SlowDown")
    (request,) = writing.commit(whole)
    assert request.outcome is CommitOutcome.RETRY and "SlowDown" in str(request.error)
    s3.fault = None
    (request,) = writing.commit(whole)
    assert request.outcome is CommitOutcome.COMMITTED and list(s3.objects().values()) == [b"a\n"]


@pytest.mark.parametrize(
    ("status", "code", "problem"),
    [
        (403, "AccessDenied", "the store forbids it"),
        (403, "RequestTimeTooSkewed", "the clocks of this machine and of the store differ"),
        (507, "InsufficientStorage", "the bucket is full.*raise the quota"),
        (404, "NoSuchBucket", "there is no such bucket"),
    ],
)
def test_a_store_that_refuses_an_upload_is_an_error_with_the_remedy(
    s3: Server, status: int, code: str, problem: str
) -> None:
    writing = Writing(s3, _sink())
    s3.fault = lambda method, path: (status, code)
    with pytest.raises(ObjectStoreError, match=problem):
        writing.write(LINES)
    s3.fault = None
    writing.writer.close()
    with pytest.raises(ObjectStoreError, match=problem):
        s3.fault = lambda method, path: (status, code)
        Writing(s3, _sink())


def test_failing_parts_are_uploaded_again_and_counted(s3: Server) -> None:
    writing = Writing(s3, _sink())
    faults = iter([(503, "SlowDown"), None, "reset", (500, "InternalError")])
    s3.fault = lambda method, path: next(faults, None) if "upload" in path else None
    writing.write(LINES)
    whole, _ = writing.checkpoint(end=True)
    writing.commit(whole)
    assert [data.decode().splitlines() for data in s3.objects().values()] == [LINES]
    assert writing.metrics.counter("numStoreRetries").get_count() == 3


FAILURES: list[int] = []


def _fragile(number: int) -> int:
    if number in FAILURES:
        FAILURES.remove(number)
        raise OSError(f"lost at {number}")
    return number


@pytest.mark.spec("H23", "commit", "H24")
def test_a_job_that_fails_again_and_again_writes_each_record_once(s3: Server, tmp_path: Any) -> None:
    FAILURES[:] = [50, 130, 210, 390]
    env = _env(s3, **{
        "parallelism.default": 2, "execution.checkpointing.interval": "30 ms",
        "execution.checkpointing.dir": str(tmp_path), "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 10, "restart-strategy.fixed-delay.delay": "1 ms",
    })  # fmt: skip
    source = DataGeneratorSource(lambda n: n, 400, records_per_second=1000)
    env.from_source(source, WatermarkStrategy.no_watermarks(), "n").map(_fragile).sink_to(_sink(part_size=100))
    env.execute()
    assert not FAILURES and s3.uploads() == []
    shown = {key: data for key, data in s3.objects("out/").items() if "/." not in key}
    assert sorted(int(line) for data in shown.values() for line in data.split()) == list(range(400))


def test_sql_writes_partitions_overwrites_them_and_reads_them(s3: Server) -> None:
    env = TableEnvironment.create(_settings(s3))
    env.execute_sql(
        f"CREATE TABLE t (n INT, day STRING, name STRING METADATA FROM 'file.name' VIRTUAL) PARTITIONED BY (day) "
        f"WITH ('connector' = 'filesystem', 'path' = 's3://{BUCKET}/t', 'format' = 'json', "
        f"'sink.partition-commit.policy.kind' = 'success-file')"
    )
    env.execute_sql("INSERT INTO t VALUES (1, 'a/b'), (2, 'c'), (3, 'c')").wait()
    assert {key.rpartition("/")[0] for key in s3.objects()} == {"t/day=a%2Fb", "t/day=c"}
    assert {key for key in s3.objects() if key.endswith("_SUCCESS")} == {
        "t/day=a%2Fb/_SUCCESS", "t/day=c/_SUCCESS",
    }  # fmt: skip

    def rows(query: str) -> list[Any]:
        return sorted(tuple(row) for row in env.execute_sql(query).collect())

    assert rows("SELECT n, day FROM t") == [(1, "a/b"), (2, "c"), (3, "c")]
    assert rows("SELECT n FROM t WHERE day = 'c'") == [(2,), (3,)]
    assert all(name.startswith("part-") for _, name in rows("SELECT n, name FROM t"))
    s3.requests.clear()
    rows("SELECT n FROM t WHERE day = 'c'")
    assert not [request for request in s3.requests if "GET" in request and "day%3Da" in request and "part" in request]
    env.execute_sql("INSERT OVERWRITE t PARTITION (day = 'c') VALUES (9)").wait()
    assert rows("SELECT n, day FROM t") == [(1, "a/b"), (9, "c")] and s3.uploads() == []


def _settings(server: Server) -> Any:
    from rayflink.common import Configuration
    from rayflink.table import EnvironmentSettings

    config = Configuration()
    for key, value in {"execution.target": "local", **server.options}.items():
        config.set_string(key, value)
    return EnvironmentSettings.new_instance().in_batch_mode().with_configuration(config).build()


def test_a_committable_shows_no_bytes(s3: Server) -> None:
    assert "secret" not in repr(PendingObject("s3://data/x", "t", "", (), b"secret"))
