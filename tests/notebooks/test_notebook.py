"""The example's notebook in a kernel, as Jupyter runs it."""

from __future__ import annotations

import nbformat
import pytest
from nbclient import NotebookClient

from tests.source_files import ROOT


@pytest.mark.slow
def test_the_example_runs_and_shows_its_tables(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(ROOT / "examples" / "notebook.ipynb", as_version=4)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = ["".join(str(output.get("data", "")) for output in cell.get("outputs", [])) for cell in notebook.cells]
    orders, sums, shouted, view = shown[2], shown[5], shown[9], shown[-2]
    assert "<p>3 rows</p>" in orders
    assert '<td>tea</td><td class="rayflink-number">2</td><td class="rayflink-number">5.5</td>' in sums
    assert "CAKE" in shouted
    assert "End query" in view and "the query has ended" in view
    assert "the query has ended" in shown[-1]
