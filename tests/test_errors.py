"""Bad inputs are clear errors; every error pickles, says what was found, and names a remedy."""

from __future__ import annotations

import os
import pickle
import re
import resource
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rayflink.common import Duration, Row, WatermarkStrategy, errors
from rayflink.common.errors import (
    ConfigError,
    ConnectorError,
    ControlPlaneTimeout,
    DriverEnded,
    InvalidFunction,
    InvalidTypesError,
    JobCancelled,
    JobExecutionError,
    JobFailed,
    NoResourceAvailable,
    NotSerializable,
    PlanError,
    RayCannotStart,
    RayflinkError,
    SuppressRestarts,
    TaskLost,
    TypeMismatch,
    shorten,
)
from rayflink.common.serialization import Encoder
from rayflink.connectors.collected import DrawnSink
from rayflink.connectors.files.file_sink import FileSink
from rayflink.connectors.formats.csv_writing import text_file_sink
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import KeyedProcessFunction
from rayflink.datastream.window import TumblingEventTimeWindows
from rayflink.graph import errors as graph_errors
from rayflink.graph.checks import warn_without_checkpoints
from tests.datastream.programs import environment, timed
from tests.errors.bad_inputs import ALL, PAGE, RUNNING, SUBMITTED, WRITTEN, BadInput, page_with_table

JOB = "0" * 32
FILES = re.compile(r"tests/errors/bad_\w+\.py")
SAMPLES = [
    ConfigError("parallelism.default", "'x'", "int", "write for example parallelism.default: 4"),
    ConnectorError("no brokers are named", "call set_bootstrap_servers()"),
    ControlPlaneTimeout("cancel", "coordinator", 10_000),
    InvalidFunction("map wants a function of 1 argument, found one of 2", "give it 1 argument", "job.py:3"),
    InvalidTypesError("'x' is no type", "use Types.STRING()", "job.py:3"),
    JobCancelled(JOB, "the user"),
    JobCancelled(JOB, "SIGINT", "/checkpoints/chk-7"),
    JobCancelled(JOB, "SIGINT", "", 2, "/checkpoints"),
    JobExecutionError(JOB, "failed", "look into its log"),
    DriverEnded(JOB, "SIGINT"),
    JobFailed(JOB, "parse", 1, "'a,b'", "Traceback ...\nValueError: bad", "job.py:7"),
    NoResourceAvailable("4 slots of 1 CPU", "2 CPUs", 300_000),
    NotSerializable("function 'parse'", "cannot pickle '_thread.lock' object", "job.py:7"),
    PlanError("a keyed stream is needed", "call key_by() first", "job.py:9"),
    RayCannotStart("RuntimeError: no room"),
    SuppressRestarts("these files are not of version 2"),
    TaskLost("sum#0", "node 10.0.0.3", 50_000, "its actor died"),
    graph_errors.DuplicateUidError("uid", "u", "Map (job.py:2)", "Map (job.py:3)"),
    graph_errors.DuplicateVertexError("job vertices", "a" * 32, "Map", "Flat Map"),
    graph_errors.EmptyProgramError(),
    graph_errors.ForwardParallelismError("Map", 2, "Sink", 3),
    graph_errors.JobGraphVersionMismatch("99", 1),
    graph_errors.MissingTypeError("Map", "a list of what", "job.py:2"),
    graph_errors.UnknownTransformationError("Loop"),
    TypeMismatch("result of map 'parse'", ".price", "str 'x'", "Double", "return a float", "job.py:7"),
]


def test_there_is_a_sample_of_every_error():
    named = (*vars(errors).values(), *vars(graph_errors).values())
    defined = {value for value in named if isinstance(value, type) and issubclass(value, RayflinkError)}
    assert {type(sample) for sample in SAMPLES} == defined - {RayflinkError}


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_pickling_whole_and_names_its_remedy(error):
    twin = pickle.loads(pickle.dumps(error))
    assert (type(twin), str(twin), vars(twin), twin.args) == (type(error), str(error), vars(error), error.args)
    assert error.remedy and error.remedy in str(error)


