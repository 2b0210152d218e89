"""PyFlink's own examples of Kafka run on the broker of the tests, with its address and a topic of their own."""

from __future__ import annotations

import json
import re
import subprocess
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.servers.kafka_broker import KafkaCluster
from tests.connectors.kafka.kafka_topics import messages_in
from tests.pyflink.pyflink_examples import FOLDER, KAFKA, prepared, printed_texts

pytestmark = pytest.mark.slow

PAIRS = ["1,hi", "2,hello", "3,hi", "4,hello", "5,hi", "6,hello", "6,hello"]
ROWS = [f"+I[{pair}]" for pair in PAIRS]
COUNTRIES = [json.dumps({"id": id, "country": name}) for id, name in enumerate(("USA", "Canada", "Germany"), 1)]
PRINTED = {"avro_format": ROWS, "csv_format": ROWS, "json_format": ROWS, "bytearray_format": COUNTRIES}
"""Example of Kafka -> the rows that it reads from its topic."""


def program_for(kafka: KafkaCluster, name: str, topic: str, folder: Path) -> tuple[list[str], dict[str, str], set[str]]:
    """The command that runs an example with another address and topic, its environment, and what it prints itself."""
    text, command, environment = prepared(name, folder, "local", "", FOLDER)
    text, places = re.subn("localhost:9092", kafka.bootstrap_servers, text)
    assert places and KAFKA[name] in text
    Path(command[-1]).write_text(text.replace(KAFKA[name], topic), encoding="utf-8")
    return command, environment, printed_texts(text)


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.soak] * (name != "avro_format")) for name in sorted(PRINTED)
])  # fmt: skip
def test_an_example_reads_what_it_has_written(kafka: KafkaCluster, name: str, tmp_path: Path) -> None:
    command, environment, remarks = program_for(kafka, f"connectors/kafka_{name}", kafka.new_topic(1), tmp_path)
    errors = tmp_path / "errors"
    with errors.open("w") as stderr, subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True
    ) as running:  # fmt: skip
        assert running.stdout is not None
        try:  # it reads without an end
            lines = (line.rstrip() for line in running.stdout)
            rows = (line for line in lines if line not in remarks and "[rdkafka#" not in line)
            read = list(islice(rows, len(PRINTED[name])))
        finally:
            running.kill()
    assert sorted(re.sub(r"^\d+> ", "", row) for row in read) == sorted(PRINTED[name]), errors.read_text()
    said = errors.read_text()
    assert "'pipeline.jars'" in said and "rayflink[kafka]" in said


def test_the_example_with_keys_writes_its_fields_as_keys_and_values(kafka: KafkaCluster, tmp_path: Path) -> None:
    topic = kafka.new_topic(3)
    command, environment, _ = program_for(kafka, "connectors/kafka_row_field_extractor_example", topic, tmp_path)
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=60)
    found = sorted((message.key(), json.loads(message.value())["type"]) for message in messages_in(
        kafka.bootstrap_servers, topic
    ))  # fmt: skip
    assert found == [
        (b"user-001", "add_to_cart"), (b"user-001", "purchase"), (b"user-002", "view"), (b"user-003", "purchase")
    ]  # fmt: skip
