"""Python files that a program takes along, on Ray."""

from __future__ import annotations

import sys

import pytest

from rayflink.datastream import StreamExecutionEnvironment

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


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
