"""The examples of the page about Kafka."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from benchmarks.servers.kafka_broker import KafkaCluster

PAGE = Path(__file__).parents[3] / "docs" / "kafka.md"


@pytest.mark.slow
def test_the_examples_of_the_page_run(kafka: KafkaCluster) -> None:
    names = {"servers": kafka.bootstrap_servers}
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS, globs=names)
    assert found.attempted > 20
    assert found.failed == 0
