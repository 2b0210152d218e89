"""Whatever goes wrong, and at whatever parallelism a job goes on: what its sink has committed is each record once."""

from __future__ import annotations

import os

import pytest

from rayflink.testing import CommittedSink, random_faults, simulate
from tests.simulation.exactly_once import expected, run
from tests.simulation.seeds import Log, main, processes, run_all, table, work
from tests.simulation.topologies import BY_NAME, TOPOLOGIES

FEW = 1
MANY = 223
"""Seeds of each topology here, 2,000 of all; `python -m tests.simulation.seeds` runs as many as wanted."""
PARTS = 8
"""Tests into which those are divided: each is over in seconds, and on a machine that does much else in time."""

every_topology = pytest.mark.parametrize("name", [topology.name for topology in TOPOLOGIES])


@pytest.mark.slow
@pytest.mark.spec("X33", "end-to-end")
@every_topology
@pytest.mark.parametrize("seed", range(FEW))
def test_a_few_seeds_commit_each_record_once(name, seed):
    run(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seed"), [("two phases", 3425), ("files", 1985), ("files", 2030)])
def test_no_record_is_dealt_to_a_task_that_has_finished(name, seed):
    run(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seed"), [("window", 1342), ("timers", 2400)])
def test_no_coordinator_deletes_files_of_another(name, seed):
    run(name, seed)


@pytest.fixture(scope="module")
def two_processes():
    """Two that run seeds; None where tests run beside one another already."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        yield None
    else:
        with processes(2) as pool:
            yield pool


@pytest.mark.spec("X33", "end-to-end")
@pytest.mark.soak
@pytest.mark.slow
@every_topology
@pytest.mark.parametrize("part", range(PARTS))
def test_thousands_of_seeds_commit_each_record_once(name, part, two_processes):
    tally = run_all([name], range(FEW + part, FEW + MANY, PARTS), two_processes)[name]
    print(table({name: tally}))
    assert not tally.failures, f"{len(tally.failures)} seeds failed:\n" + "\n\n".join(tally.failures)
    assert tally.restarts and tally.checkpoints and tally.coordinators and tally.rescales


@pytest.mark.slow
def test_a_seed_that_fails_is_told_with_its_story(monkeypatch):
    expected(BY_NAME["timers"])
    monkeypatch.setattr(CommittedSink, "records", lambda system: ["another record"])
    name, tally = work(("timers", range(3, 5)))
    assert (name, tally.seeds, len(tally.failures)) == ("timers", 2, 2)
    for seed, told in zip((3, 4), tally.failures, strict=True):
        assert f"topology 'timers', seed {seed}: " in told and "63 records are lost and 1 too many" in told
        assert "the last moves:" in told and "run 1 at parallelism" in told


@pytest.mark.slow
def test_the_log_of_seeds_goes_on_behind_what_was_cut_off(tmp_path, capsys):
    path = tmp_path / "seeds.log"
    command = ["--topology", "timers", "--log", str(path), "--seeds"]
    assert main([*command, "7:8"]) == 0
    path.write_text(path.read_text() + '{"seeds": [8')
    assert main([*command, "7:9"]) == 0
    assert [seeds for seeds, _, _ in Log(path).parts()] == [range(7, 8), range(8, 9)]
    assert "timers    2 " in capsys.readouterr().out


@pytest.mark.parametrize("name", [
    pytest.param(one.name, marks=[pytest.mark.slow] * bool(number % 3)) for number, one in enumerate(TOPOLOGIES)
])  # fmt: skip
def test_two_runs_of_one_seed_have_one_trace(name):
    graph = BY_NAME[name].graph(2)
    traces = []
    for _ in range(2):
        BY_NAME[name].forget()
        traces.append([str(each) for each in simulate(graph, 5, random_faults(11, graph, 500)).happenings])
    BY_NAME[name].forget()
    assert traces[0] == traces[1] and len(traces[0]) > 100
