"""Rows that a query writes into partitions are there once, whoever is killed in between."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rayflink.actors.messages.states import JobStatus
from rayflink.graph.job_graph import JobGraph
from rayflink.table.statements.insert_plan import insert_into
from rayflink.testing import UNRELIABLE_NETWORK, KillTask, SimulatedDisk, StopWithSavepoint, simulate
from tests.table.queries.golden_queries import FOLDER, GoldenQuery
from tests.table.queries.paced_orders import PacedConnector
from tests.table.queries.test_stopped_queries import OPTIONS

QUERY = "SELECT id, customer, product FROM orders"


def program(folder: Path, form: str, width: int, path: str = "", overwrites: bool = False) -> tuple[Any, JobGraph]:
    """The job that writes orders into partitions by customer."""
    query = GoldenQuery(FOLDER / ("values" if not overwrites else "json_batch_top"))
    restored = {"execution.state-recovery.path": path} if path else {}
    options = {"parallelism.default": str(width), **OPTIONS, **restored}
    if overwrites:
        del options["execution.checkpointing.interval"]
    t_env = query.environment(**options)
    folder.mkdir(exist_ok=True)
    t_env.execute_sql(
        f"CREATE TABLE t (id BIGINT, customer STRING, product STRING) PARTITIONED BY (customer) WITH "
        f"('connector' = 'filesystem', 'path' = '{folder}', 'format' = '{form}',"
        f"'sink.partition-commit.policy.kind' = 'success-file', 'sink.partition-commit.delay' = '3 ms')"
    )
    if not overwrites:
        catalogs = t_env._context.catalogs
        found_path, table = catalogs.find(("orders",))
        catalogs.replace(found_path, replace(table, connected=PacedConnector(4)))
    plan = t_env.sql_query(QUERY)._plan
    with t_env._queries.env.apart():
        (sink,) = t_env._queries.optimize([insert_into(t_env._context, "t", plan, overwrites)])
        t_env._queries.planner([sink]).write(sink)  # type: ignore[arg-type]
        return t_env, t_env._queries.env.get_job_graph()


def rows(t_env: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in t_env.sql_query("SELECT * FROM t").to_arrow().to_pylist())


def hidden(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if path.is_file()]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "json", "parquet", "arrow"])
def test_partitions_are_written_once_under_kills(form, tmp_path):
    t_env, job = program(tmp_path / "plain", form, 2)
    story = simulate(job, 1)
    assert story.status is JobStatus.FINISHED, story.describe(story.failure)
    expected, moves = rows(t_env), story.happenings[-1].move
    assert len(list((tmp_path / "plain").iterdir())) > 2 and expected
    names = [vertex.name.split(" ")[0] for vertex in job.vertices]
    for seed in range(4):
        t_env, job = program(tmp_path / f"killed{seed}", form, 2)
        faults = [KillTask(names[-1], move=int(moves * (0.25 + 0.15 * at + 0.05 * seed))) for at in range(3)]
        story = simulate(job, seed, [*faults, KillTask(names[0], move=int(moves * 0.8)), *UNRELIABLE_NETWORK])
        assert story.status is JobStatus.FINISHED, story.describe(story.failure)
        assert rows(t_env) == expected, story.describe("other rows")
        assert not hidden(tmp_path / f"killed{seed}")
        assert all((part / "_SUCCESS").exists() for part in (tmp_path / f"killed{seed}").iterdir())


@pytest.mark.slow
def test_partitions_are_written_once_over_a_savepoint_and_another_parallelism(tmp_path):
    t_env, job = program(tmp_path / "plain", "json", 2)
    story = simulate(job, 1)
    expected, moves, stopped = rows(t_env), story.happenings[-1].move, 0
    for seed, part in enumerate((0.3, 0.6)):
        folder, disk = tmp_path / f"stopped{seed}", SimulatedDisk()
        t_env, job = program(folder, "json", 2)
        story = simulate(job, seed, [StopWithSavepoint(move=int(moves * part))], disk)
        if story.stopped_with:
            stopped += 1
            _, job = program(folder, "json", 3, story.stopped_with)
            story = simulate(job, seed, (), disk)
        assert story.status is JobStatus.FINISHED, story.describe(story.failure)
        assert rows(t_env) == expected
    assert stopped


@pytest.mark.slow
def test_what_is_overwritten_is_replaced_once_under_kills(tmp_path):
    t_env, job = program(tmp_path / "plain", "csv", 2, overwrites=True)
    story = simulate(job, 1)
    assert story.status is JobStatus.FINISHED, story.describe(story.failure)
    expected, moves = rows(t_env), story.happenings[-1].move
    assert expected
    names = [vertex.name.split(" ")[0] for vertex in job.vertices]
    for seed in range(4):
        folder = tmp_path / f"killed{seed}"
        (folder / "customer=ann").mkdir(parents=True)
        (folder / "customer=ann" / "old.csv").write_text("99,old\n")
        t_env, job = program(folder, "csv", 2, overwrites=True)
        faults = [KillTask(name, move=int(moves * (0.2 * (at + 1) + 0.1 * seed))) for at, name in enumerate(names)]
        story = simulate(job, seed, [*faults, *UNRELIABLE_NETWORK])
        assert story.status is JobStatus.FINISHED, story.describe(story.failure)
        assert rows(t_env) == expected, story.describe("other rows")
        assert not hidden(folder)
