"""Jobs that run in the gateway's process, by hand."""

from __future__ import annotations

import pytest

from rayflink.common.errors import JobCancelled
from rayflink.gateway.local_jobs import LocalJobs
from rayflink.shell.sql_session import SqlSession


def test_a_job_that_comes_while_the_gateway_ends_is_cancelled():
    session, jobs = SqlSession({"execution.target": "local"}), LocalJobs()
    session.run("CREATE TABLE endless (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '10')")
    session.run("CREATE TABLE nowhere (n BIGINT) WITH ('connector' = 'blackhole')")
    jobs.close()
    job = session.run("INSERT INTO nowhere SELECT n FROM endless", jobs.let_run).job
    assert jobs.running == 0
    with pytest.raises(JobCancelled):
        job.client.get_job_execution_result().result()