def test_a_failed_job_shows_operator_record_traceback_and_line():
    text = str(next(sample for sample in SAMPLES if isinstance(sample, JobFailed)))
    for part in (JOB, "'parse'", "subtask 1", "record: 'a,b'", "ValueError: bad", "job.py:7"):
        assert part in text


def test_a_type_mismatch_says_where_what_and_the_line():
    assert str(SAMPLES[-1]) == (
        "result of map 'parse'.price: found str 'x', wanted Double; return a float (at job.py:7)"
    )


RETAIN = "execution.checkpointing.externalized-checkpoint-retention: RETAIN_ON_CANCELLATION"


@pytest.mark.parametrize(
    ("newest", "deleted", "directory", "parts"),
    [
        ("/c/chk-7", 0, "/c", ["it can go on from /c/chk-7 (-s, execution.state-recovery.path)"]),
        ("", 0, "", ["it had no checkpoint to go on from: started again, it begins from its start"]),
        ("", 2, "/c", ["its checkpoints in /c were deleted with it", f"set {RETAIN} to keep them", "`rayflink stop`"]),
        ("", 1, "", ["its checkpoints in memory were deleted", f"set execution.checkpointing.dir and {RETAIN}"]),
    ],
)
def test_a_cancelled_job_says_what_became_of_its_checkpoints(newest, deleted, directory, parts):
    text = str(JobCancelled(JOB, "SIGINT", newest, deleted, directory))
    for part in [*parts, "what its sinks have written already is written again"]:
        assert part in text


def test_long_records_are_shortened_and_a_broken_repr_is_survived():
    class Broken:
        def __repr__(self):
            raise RuntimeError("no")

    assert shorten("abc") == "'abc'"
    assert len(shorten("x" * 5000)) == 200 and shorten("x" * 5000).endswith("... (5002 characters)")
    assert shorten(Broken()) == "<Broken whose repr raises RuntimeError>"


@pytest.mark.parametrize("given", ALL, ids=lambda given: given.what)
def test_bad_input_is_an_error_that_says_what_is_wrong_as_early_as_it_can_be_known(given: BadInput, tmp_path: Path):
    env = environment()
    if given.seen == WRITTEN:
        with pytest.raises((RayflinkError, TypeError, ValueError, AttributeError)) as caught:
            given.program(env, tmp_path)
    elif given.seen == SUBMITTED:
        given.program(env, tmp_path)
        with pytest.raises(RayflinkError) as caught:
            env.execute_async()
    else:
        assert given.seen == RUNNING
        given.program(env, tmp_path)
        client = env.execute_async()
        with pytest.raises(JobFailed) as caught:
            client.get_job_execution_result().result()
        assert FILES.search(caught.value.call_site)
        assert "/rayflink/" not in caught.value.user_traceback.replace("/tests/", ""), "frames of ours help nobody"
    ensure_said(given, str(caught.value))


def ensure_said(given: BadInput, text: str) -> None:
    at = 0
    for part in given.says:
        assert part in text[at:], f"{part!r} is not in, or not at its place in, {text}"
        at = text.index(part, at) + len(part)
    assert len(text) < 4_000


def changed(record: list[int]) -> list[int]:
    record.append(9)
    return record


@pytest.mark.parametrize("parallelism", [1, 2])
def test_what_looks_bad_and_is_none_gives_its_records(parallelism: int):
    def results(values: list[Any], function: Any, key: Any = None) -> list[Any]:
        stream = environment(parallelism).from_collection(values)
        stream = stream.rebalance() if key is None else stream.key_by(key)
        return sorted(stream.map(function).execute_and_collect(), key=repr)

    nan = float("nan")
    assert results([nan, 1, "x", None, b"x", 1.0, True, nan], repr, lambda v: v) == sorted(
        ["nan", "1", "'x'", "None", "b'x'", "1.0", "True", "nan"], key=repr
    )
    assert results(["a\ud800b", "\udfff"], lambda v: v, lambda v: v) == ["\udfff", "a\ud800b"]
    assert results(["k" * 1_000_000], len, lambda v: v) == [1_000_000]
    assert results([Row(**{f"f{at}": at for at in range(10_000)})], len, "f9999") == [10_000]
    assert results([], len) == []
    shared = environment(parallelism).from_collection([[0]])
    assert list(shared.map(changed).union(shared.map(list)).execute_and_collect()) in ([[0], [0, 9]], [[0, 9], [0]])


