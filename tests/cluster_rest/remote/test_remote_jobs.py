"""Jobs that clients send to a cluster: what they print, their rows, their ends and their errors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rayflink import dbapi, launch
from rayflink.cluster.runners.local_job import LocalJob
from rayflink.cluster.runners.local_runner import LocalRunner
from rayflink.common import Configuration, JobCancelled, JobExecutionError, JobFailed, JobStatus
from rayflink.common.errors import PlanError
from rayflink.common.typeinfo import Types
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import KeyedProcessFunction, MapFunction, RuntimeContext, StreamExecutionEnvironment
from rayflink.launch import remote_job
from rayflink.launch.cluster_client import ClusterUnreachable
from rayflink.launch.remote_submission import RemoteSubmission
from rayflink.state.descriptors import ValueStateDescriptor
from rayflink.table import StreamTableEnvironment

from .conftest import Clusters, eventually

pytestmark = pytest.mark.slow


class Counts(KeyedProcessFunction):
    """Each record becomes the number of those of its key so far."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield count


def counted(env: StreamExecutionEnvironment, records: int | None) -> Any:
    """Write a program that counts records, and for ever where there is no number of them."""
    numbers = env.from_source(DataGeneratorSource(lambda number: number, records, 500), None, "numbers").uid("numbers")
    return numbers.key_by(lambda number: 0).process(Counts(), Types.LONG()).uid("counts").name("counts")


