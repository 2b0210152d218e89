"""Python files that a program takes along, on Ray."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rayflink.datastream import StreamExecutionEnvironment

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


@pytest.mark.spec("S01", "archive")
def test_tasks_import_what_the_program_has_added(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "taken_along.py").write_text("def twice(n):\n    return 2 * n\n\nWHERE = __file__\n")
    env = StreamExecutionEnvironment({"execution.target": "ray"})
    env.add_python_file(str(tmp_path / "taken_along.py"))

    import taken_along

    def doubled(number: int) -> tuple[int, str]:
        return taken_along.twice(number), taken_along.WHERE

    found = list(env.from_collection([1, 2]).map(doubled).execute_and_collect())
    assert [number for number, _ in found] == [2, 4]
    assert all(where.endswith("taken_along.py") and where != str(tmp_path / "taken_along.py") for _, where in found)


PROGRAM = """
import json, os
from pathlib import Path
from rayflink.datastream import StreamExecutionEnvironment
import beside
from shop.orders import priced

def priced_late(number):
    import late
    return number, priced(number), late.WHERE, os.getpid()

env = StreamExecutionEnvironment({"execution.target": "ray", "parallelism.default": "2",
                                  "rayflink.ray.placement-strategy": "STRICT_SPREAD"})

from rayflink.launch import ray_jobs
taken_along = ray_jobs.beside_program

def gone_then():
    files = taken_along()
    for name in ("beside.py", "lowest.py", "late.py", "shop"):  # as if the nodes were other machines
        (Path(__file__).parent / name).rename(Path(__file__).parent.parent / f"not_{name}")
    return files

ray_jobs.beside_program = gone_then
rows = env.from_sequence(1, 4).rebalance().map(beside.twice).map(priced_late).execute_and_collect()
print(json.dumps(sorted(rows)))
"""


def test_modules_beside_the_program_are_on_every_node(tmp_path: Path) -> None:
    folder = tmp_path / "program"
    (folder / "shop").mkdir(parents=True)
    (folder / "job.py").write_text(PROGRAM)
    (folder / "beside.py").write_text("import lowest\n\ndef twice(n):\n    return lowest.TWO * n\n")
    (folder / "lowest.py").write_text("TWO = 2\n")
    (folder / "late.py").write_text("WHERE = __file__\n")
    (folder / "shop" / "__init__.py").write_text("")
    (folder / "shop" / "orders.py").write_text("def priced(n):\n    return n / 2\n")
    command = [sys.executable, "-m", "rayflink.cli.main", "run", str(folder / "job.py")]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    rows = json.loads(ran.stdout)
    assert [row[:2] for row in rows] == [[2 * n, float(n)] for n in range(1, 5)]
    assert len({pid for *_, pid in rows}) == 2, "both nodes had work"
    assert not any(where.startswith(str(tmp_path)) for _, _, where, _ in rows)