def test_a_timestamp_before_1970_is_one():
    early = timed(environment(), [("a", -5), ("a", -1_005)]).key_by(lambda record: record[0])
    sums = early.window(TumblingEventTimeWindows.of(Duration.of_millis(1_000))).sum(1).execute_and_collect()
    assert list(sums) == [("a", -1_005), ("a", -5)]


@contextmanager
def full_disk() -> Iterator[None]:
    """No file of this process takes more than 1,000 bytes, as on a disk without room; that is its log's limit too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_under_a_file_sink_names_the_folder_and_leaves_no_partial_file(tmp_path: Path):
    env = environment()
    sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()
    env.from_sequence(1, 1_000).map(str).sink_to(sink)
    with (
        pytest.raises(JobFailed, match="cannot write below '.*/out': .*File too large; free space there, or choose"),
        full_disk(),
    ):
        env.execute()
    assert [file for _, _, files in os.walk(tmp_path) for file in files] == []


@pytest.mark.parametrize("kept, what", [("32 kb", "spill file"), ("64 mb", "sorted input")])
def test_a_full_disk_under_spilled_data_names_the_option_and_leaves_nothing(tmp_path: Path, kept: str, what: str):
    options = {"io.tmp.dirs": str(tmp_path), "rayflink.blocking-partition.memory": kept}
    batch = {"execution.runtime-mode": "BATCH", "execution.sorted-inputs.memory": "32 kb"}
    env = environment(**options, **batch)
    env.from_sequence(1, 30_000).key_by(lambda n: n % 3).process(Passing()).print()
    with (
        pytest.raises(JobFailed, match=f"{what} .* cannot be written .*File too large.*set io.tmp.dirs to a larger"),
        full_disk(),
    ):
        env.execute()
    assert list(tmp_path.iterdir()) == []


class Passing(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


def test_every_refusal_of_a_plan_names_its_line():
    for given in ALL:
        if given.seen != WRITTEN:
            continue
        with pytest.raises((RayflinkError, TypeError, ValueError, AttributeError)) as caught:
            given.program(environment(), Path("unused"))
        in_text = FILES.search(str(caught.value)) is not None
        in_trace = any(FILES.search(str(entry.path)) for entry in caught.traceback)
        assert in_text or in_trace, given.what


def test_the_page_lists_them_all():
    page = PAGE.read_text(encoding="utf-8")
    assert page_with_table(page) == page, "run `python -m tests.errors.bad_inputs`"
    assert all(given.what in page for given in ALL)


def test_a_job_without_a_sink_runs_and_says_that_nobody_gets_its_results():
    seen: list[int] = []
    env = environment()
    env.from_collection([1, 2]).map(seen.append).name("besides")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        env.execute("no sink")
    [warning] = caught
    assert "job 'no sink' has no sink: nothing receives the results of 'besides' (created at " in str(warning.message)
    assert "end the stream with print(), sink_to() or execute_and_collect()" in str(warning.message)
    assert Path(warning.filename) == Path(__file__)


def test_a_job_whose_results_would_never_be_seen_says_so(tmp_path):
    def said(count, **options):
        env = environment(**options)
        source = DataGeneratorSource(lambda n: n, count)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        numbers.sink_to(text_file_sink(tmp_path / "files")).name("files")
        numbers.add_sink(DrawnSink())
        numbers.print()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_without_checkpoints(env.get_job_graph("hidden"))
        return [str(warning.message) for warning in caught]

    (told,) = said(None)
    assert "job 'hidden' takes no checkpoints and has no end, and what 'Sink: files' (created at " in told
    assert told.endswith("writes is seen when a checkpoint is complete; set execution.checkpointing.interval")
    assert said(10) == [] and said(None, **{"execution.checkpointing.interval": "1 s"}) == []
