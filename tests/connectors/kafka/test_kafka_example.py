"""The example of a clickstream writes what its docstring states."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.servers.kafka_broker import KafkaCluster
from tests.test_examples import run_example, stated_output

pytestmark = pytest.mark.slow


def test_the_clickstream_prints_what_its_docstring_states(kafka: KafkaCluster, tmp_path: Path) -> None:
    printed = run_example("kafka_clickstream.py", kafka.bootstrap_servers, cwd=tmp_path)
    assert printed == stated_output("kafka_clickstream")


@pytest.mark.ray
def test_the_clickstream_is_the_same_on_ray(kafka: KafkaCluster, tmp_path: Path) -> None:
    printed = run_example("kafka_clickstream.py", kafka.bootstrap_servers, "--ray", cwd=tmp_path)
    assert printed == stated_output("kafka_clickstream")
