"""A session cluster of Flink itself, two processes on loopback: what rayflink's REST interface is compared with.

It needs a JDK; Flink's jars are downloaded from PyPI the first time.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import urllib.error
import urllib.request
import uuid
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.runs.environments import Environment, Unavailable, cache_directory
from benchmarks.servers.bound_process import start_bound
from tests.cluster.watching import eventually

VERSION = "2.3.0"
_PYPI = Environment("flink", (f"apache-flink-libraries=={VERSION}",), dependencies=False)
_SOURCE = Path(__file__).with_name("RestJobs.java")
_STARTS_WITHIN_S = 90
_OPENED = ("lang", "lang.reflect", "net", "io", "nio", "text", "time", "util", "util.concurrent")
_LOGGING = """rootLogger.level = INFO
rootLogger.appenderRef.file.ref = Main
appender.main.name = Main
appender.main.type = File
appender.main.fileName = ${sys:log.file}
appender.main.layout.type = PatternLayout
appender.main.layout.pattern = %d{yyyy-MM-dd HH:mm:ss,SSS} %-5p %-60c %x - %m%n
"""


@dataclass(frozen=True)
class FlinkCluster:
    """A running cluster.

    Args:
        url: of its REST interface.
        folder: of its files, which go when it ends.
    """

    url: str
    folder: Path

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Return the status and the document of an answer; what is no JSON is a string."""
        data = None if body is None else json.dumps(body).encode()
        return self._send(method, path, data, "application/json")

    def submit(self, program: str) -> str:
        """Run one of the jobs of RestJobs.java, and return its id."""
        jar = _jar(self.folder)
        boundary = uuid.uuid4().hex
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="jarfile"; filename="{jar.name}"\r\n'
        data = f"{head}Content-Type: application/x-java-archive\r\n\r\n".encode() + jar.read_bytes()
        data += f"\r\n--{boundary}--\r\n".encode()
        _, uploaded = self._send("POST", "/jars/upload", data, f"multipart/form-data; boundary={boundary}")
        name = uploaded["filename"].rpartition("/")[2]
        status, answer = self.ask("POST", f"/jars/{name}/run", {"entryClass": "RestJobs", "programArgsList": [program]})
        assert status == 200, answer
        return str(answer["jobid"])

    def wait_for(self, condition: Callable[[], bool], what: str, limit_s: float = _STARTS_WITHIN_S) -> None:
        """Wait until something holds.

        Raises:
            Unavailable: it does not hold in time.
        """
        if not eventually(condition, limit_s):
            raise Unavailable(f"not within {limit_s} s: {what}")

    def _send(self, method: str, path: str, data: bytes | None, content_type: str) -> tuple[int, Any]:
        request = urllib.request.Request(self.url + path, data, {"Content-Type": content_type}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                status, content = answer.status, answer.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            status, content = error.code, error.read().decode(errors="replace")
        try:
            return status, json.loads(content)
        except ValueError:
            return status, content


@contextmanager
def flink_cluster(options: Mapping[str, object] | None = None) -> Iterator[FlinkCluster]:
    """Run a cluster with one task manager of eight slots.

    Args:
        options: of Flink, beside those that the cluster needs.

    Raises:
        Unavailable: Java or the jars are missing, or the cluster does not start.
    """
    ports = _free_ports(3)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chosen = {**_options(folder, *ports), **(options or {})}
        (folder / "config.yaml").write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in chosen.items()))
        (folder / "log4j.properties").write_text(_LOGGING)
        (folder / "log").mkdir()
        cluster = FlinkCluster(f"http://127.0.0.1:{ports[0]}", folder)
        processes = [
            _start(folder, "jobmanager", "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"),
            _start(folder, "taskmanager", "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"),
        ]
        try:
            cluster.wait_for(lambda: _has_task_manager(cluster), "a task manager of Flink")
            yield cluster
        finally:
            for process in processes:
                process.kill()
                process.wait()


@contextmanager
def flink_history_server(archives: Path) -> Iterator[FlinkCluster]:
    """Run Flink's history server over a folder.

    Raises:
        Unavailable: Java or the jars are missing, or it does not start.
    """
    [port] = _free_ports(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chosen = {"historyserver.web.address": "127.0.0.1", "historyserver.web.port": port,
                  "historyserver.archive.fs.dir": f"file://{archives}",
                  "historyserver.archive.fs.refresh-interval": 200, "historyserver.web.tmpdir": f"{folder}/web",
                  "jobmanager.rpc.address": "127.0.0.1"}  # fmt: skip
        (folder / "config.yaml").write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in chosen.items()))
        (folder / "log4j.properties").write_text(_LOGGING)
        (folder / "log").mkdir()
        server = FlinkCluster(f"http://127.0.0.1:{port}", folder)
        process = _start(folder, "history", "org.apache.flink.runtime.webmonitor.history.HistoryServer")
        try:
            server.wait_for(lambda: _has_jobs(server), "a job in Flink's history server")
            yield server
        finally:
            process.kill()
            process.wait()


