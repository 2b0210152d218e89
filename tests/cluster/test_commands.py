"""`rayflink list`, `status` and `cancel` on a job that runs on Ray."""

from __future__ import annotations

import pytest

from rayflink.cli.main import main
from rayflink.common.errors import JobCancelled
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from tests.cluster import watching

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


def test_a_job_is_listed_shown_and_cancelled(capsys):
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