@pytest.mark.spec("S04", "submit", "S05", "dispatcher")
def test_a_job_prints_and_its_rows_come_back(capfd: pytest.CaptureFixture[str], clusters: Clusters) -> None:
    clusters.restart()  # within the test, in which pytest has put its own streams in place
    env = clusters.environment()
    numbers = env.from_sequence(1, 5).map(lambda number: number * 2)
    numbers.print()
    with numbers.execute_and_collect("doubles") as rows:
        assert list(rows) == [2, 4, 6, 8, 10]
    assert capfd.readouterr().out.splitlines() == ["2", "4", "6", "8", "10"]


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_job_whose_processes_take_long_is_accepted_and_awaited(
    clusters: Clusters, is_refused: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start = LocalRunner.start

    def slow(runner: LocalRunner, submission: RemoteSubmission) -> LocalJob:
        assert eventually(lambda: "accepted, waiting for processes" in "".join(capsys.readouterr()))
        if is_refused:
            raise JobExecutionError(submission.job_id, "cannot be loaded", "install its module")
        return start(runner, submission)

    monkeypatch.setattr(LocalRunner, "start", slow)
    monkeypatch.setattr(remote_job, "START_S", 0.0)
    monkeypatch.setattr(remote_job, "NOTE_EVERY_S", 0.1)
    env = clusters.environment()
    env.from_sequence(1, 5).print()
    if is_refused:
        with pytest.raises(JobExecutionError, match="cannot be loaded; install its module"):
            env.execute("refused")
    else:
        env.execute("slow")


def test_statements_of_sql_run_there(clusters: Clusters, tmp_path: Path) -> None:
    tables = StreamTableEnvironment.create(clusters.environment())
    tables.execute_sql(f"""CREATE TABLE words (word STRING, many INT) WITH (
        'connector' = 'filesystem', 'path' = '{tmp_path}/words', 'format' = 'csv')""")
    tables.execute_sql("INSERT INTO words VALUES ('a', 1), ('b', 2), ('a', 3)").wait()
    totals = tables.sql_query("SELECT word, SUM(many) AS total FROM words GROUP BY word")
    with totals.execute().collect() as rows:
        assert {row[0]: row[1] for row in rows} == {"a": 4, "b": 2}
    assert sorted(tables.sql_query("SELECT many FROM words").to_pandas()["many"]) == [1, 2, 3]
    with dbapi.connect(options=clusters.options()) as connection:
        assert connection.execute("SELECT MAX(number) FROM (VALUES (1), (2)) AS t(number)").fetchall() == [(2,)]


def test_a_failing_function_raises_what_it_raises_on_a_local_run(clusters: Clusters) -> None:
    def fails(number: int) -> float:
        return 1 / (number - 3)

    failures = []
    for env in (clusters.environment(), StreamExecutionEnvironment({"execution.target": "local"})):
        env.from_sequence(1, 5).map(fails).name("divides").print()
        with pytest.raises(JobFailed) as raised:
            env.execute("fails")
        failures.append(raised.value)
    remote, local = failures
    assert remote.args[1:] == local.args[1:]
    assert "test_remote_jobs.py" in remote.user_traceback and remote.record == "3"


def test_a_job_is_cancelled_and_seen_by_another_client(clusters: Clusters) -> None:
    env = clusters.environment({"parallelism.default": "1"})
    counted(env, None).add_sink(lambda count: None)
    client = env.execute_async("endless")
    options = Configuration.from_dict(clusters.options())
    other = launch.attach(client.get_job_id(), options)
    assert eventually(lambda: other.get_job_status().result() is JobStatus.RUNNING)
    assert [job["name"] for job in launch.list_jobs(options)] == ["endless"]
    vertices = other.status()["vertices"]
    assert vertices and all("numRecordsInPerSecond" in vertex for vertex in vertices)
    other.cancel().result()
    with pytest.raises(JobCancelled, match="by the user"):
        client.get_job_execution_result().result()
    assert client.status()["state"] == other.wait().status.value == "CANCELED"


def test_a_job_starts_from_a_savepoint_of_another(clusters: Clusters, tmp_path: Path) -> None:
    env = clusters.environment()
    counted(env, None).add_sink(lambda count: None)
    client = env.execute_async("first")
    assert eventually(lambda: sum(vertex["numRecordsIn"] for vertex in client.status()["vertices"]) > 5)
    assert client.trigger_savepoint(str(tmp_path)).result().startswith(str(tmp_path))
    savepoint = client.stop_with_savepoint(False, str(tmp_path)).result()
    assert client.get_job_execution_result().result().get_job_id() == client.get_job_id()
    assert client.checkpoints()["counts"]["completed"] == 2
    with pytest.raises(JobExecutionError, match="no record of checkpoint 77"):
        client.checkpoints(77)
    again = clusters.environment({"execution.state-recovery.path": savepoint})
    with counted(again, 20_000).execute_and_collect("second") as rows:
        assert next(rows) > 5


def test_an_operator_is_rescaled(clusters: Clusters, tmp_path: Path) -> None:
    env = clusters.environment({"execution.checkpointing.dir": str(tmp_path)})
    counted(env, None).add_sink(lambda count: None)
    client = env.execute_async("rescaled")
    assert eventually(lambda: client.get_job_status().result() is JobStatus.RUNNING)
    assert client.rescale({"counts": 2}).result() >= 0
    assert {vertex["parallelism"] for vertex in client.status()["vertices"] if "counts" in vertex["name"]} == {2}
    with pytest.raises(JobExecutionError, match="cannot be rescaled: .*nothing"):
        client.rescale({"nothing": 2}).result()
    client.cancel()


def test_a_client_goes_on_when_the_dispatcher_begins_anew(clusters: Clusters, tmp_path: Path) -> None:
    settings = {"execution.checkpointing.dir": str(tmp_path), "execution.checkpointing.interval": "50 ms"}
    env = clusters.environment(settings)
    with counted(env, 600).execute_and_collect("goes on") as rows:
        first = [next(rows) for _ in range(10)]
        with ThreadPoolExecutor(1) as another:
            restart = another.submit(clusters.restart)
            assert [*first, *rows] == list(range(1, 601))
            restart.result()


def test_two_clients_have_rows_of_their_own(clusters: Clusters) -> None:
    streams = [clusters.environment().from_sequence(1, end).execute_and_collect(f"to {end}") for end in (3, 4)]
    assert [list(rows) for rows in streams] == [[1, 2, 3], [1, 2, 3, 4]]


def test_files_and_modules_travel_with_the_job(clusters: Clusters, tmp_path: Path) -> None:
    (tmp_path / "model.txt").write_text("weights")
    (tmp_path / "remote_test_module.py").write_text("def shout(text):\n    return text.upper()\n")

    class Reads(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.path = runtime_context.get_distributed_cache().get_file("model")

        def map(self, value: Any) -> Any:
            import remote_test_module  # type: ignore[import-not-found]

            return remote_test_module.shout(Path(self.path).read_text())

    env = clusters.environment({"python.files": str(tmp_path / "remote_test_module.py")})
    env.register_cached_file(str(tmp_path / "model.txt"), "model")
    job = env.from_collection([1]).map(Reads())
    with job.execute_and_collect("reads") as rows:
        (tmp_path / "model.txt").unlink()
        assert list(rows) == ["WEIGHTS"]


def test_what_lies_with_the_program_is_refused(clusters: Clusters) -> None:
    env = clusters.environment()
    cached = env.from_collection([1]).cache()
    with pytest.raises(PlanError, match="cache\\(\\) keeps records with the program"):
        list(cached.execute_and_collect())


def test_a_client_with_another_token_is_refused(clusters: Clusters) -> None:
    env = clusters.environment({"rest.token": "another"})
    env.from_collection([1]).print()
    with pytest.raises(JobExecutionError, match="the token is wrong.*; set rest.token to a token of that"):
        env.execute()


def test_a_cluster_that_is_not_there_is_named(clusters: Clusters) -> None:
    clusters.stop()
    env = clusters.environment({"rest.retry.max-attempts": "2"})
    env.from_collection([1]).print()
    with pytest.raises(ClusterUnreachable, match="does not answer: ConnectionRefusedError.*rest.address"):
        env.execute()


def test_a_job_that_goes_on_alone_is_found_again(capfd: pytest.CaptureFixture[str], clusters: Clusters) -> None:
    clusters.restart()  # within the test, in which pytest has put its own streams in place
    env = clusters.environment({"execution.attached": "false"})
    env.from_sequence(1, 3).add_sink(lambda number: print("saw", number))
    job_id = env.execute("alone").get_job_id()
    assert f"Job has been submitted with JobID {job_id}" in capfd.readouterr().out
    options = Configuration.from_dict(clusters.options())
    assert launch.attach(job_id, options).wait().status is JobStatus.FINISHED
    assert [line.text for line in launch.job_log(job_id, options).read()] == ["saw 1", "saw 2", "saw 3"]
    assert [job["state"] for job in launch.recorded_jobs(options)] == ["FINISHED"]
    with pytest.raises(JobExecutionError, match="is not known to the cluster"):
        launch.attach("0" * 32, options)
