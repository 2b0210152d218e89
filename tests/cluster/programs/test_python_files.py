"""Python files that a program takes along, on Ray."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rayflink.datastream import StreamExecutionEnvironment
from rayflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from rayflink.table.udf import udf
from tests.common.user_code.tiny_wheel import write_wheel

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


def test_functions_of_queries_have_modules_packages_and_archives(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "added_module.py").write_text("def twice(n):\n    return 2 * n\n")
    write_wheel(tmp_path / "cached", "tinyflink", "VALUE = 40\n")
    (tmp_path / "requirements.txt").write_text("tinyflink==1.0\n")
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as packed:
        packed.writestr("number.txt", "300")
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("execution.target", "ray")
    t_env.add_python_file(str(tmp_path / "added_module.py"))
    t_env.set_python_requirements(str(tmp_path / "requirements.txt"), str(tmp_path / "cached"))
    t_env.add_python_archive(str(tmp_path / "data.zip"), "data")

    @udf(result_type=DataTypes.BIGINT())
    async def computed(n):
        import added_module
        import tinyflink

        return added_module.twice(n) + tinyflink.VALUE + int(Path("data/number.txt").read_text())

    t_env.create_temporary_function("computed", computed)
    rows = list(t_env.execute_sql("SELECT computed(n) FROM (VALUES (1), (2)) AS t(n)").collect())
    assert [row[0] for row in rows] == [342, 344]


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
