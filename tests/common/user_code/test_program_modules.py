"""Which modules beside a program it takes along."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from rayflink.common.user_code.program_modules import LARGEST_DATA_BYTES, Program, copy_modules, modules_beside


def write(folder: Path, **files: str) -> Path:
    """Python files; two underscores in a name stand for a folder."""
    for name, text in files.items():
        path = folder.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def found(folder: Path, main: str = "job.py", **loaded: ModuleType) -> list[str]:
    program = Program(str(folder / main), str(folder))
    return [str(Path(path).relative_to(folder)) for path in modules_beside(program, loaded)]


def test_modules_that_the_files_import_are_taken_along_and_others_are_not(tmp_path):
    write(
        tmp_path,
        job="import json, prices\nfrom shop.orders import parse\n\ndef late(n):\n    import lazy\n    return lazy\n",
        prices="import deeper\nimport numpy\n",
        deeper="",
        lazy="def f(n): return n\n",
        shop__orders="from .lines import split\nfrom common_names import NAMES\n",
        shop__lines="",
        common_names="",
        unused="",
        json="",
    )
    assert found(tmp_path) == ["common_names.py", "deeper.py", "lazy.py", "prices.py", "shop"]


def test_a_module_that_is_loaded_is_taken_along_when_it_came_from_there(tmp_path):
    write(tmp_path, job="import here, elsewhere\n", here="", elsewhere="", dynamic="")
    here, elsewhere, dynamic = (ModuleType(name) for name in ("here", "elsewhere", "dynamic"))
    here.__file__, dynamic.__file__ = str(tmp_path / "here.py"), str(tmp_path / "dynamic.py")
    elsewhere.__file__ = "/usr/lib/elsewhere.py"
    assert found(tmp_path, here=here, elsewhere=elsewhere, dynamic=dynamic) == ["dynamic.py", "here.py"]


def test_the_package_of_a_program_that_is_a_module_is_taken_along_from_above_it(tmp_path):
    write(tmp_path, app__job="from . import parts\nimport beside\n", app__parts="", beside="")
    main = ModuleType("__main__")
    main.__file__, main.__package__ = str(tmp_path / "app" / "job.py"), "app"
    program = Program.of(main)
    assert program.folder == str(tmp_path)
    assert modules_beside(program, {}) == (str(tmp_path / "app"), str(tmp_path / "beside.py"))


def test_a_notebook_has_the_modules_it_has_loaded_from_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(write(tmp_path, loaded="", other=""))
    module = ModuleType("loaded")
    module.__file__ = str(tmp_path / "loaded.py")
    program = Program.of(ModuleType("__main__"))
    assert modules_beside(program, {"loaded": module}) == (str(tmp_path / "loaded.py"),)


def test_a_program_of_an_installed_package_and_one_that_is_no_python_have_none(tmp_path):
    installed = write(tmp_path / "site-packages", job="import other\n", other="")
    assert found(installed) == []
    write(tmp_path, job="import (\n", other="")
    assert found(tmp_path) == []


@pytest.mark.parametrize("size", [LARGEST_DATA_BYTES, LARGEST_DATA_BYTES + 1])
def test_a_package_is_copied_with_small_data_and_large_data_is_named(tmp_path, size):
    write(tmp_path, shop____init__="", shop__orders="A = 1\n")
    (tmp_path / "shop" / "__pycache__").mkdir(exist_ok=True)
    (tmp_path / "shop" / "rates.csv").write_bytes(b"x" * size)
    (tmp_path / "one.py").write_text("")
    target = tmp_path / "target"
    target.mkdir()
    left_out = copy_modules([str(tmp_path / "shop"), str(tmp_path / "one.py")], str(target))
    kept = size <= LARGEST_DATA_BYTES
    assert left_out == ([] if kept else [str(tmp_path / "shop" / "rates.csv")])
    assert (target / "shop" / "orders.py").exists() and (target / "one.py").exists()
    assert (target / "shop" / "rates.csv").exists() == kept and not (target / "shop" / "__pycache__").exists()


@pytest.mark.slow
def test_the_modules_of_this_process_are_looked_through_without_error():
    assert isinstance(modules_beside(Program.of(sys.modules["__main__"]), dict(sys.modules)), tuple)


def test_import_statements_of_every_form_are_found(tmp_path: Path) -> None:
    for name in "abcdefghijkl":
        (tmp_path / f"{name}.py").write_text("")
    program = tmp_path / "program.py"
    program.write_text(
        "import a, b.x as y, \\\n  c\nfrom d.x import (\n  z,\n)\nimportant = 1\nif 1: import e; import f\n"
        "# import k\ndef function():\n\timport g\ntry: from h import z\nexcept ImportError: pass\n"
        "from i import *\nfrom .j import z\n"
    )
    modules = modules_beside(Program(str(program), str(tmp_path)), {})
    assert [Path(path).stem for path in modules] == list("abcdefghi")
