"""Apache Kafka for the tests: brokers in KRaft mode on loopback, whose jars Maven brings into a cache folder."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path

import pytest

from benchmarks.servers.bound_process import start_bound
from benchmarks.servers.kafka_certificates import Certificates, create_certificates

VERSION = "4.1.0"
HEAP = "512m"
STARTS_WITHIN_S = 60
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>rayflink</groupId><artifactId>kafka-for-tests</artifactId><version>1</version>
<dependencies><dependency>
<groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version>
</dependency></dependencies></project>
"""
_SETTINGS = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
    "SASL:SASL_PLAINTEXT,TLS:SSL",
    "listener.name.tls.ssl.keystore.type": "PEM",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_me="right";',
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    "log.cleaner.enable": "false",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.initial.task.delay.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
_JVM = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Djava.awt.headless=true"]


def kafka_jars() -> Path:
    """Return the folder with Kafka's jars, which the first call on a machine downloads; skip where that cannot be."""
    if shutil.which("java") is None:
        pytest.skip("Java is not installed, Kafka needs 17 or newer: apt-get install openjdk-17-jre-headless")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "rayflink"
    folder = cache / f"kafka-{VERSION}"
    if folder.exists():
        return folder
    if shutil.which("mvn") is None:
        pytest.skip("Maven is not installed, it downloads Kafka: apt-get install maven")
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "kafka.lock", "w") as lock:
        flock(lock, LOCK_EX)
        if folder.exists():
            return folder
        with tempfile.TemporaryDirectory(dir=cache) as work:
            Path(work, "pom.xml").write_text(_POM)
            copy = ["dependency:copy-dependencies", "-DoutputDirectory=lib", "-DincludeScope=runtime"]
            maven = subprocess.run(
                ["mvn", "-q", "-B", *copy], cwd=work, capture_output=True, text=True, timeout=300, check=False
            )
            if maven.returncode:
                pytest.skip(f"Maven cannot download Kafka: {maven.stdout[-300:]}")
            os.rename(Path(work, "lib"), folder)
    return folder


_PORTS = range(20_000, 32_768)


