"""A mosquitto broker for the tests: Debian's package, on a free loopback port, in a temporary folder."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from paho.mqtt import client as mqtt

from benchmarks.servers.bound_process import start_bound
from rayflink.connectors.mqtt.mqtt_broker import MqttBroker
from rayflink.connectors.mqtt.mqtt_connection import MqttConnection, MqttSession

STARTS_WITHIN_S = 60
_SETTINGS = """
user root
listener {port} 127.0.0.1
allow_anonymous true
password_file {folder}/passwords
persistence true
persistence_location {folder}/
autosave_interval 0
max_inflight_messages 0
max_queued_messages 0
max_packet_size 65536
log_type none
{more}
"""


def program(name: str) -> str | None:
    """The path of a program of the package."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")


class MosquittoProcess:
    """A broker that may be ended and started again; it saves its messages when it is ended by SIGTERM.

    Args:
        more: settings in its file.
    """

    def __init__(self, folder: Path, more: str = "") -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.place = f"127.0.0.1:{self.port}"
        self.url = f"mqtt://{self.place}"
        self.saved = folder / "mosquitto.db"
        self._settings = folder / "mosquitto.conf"
        self._settings.write_text(_SETTINGS.format(port=self.port, folder=folder, more=more))
        subprocess.run([program("mosquitto_passwd"), "-b", "-c", folder / "passwords", "limited", "s3cret"], check=True)
        self._names = count()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        command = [program("mosquitto"), "-c", self._settings]
        self._process = start_bound(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + STARTS_WITHIN_S
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    return
            except OSError:
                assert self._process.poll() is None, "mosquitto has ended"
            assert time.monotonic() < deadline, "mosquitto does not answer"
            time.sleep(0.02)

    def end(self, by: signal.Signals = signal.SIGTERM) -> None:
        assert self._process is not None
        self._process.send_signal(by)
        self._process.wait()

    def new_name(self) -> str:
        """A topic, or client id, of its own."""
        return f"n{next(self._names)}"

    def publish(self, values: Sequence[object], topic: str, qos: int = 1, retain: bool = False) -> None:
        client = self._client()
        client.loop_start()
        sent = [client.publish(topic, value if isinstance(value, bytes) else str(value), qos, retain)
                for value in values]  # fmt: skip
        for info in sent:
            info.wait_for_publish(20)
        client.disconnect()
        client.loop_stop()

    def begin_session(self, client_id: str, pattern: str) -> None:
        """Have the broker keep messages for a client that is not there yet."""
        session = MqttSession(client_id, True, 60)
        connection = MqttConnection(MqttBroker(self.url), session, lambda _: None)
        connection.open()
        connection.subscribe([pattern])
        connection.close()

    @contextmanager
    def subscribed(self, pattern: str) -> Iterator[Received]:
        """What arrives in the meantime."""
        received, client, ready = Received(), self._client(), threading.Event()
        client.on_message = lambda _client, _data, message: received.add(message)
        client.on_subscribe = lambda *_: ready.set()
        client.loop_start()
        client.subscribe(pattern, 2)
        assert ready.wait(20)
        try:
            yield received
        finally:
            client.disconnect()
            client.loop_stop()

    def _client(self) -> mqtt.Client:
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
        client.max_inflight_messages_set(1_000)
        client.connect("127.0.0.1", self.port)
        return client


class Received:
    """Messages that a subscriber has received."""

    def __init__(self) -> None:
        self.messages: list[mqtt.MQTTMessage] = []
        self._changed = threading.Condition()

    def add(self, message: mqtt.MQTTMessage) -> None:
        with self._changed:
            self.messages.append(message)
            self._changed.notify_all()

    def await_values(self, values: set[str], seconds: float = 30) -> list[str]:
        """All payloads, once these are among them."""
        with self._changed:
            self._changed.wait_for(lambda: values <= {message.payload.decode() for message in self.messages}, seconds)
            return [message.payload.decode() for message in self.messages]
