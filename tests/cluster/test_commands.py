"""The commands of `rayflink` on jobs that run on Ray, from other processes than those that submitted them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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


def test_a_job_is_listed_shown_and_cancelled(capsys: Any) -> None:
    env = StreamExecutionEnvironment({"parallelism.default": 1})
    numbers = env.from_source(DataGeneratorSource(records_per_second=1_000), None, "Numbers")
    numbers.key_by(lambda n: n % 3).map(lambda n: n).add_sink(lambda n: None)
    client = env.execute_async("endless")
    job = str(client.get_job_id())

    def has_counted() -> bool:
        return any(vertex["numRecordsIn"] > 0 for vertex in client.status()["vertices"])

    assert watching.eventually(has_counted, within_s=40)

    assert main(["list"]) == 0
    assert f"{job}  endless  RUNNING" in capsys.readouterr().out

    assert main(["status", "endless"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"endless  {job}  RUNNING"
    source, mapped = shown[4:6]
    assert source.startswith("Source: Numbers")
    assert int(mapped.split("Unnamed")[1].split()[1].replace(",", "")) > 0

    assert main(["cancel", job[:8]]) == 0
    assert capsys.readouterr().out == f"endless  {job}  CANCELED\n"
    with pytest.raises(JobCancelled):
        client.get_job_execution_result().result()
    assert main(["cancel", job]) == 1
    assert f"no job {job!r} on the cluster" in capsys.readouterr().err
    assert main(["list", "-a"]) == 0
    assert f"{job}  endless" in capsys.readouterr().out


def test_a_detached_job_is_followed_and_stopped_from_other_terminals(tmp_path: Path) -> None:
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
            assert said_by("stop", job[:10], "--no-savepoint") == f"detached  {job}  FINISHED\n"
            rest = follower.stdout.read()  # to its end: communicate() would lose what is buffered
        finally:
            follower.kill()
    lines = "".join(seen) + rest
    saw = [int(line.split(": saw ")[1]) for line in lines.splitlines() if ": saw " in line]
    assert saw == [100 * number for number in range(len(saw))] and lines.count("warned of ") == len(saw)
    assert all("Source: Numbers -> loud (" in line for line in lines.splitlines())

    whole = said_by("logs", job)
    assert whole.count(": saw ") == len(saw)
    assert f"coordinator: INFO rayflink.actors.ray_coordinator: Job detached ({job}) is FINISHED." in whole
    assert "quiet -> Sink: Unnamed (2/2): INFO" in whole
    assert " (1/2): " not in said_by("logs", job, "--subtask", "1")
    assert [job, "detached", "FINISHED"] in [line.split()[:3] for line in said_by("list", "-a").splitlines()]
    assert job not in said_by("list")
    os.kill(watching.pid_of(f"{job}/coordinator"), 9)  # it would keep the result for a minute
    assert watching.eventually(lambda: not watching.actors(), within_s=30)
    assert said_by("status", job).startswith(f"detached  {job}  FINISHED\n")
    assert said_by("logs", job) == whole


def test_the_log_and_the_failure_of_a_job_are_there_when_it_has_ended(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(FAILING, encoding="utf-8")
    done = command("run", str(script))
    assert done.returncode == 1 and "failed in 'divided', subtask 0: ZeroDivisionError" in done.stderr
    shown = said_by("status", "failing")
    assert "failing  " in shown and "  FAILED\n" in shown and "function of operator 'divided'" in shown
    log = said_by("logs", "failing")
    assert ": dividing by 1\n" in log and ": dividing by 0\n" in log and "coordinator: ERROR" in log
    assert f'coordinator:   File "{script}", line ' in log and "coordinator: ZeroDivisionError: " in log
    assert "ZeroDivisionError: " in shown
