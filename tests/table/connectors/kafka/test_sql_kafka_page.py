"""The examples of docs/sql-kafka.md."""

import doctest
from pathlib import Path

import pytest

from benchmarks.servers.kafka_broker import KafkaCluster

PAGE = Path(__file__).parents[4] / "docs" / "sql-kafka.md"


@pytest.mark.slow
def test_the_examples_of_the_page_are_true(kafka: KafkaCluster) -> None:
    for topic in ("orders", "sensors", "sensors-dead", "changes", "latest"):
        kafka.create_topic(topic)
    given = {"servers": kafka.bootstrap_servers}
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS, globs=given)
    assert found.attempted >= 15
    assert found.failed == 0