def free_ports(count: int) -> list[int]:
    """Return ports of loopback that nothing listens on.

    They are below those that the system gives to connections: a server that is killed finds its port free again.
    """
    sockets: list[socket.socket] = []
    try:
        while len(sockets) < count:
            sockets.append(socket.socket())
            try:
                sockets[-1].bind(("127.0.0.1", secrets.choice(_PORTS)))
            except OSError:
                sockets.pop().close()
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class KafkaBroker:
    """One broker, which can be killed and started again with its data.

    Args:
        node: its number, from 1.
        home: a folder for its data and logs.
        settings: of its file server.properties.
    """

    def __init__(self, node: int, home: Path, jars: Path, cluster: str, settings: Mapping[str, str]) -> None:
        self.node, self.home, self._jars = node, home, jars
        home.mkdir(parents=True)
        lines = {**_SETTINGS, **settings, "node.id": str(node), "log.dirs": str(home / "data")}
        self._properties = home / "server.properties"
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        format_storage = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._properties)]
        subprocess.run(self._java("64m", *format_storage), check=True, capture_output=True, timeout=60, cwd=home)
        self._process: subprocess.Popen[bytes] | None = None

    def _java(self, heap: str, *arguments: str) -> list[str]:
        return ["java", f"-Xmx{heap}", *_JVM, "-cp", f"{self._jars}/*", *arguments]

    def start(self) -> None:
        """Start the process; it takes some seconds until it answers."""
        with open(self.home / "log", "ab") as log:
            command = self._java(HEAP, "kafka.Kafka", str(self._properties))
            self._process = start_bound(command, stdout=log, stderr=log, cwd=self.home, start_new_session=True)

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End the process, without notice by default, and wait for its end."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGCONT)
            process.send_signal(how)
            process.wait(timeout=30)

    def freeze(self) -> None:
        """Stop the process until `thaw`: its connections stay, and nothing answers.

        The signal goes to one of its threads, which stops the others when its turn comes; until then they go on.
        """
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self) -> None:
        """Let a frozen process go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    @property
    def is_running(self) -> bool:
        """Return whether the process is alive."""
        return self._process is not None and self._process.poll() is None


class KafkaCluster:
    """The brokers of one cluster.

    Args:
        brokers: in the order of their ports.
        bootstrap_servers: host:port of each, with commas between.
        sasl_servers: the same for clients with SASL_PLAINTEXT, mechanism PLAIN, user "me" and password "right".
        tls_servers: the same for clients with SSL, which trust the authority of `certificates`.
    """

    def __init__(
        self,
        brokers: Sequence[KafkaBroker],
        bootstrap_servers: str,
        sasl_servers: str,
        tls_servers: str,
        certificates: Certificates,
    ) -> None:
        self.brokers, self.bootstrap_servers, self.certificates = brokers, bootstrap_servers, certificates
        self.sasl_servers, self.tls_servers = sasl_servers, tls_servers

    def wait_until_ready(self, within_s: float = STARTS_WITHIN_S) -> None:
        """Return once all brokers that run have joined.

        Raises:
            RuntimeError: they have not in time; ends with the log of the first.
        """
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        wanted = sum(broker.is_running for broker in self.brokers)
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            try:
                if len(admin.list_topics(timeout=1).brokers) >= wanted:
                    return
            except KafkaException:
                if not any(broker.is_running for broker in self.brokers):
                    break
            time.sleep(0.1)
        raise RuntimeError(f"Kafka did not start: {(self.brokers[0].home / 'log').read_text()[-2000:]}")

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Create a topic, on all brokers, and wait until each knows it."""
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        topic = NewTopic(name, partitions, min(3, len(self.brokers)), config=dict(config or {}))
        admin.create_topics([topic])[name].result(30)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            found = admin.list_topics(name, timeout=5).topics[name].partitions
            if len(found) == partitions and all(partition.leader >= 0 for partition in found.values()):
                return
            time.sleep(0.05)
        raise RuntimeError(f"the topic {name!r} has no leaders")

    def delete_topic(self, name: str) -> None:
        """Delete a topic; its files go a minute later, or as `log.segment.delete.delay.ms` of the brokers says."""
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        admin.delete_topics([name])[name].result(30)

    def add_partitions(self, name: str, partitions: int) -> None:
        """Let a topic have so many partitions, and wait until each can be read."""
        from confluent_kafka import Consumer, KafkaException, TopicPartition
        from confluent_kafka.admin import AdminClient, NewPartitions

        servers = {"bootstrap.servers": self.bootstrap_servers, "log_level": 0}
        admin = AdminClient(servers)
        admin.create_partitions([NewPartitions(name, partitions)])[name].result(30)
        consumer, deadline = Consumer({**servers, "group.id": "-"}), time.monotonic() + 30
        missing = set(range(partitions))
        while missing and time.monotonic() < deadline:
            try:
                consumer.get_watermark_offsets(TopicPartition(name, min(missing)), timeout=5)
                missing.remove(min(missing))
            except KafkaException:
                time.sleep(0.05)
        consumer.close()
        assert not missing, f"partitions {missing} of {name} cannot be read"

    def new_topic(self, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """Create a topic with a name of its own, and return that."""
        name = f"topic-{uuid.uuid4().hex[:12]}"
        self.create_topic(name, partitions, config)
        return name


@contextmanager
def kafka_cluster(brokers: int = 1, settings: Mapping[str, str] | None = None) -> Iterator[KafkaCluster]:
    """Start a cluster, which ends with the block, and yield it when it answers; skip where Kafka cannot be had."""
    pytest.importorskip("confluent_kafka")
    jars = kafka_jars()
    home = Path(tempfile.mkdtemp(prefix="rfkafka-", dir="/tmp"))
    ports = free_ports(4 * brokers)
    own, controllers, with_login, with_tls = (ports[first::4] for first in range(4))
    cluster_id = uuid.uuid4().hex[:22]
    replicas = str(min(3, brokers))
    started: list[KafkaBroker] = []
    try:
        certificates = create_certificates(home)
        for node, (port, controller) in enumerate(zip(own, controllers, strict=True), 1):
            voters = ",".join(f"{number}@127.0.0.1:{at}" for number, at in enumerate(controllers, 1))
            public = f"PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{with_login[node - 1]},"
            public += f"TLS://127.0.0.1:{with_tls[node - 1]}"
            addresses = {
                "listeners": f"{public},CONTROLLER://127.0.0.1:{controller}",
                "advertised.listeners": public,
                "listener.name.tls.ssl.keystore.location": str(certificates.broker),
                "controller.quorum.voters": voters,
                "offsets.topic.replication.factor": replicas,
                "transaction.state.log.replication.factor": replicas,
                "transaction.state.log.min.isr": str(max(1, int(replicas) - 1)),
                "share.coordinator.state.topic.replication.factor": replicas,
                **(settings or {}),
            }
            broker = KafkaBroker(node, home / str(node), jars, cluster_id, addresses)
            started.append(broker)
            broker.start()
        servers = (",".join(f"127.0.0.1:{port}" for port in group) for group in (own, with_login, with_tls))
        cluster = KafkaCluster(started, *servers, certificates)
        cluster.wait_until_ready()
        yield cluster
    finally:
        for broker in started:
            broker.kill()
        shutil.rmtree(home, ignore_errors=True)
