"""The commands of `rayflink` on jobs that run on Ray, from other processes than those that submitted them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rayflink import launch
from rayflink.cep import CEP, Pattern
from rayflink.cli.main import main
from rayflink.common.errors import JobCancelled
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from tests.cluster import watching

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]

ENDLESS = """
import logging, sys
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment

def loud(number):
    if number % 100 == 0:
        print("saw", number)
        logging.getLogger("mine").warning("warned of %s", number)
        logging.getLogger("mine").info("noted %s", number)
    return number

env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_source(DataGeneratorSource(records_per_second=1_000), None, "Numbers")
numbers.map(loud).name("loud").key_by(lambda n: n % 3).map(lambda n: n).name("quiet").add_sink(lambda n: None)
result = env.execute("detached")
print(result, result.is_job_execution_result())
"""
FAILING = """
from rayflink.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()

def divided(number):
    print("dividing by", number)
    return 1 // number

env.from_collection([1, 0]).map(divided).name("divided").print()
env.execute("failing")
"""


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in a terminal of its own."""
    whole = [sys.executable, "-m", "rayflink.cli.main", *arguments]
    return subprocess.run(whole, capture_output=True, text=True, timeout=60)


def said_by(*arguments: str) -> str:
    done = command(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_job_is_listed_shown_and_cancelled(tmp_path: Path, capsys: Any) -> None:
    checkpoints = {"execution.checkpointing.interval": "200ms", "execution.checkpointing.dir": str(tmp_path)}
    env = StreamExecutionEnvironment({"parallelism.default": 1, **checkpoints})
    numbers = env.from_source(DataGeneratorSource(records_per_second=1_000), None, "Numbers")
    numbers.key_by(lambda n: n % 3).map(lambda n: n).add_sink(lambda n: None)
    pattern = Pattern.begin("fourth").where(lambda n: n == 4).followed_by("none").where(lambda n: n < 0)
    CEP.pattern(numbers.key_by(lambda n: n % 3), pattern).in_processing_time().select(str).print()
    client = env.execute_async("endless")
    job = str(client.get_job_id())

    def has_counted() -> bool:
        return any(vertex["numRecordsIn"] > 0 for vertex in client.status()["vertices"])

    assert watching.eventually(has_counted, within_s=40)

    assert main(["list"]) == 0
    assert f"{job}  endless  RUNNING" in capsys.readouterr().out

    assert main(["status", "endless"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith(f"endless  {job}  RUNNING  since ")
    source, mapped = shown[4:6]
    assert source.startswith("Source: Numbers")
    assert int(mapped.split("Unnamed")[1].split()[1].replace(",", "")) > 0

    assert watching.eventually(lambda: client.checkpoints()["latest"]["completed"], within_s=40)
    assert main(["state", "matches", "endless"]) == 0
    key, waits, event = capsys.readouterr().out.splitlines()
    assert (key, event) == ("key 1", "    fourth: 4") and waits.startswith("  waits for 'none': began ")

    assert main(["cancel", job[:8]]) == 0
    assert capsys.readouterr().out == f"endless  {job}  CANCELED\n"
    with pytest.raises(JobCancelled):
        client.get_job_execution_result().result()
    assert main(["cancel", job]) == 1
    assert f"no job {job!r} on the cluster" in capsys.readouterr().err
    assert main(["list", "-a"]) == 0
    assert f"{job}  endless" in capsys.readouterr().out


@pytest.mark.spec("S06")
@pytest.mark.timeout(240)
def test_a_detached_job_is_followed_and_stopped_from_other_terminals(tmp_path: Path, capsys: Any) -> None:
    def answer(*arguments: str) -> str:
        """Return what a command says in this process: to start one for each question takes seconds."""
        assert main(list(arguments)) == 0
        return str(capsys.readouterr().out)

    script = tmp_path / "job.py"
    script.write_text(ENDLESS, encoding="utf-8")
    submitted = said_by("run", "--detached", "-p", "2", str(script))
    first, second = submitted.splitlines()
    job = first.split()[-1]
    assert first == f"Job has been submitted with JobID {job}" and len(job) == 32
    assert second == f"Job with JobID {job} was submitted detached and goes on. False"
    following = [sys.executable, "-m", "rayflink.cli.main", "logs", "detached", "--follow", "--vertex", "loud"]
    with subprocess.Popen(following, stdout=subprocess.PIPE, text=True) as follower:
        try:
            assert follower.stdout is not None
            seen = [next(follower.stdout) for _ in range(4)]
            with subprocess.Popen(following, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as other:
                assert other.stdout is not None
                next(other.stdout)
                other.terminate()
                assert (other.communicate(timeout=60)[1], other.returncode) == ("", 143)
            drivers = watching.drivers()
            assert job in said_by("list") and json.loads(answer("status", job, "--json"))["name"] == "detached"
            assert watching.drivers() == drivers, "a question is no job of Ray"
            assert said_by("stop", job[:10], "--no-savepoint") == f"detached  {job}  FINISHED\n"
            rest = follower.stdout.read()  # to its end: communicate() would lose what is buffered
        finally:
            follower.kill()
    lines = "".join(seen) + rest
    saw = [int(line.split(": saw ")[1]) for line in lines.splitlines() if ": saw " in line]
    assert saw == [100 * number for number in range(len(saw))] and lines.count("warned of ") == len(saw)
    assert lines.count("INFO mine: noted ") == len(saw)
    assert all("Source: Numbers -> loud (" in line for line in lines.splitlines())

    whole = said_by("logs", job)
    assert whole.count(": saw ") == len(saw) and ":actor_name:" not in whole
    assert f"coordinator: INFO rayflink.actors.on_ray.ray_coordinator: Job detached ({job}) is FINISHED." in whole
    assert "quiet -> Sink: Unnamed (2/2): INFO" in whole
    assert " (1/2): " not in answer("logs", job, "--subtask", "1")
    assert [job, "detached", "FINISHED"] in [line.split()[:3] for line in answer("list", "-a").splitlines()]
    assert job not in answer("list")
    os.kill(watching.pid_of(f"{job}/coordinator"), 9)  # it would keep the result for a minute
    assert watching.eventually(lambda: not watching.actors(), within_s=30)
    assert answer("status", job).startswith(f"detached  {job}  FINISHED  since ")
    assert answer("logs", job) == whole
    graver = answer("logs", job, "--level", "warning")
    assert graver.count("warned of ") == len(saw) and "noted" not in graver and "saw" not in graver


def test_the_log_and_the_failure_of_a_job_are_there_when_it_has_ended(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(FAILING, encoding="utf-8")
    done = command("run", str(script))
    assert done.returncode == 1 and "failed in 'divided', subtask 0: ZeroDivisionError" in done.stderr
    shown = said_by("status", "failing")
    assert "failing  " in shown and "  FAILED  since " in shown and "function of operator 'divided'" in shown
    log = said_by("logs", "failing")
    assert ": dividing by 1\n" in log and ": dividing by 0\n" in log and "coordinator: ERROR" in log
    assert f'coordinator:   File "{script}", line ' in log and "coordinator: ZeroDivisionError: " in log
    assert "ZeroDivisionError: " in shown


WAITS = """
import sys, time
from rayflink.common.watermark_strategy import WatermarkStrategy
from rayflink.connectors.files.file_source import FileSource, StreamFormat
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import MapFunction, StreamExecutionEnvironment

class Opens(MapFunction):
    def __init__(self, name):
        self.name = name
    def open(self, runtime_context):
        time.sleep(1)
        if self.name == "fails":
            raise LookupError("no prices today")
    def map(self, value):
        return value

NAME = sys.argv[1]
env = StreamExecutionEnvironment.get_execution_environment()
if NAME == "missing":
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "/not/there").build()
else:
    source = DataGeneratorSource(records_per_second=10)
stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "in")
stream.map(Opens(NAME)).add_sink(lambda value: None)
env.execute(NAME)
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "job.py"
    path.write_text(WAITS, encoding="utf-8")
    return str(path)


def test_a_detached_run_returns_an_error_where_the_job_cannot_start(script: str) -> None:
    missing = command("run", "-d", script, "missing")
    assert missing.returncode == 1 and "could not start" in missing.stderr
    assert "source 'Source: in' cannot be read: FileNotFoundError" in missing.stderr
    failed = command("run", "-d", "--wait", script, "fails")
    assert failed.returncode == 1 and "no prices today" in failed.stderr


def test_a_detached_run_that_waits_returns_when_all_tasks_run(script: str) -> None:
    began = command("run", "-d", "--wait", script, "runs")
    assert began.returncode == 0 and "has been submitted" in began.stdout
    [job] = [job for job in launch.list_jobs() if job["name"] == "runs"]
    assert {state for vertex in job["vertices"] for state in vertex["states"]} == {"RUNNING"}
    end(job["jid"])


def test_a_job_without_room_says_so_in_list_status_and_logs(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused = command("run", "-d", "-p", "3", script, "large")
    assert refused.returncode == 1 and refused.stdout == ""
    lack = "wants 3 CPU in all, of which the cluster has 2"
    assert f"was not started: it {lack}, and the cluster has no autoscaler" in refused.stderr
    assert launch.list_jobs() == []
    large = command("run", "-d", "--allow-waiting", "-p", "3", script, "large")
    assert large.returncode == 0
    assert f"job 'large' {lack}: it waits for more nodes, at most slot.request.timeout" in large.stderr

    def shown(*arguments: str) -> str:
        assert main([*arguments]) == 0
        return capsys.readouterr().out

    reason = "waiting for 3 slots of 1 CPU; the cluster has 2 CPUs, "
    assert watching.eventually(lambda: reason in shown("list"), 30)
    assert "CREATED, WAITING FOR SLOTS" in shown("list")
    assert reason in shown("status", "large").splitlines()[1]
    assert f"coordinator: WARNING rayflink.actors.on_ray.ray_slots: job 'large': {reason}" in shown("logs", "large")
    end(large.stdout.split()[-1])


def end(job: str) -> None:
    """Cancel a job, and end its coordinator, which would keep the result for a minute."""
    assert main(["cancel", job]) == 0
    os.kill(watching.pid_of(f"{job}/coordinator"), 9)
    assert watching.eventually(lambda: not watching.actors(), within_s=30)