def _has_jobs(server: FlinkCluster) -> bool:
    try:
        status, overview = server.ask("GET", "/jobs/overview")
    except OSError:
        return False
    return status == 200 and isinstance(overview, dict) and bool(overview["jobs"])


def _has_task_manager(cluster: FlinkCluster) -> bool:
    try:
        status, overview = cluster.ask("GET", "/overview")
    except OSError:
        return False
    return status == 200 and isinstance(overview, dict) and overview["taskmanagers"] == 1


def _options(folder: Path, rest: int, rpc: int, task_rpc: int) -> dict[str, object]:
    return {
        "rest.address": "127.0.0.1", "rest.bind-address": "127.0.0.1", "rest.port": rest,
        "jobmanager.rpc.address": "127.0.0.1", "jobmanager.rpc.port": rpc, "jobmanager.bind-host": "127.0.0.1",
        "taskmanager.host": "127.0.0.1", "taskmanager.bind-host": "127.0.0.1", "taskmanager.rpc.port": task_rpc,
        "taskmanager.numberOfTaskSlots": 8, "taskmanager.cpu.cores": 8.0,
        "taskmanager.memory.task.heap.size": "384m", "taskmanager.memory.task.off-heap.size": "0b",
        "taskmanager.memory.framework.heap.size": "128m", "taskmanager.memory.framework.off-heap.size": "128m",
        "taskmanager.memory.network.min": "64m", "taskmanager.memory.network.max": "64m",
        "taskmanager.memory.managed.size": "64m", "taskmanager.memory.jvm-metaspace.size": "256m",
        "taskmanager.memory.jvm-overhead.min": "192m", "taskmanager.memory.jvm-overhead.max": "192m",
        "jobmanager.memory.heap.size": "512m", "jobmanager.memory.off-heap.size": "128m",
        "jobmanager.memory.jvm-metaspace.size": "256m", "jobmanager.memory.jvm-overhead.min": "192m",
        "jobmanager.memory.jvm-overhead.max": "192m",
        "metrics.fetcher.update-interval": 200, "web.refresh-interval": 300, "heartbeat.interval": 1000,
        "rest.flamegraph.enabled": True, "rest.profiling.enabled": True, "web.upload.dir": f"{folder}/upload",
        "execution.checkpointing.dir": f"file://{folder}/checkpoints",
        "execution.checkpointing.savepoint-dir": f"file://{folder}/savepoints",
        "io.tmp.dirs": f"{folder}/tmp",
    }  # fmt: skip


def _start(folder: Path, name: str, main: str) -> subprocess.Popen[bytes]:
    java = shutil.which("java")
    if java is None or shutil.which("javac") is None:
        raise Unavailable("no java and javac on PATH: install a JDK 17 (openjdk-17-jdk-headless)")
    opened = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in _OPENED]
    sizes = ["-Xmx512m", "-Xms64m", "-XX:MaxMetaspaceSize=256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    logs = [f"-Dlog.file={folder}/log/{name}.log", f"-Dlog4j.configurationFile=file:{folder}/log4j.properties"]
    jars = f"{_libraries()}/*"
    command = [java, *sizes, *opened, *logs, "-cp", jars, main, "--configDir", str(folder)]
    with (folder / "log" / f"{name}.out").open("wb") as out:
        return start_bound(command, stdout=out, stderr=out, env={**os.environ, "FLINK_CONF_DIR": str(folder)})


def _libraries() -> Path:
    return _PYPI.site_packages(cache_directory()) / "pyflink" / "lib"


def _jar(folder: Path) -> Path:
    """Return the jar of the jobs, compiled on first call."""
    jar = folder / "rest-jobs.jar"
    if not jar.exists():
        classes = folder / "classes"
        command = ["javac", "-nowarn", "-cp", f"{_libraries()}/*", "-d", str(classes), str(_SOURCE)]
        subprocess.run(command, check=True, timeout=120)
        with zipfile.ZipFile(jar, "w") as archive:
            archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\nMain-Class: RestJobs\n\n")
            for path in sorted(classes.rglob("*.class")):
                archive.write(path, path.relative_to(classes))
    return jar


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for free in sockets:
            free.bind(("127.0.0.1", 0))
        return [free.getsockname()[1] for free in sockets]
    finally:
        for free in sockets:
            free.close()
