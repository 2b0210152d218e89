"""What pip, setuptools and Ray make of the checkout: one package, with real files, on the Pythons it says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

from rayflink.cluster.pages.static_pages import FILES
from tests.source_files import EVERYTHING, PRODUCT, ROOT, source_files

pytestmark = [pytest.mark.slow]

WITH_RAY = """
import sys
import ray

runtime_env = {sys.argv[1]: sys.argv[2] if sys.argv[1] == "working_dir" else [sys.argv[2]]}
ray.init(address="local", num_cpus=1, object_store_memory=100_000_000, include_dashboard=False, log_to_driver=False,
         runtime_env=runtime_env)

@ray.remote
def where():
    import rayflink.actors, rayflink.state.keys.key_groups
    return rayflink.actors.__file__, rayflink.state.keys.key_groups.__file__

print(*ray.get(where.remote(), timeout=60))
ray.shutdown()
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Standard output of a command; its whole output is in the failure."""
    unwanted = {"PYTHONPATH", "VIRTUAL_ENV", "RAY_ADDRESS", "RAY_AUTH_MODE"}
    clean = {name: value for name, value in os.environ.items() if name not in unwanted}
    finished = subprocess.run(
        [str(part) for part in command], cwd=cwd, env={**clean, **environment}, capture_output=True, text=True
    )
    assert finished.returncode == 0, f"{command}\n{finished.stdout}\n{finished.stderr}"
    return finished.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The product's files as a clone holds them, symlinks included; builds leave their litter here."""
    folder = tmp_path_factory.mktemp("checkout")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", ".mypy_cache")
    for name in (name for name in EVERYTHING if (ROOT / name).is_dir()):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
    for path in ROOT.iterdir():
        if path.is_file() and not path.name.startswith("."):
            shutil.copy2(path, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that `pip install .` makes."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ".", cwd=checkout)
    (built,) = folder.glob("*.whl")
    return built


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if "dist-info" not in name}


def test_the_wheel_holds_every_module_once_and_as_a_real_file(wheel):
    wanted = {}
    for file in source_files(PRODUCT):
        name = file.name if file.name.startswith("rayflink/") else f"rayflink/{file.name}"
        wanted[name] = file.path.read_bytes()
    for page in FILES.iterdir():
        wanted[f"rayflink/cluster/pages/files/{page.name}"] = page.read_bytes()
    found = contents(wheel)
    assert sorted(found) == sorted([*wanted, "rayflink/py.typed"])
    assert {name: found[name] for name in wanted} == wanted


def test_a_type_checker_sees_the_types_of_an_installed_wheel(wheel, tmp_path):
    pytest.importorskip("mypy", reason="mypy is of the extra dev")
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", cwd=tmp_path)
    [packages] = (tmp_path / "venv" / "lib").glob("python3.*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    program = (
        "from rayflink.datastream import DataStream\ndef f(s: DataStream[int]) -> None:\n    reveal_type(s.map(str))\n"
    )
    (tmp_path / "program.py").write_text(program)
    options = ["--strict", "--config-file=", "--cache-dir", tmp_path / "cache"]
    options += ["--python-executable", tmp_path / "venv" / "bin" / "python", "program.py"]
    shown = run(sys.executable, "-m", "mypy", *options, cwd=tmp_path)
    assert 'Revealed type is "rayflink.datastream.streams.stream.DataStream[str]"' in shown
    assert "Success" in shown


def test_the_wheel_names_its_pythons_its_licence_and_its_command(wheel):
    with zipfile.ZipFile(wheel) as archive:
        info = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
        metadata = HeaderParser().parsestr(archive.read(f"{info}/METADATA").decode())
        commands = archive.read(f"{info}/entry_points.txt").decode()
        licence = archive.read(f"{info}/licenses/LICENSE").decode()
    assert set(metadata["Requires-Python"].split(",")) == {">=3.10", "<3.15"}
    assert metadata["License-Expression"] == "Apache-2.0"
    assert licence.lstrip().startswith("Apache License")
    assert "rayflink = rayflink.cli.main:main" in commands


def test_other_pythons_are_refused_with_both_versions_named(wheel, tmp_path):
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--no-index", "--target", tmp_path]
    options = ["--only-binary=:all:", "--python-version", "3.15", wheel]
    refused = subprocess.run([str(part) for part in [*command, *options]], capture_output=True, text=True)
    assert refused.returncode != 0
    assert "requires a different Python: 3.15" in refused.stderr
    assert "<3.15" in refused.stderr


@pytest.mark.soak
def test_an_sdist_holds_no_links_and_builds_the_same_wheel(checkout, wheel, tmp_path):
    run(sys.executable, "-m", "build", "--sdist", "--outdir", tmp_path, ".", cwd=checkout)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        assert not [member.name for member in archive if member.issym() or member.islnk()]
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, sdist, cwd=tmp_path)
    (again,) = tmp_path.glob("*.whl")
    assert contents(again) == contents(wheel)


@pytest.mark.soak
def test_an_editable_install_follows_the_checkout(checkout, tmp_path):
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--editable", checkout, cwd=tmp_path)
    code = "import rayflink.actors, rayflink.state.keys.key_groups as k; print(rayflink.actors.__file__, k.__file__)"
    for path in run(python, "-c", code, cwd=tmp_path).split():
        assert Path(path).resolve().is_relative_to(checkout.resolve())
    code = "from importlib.util import find_spec; print([n for n in ('actors', 'state', 'tests') if find_spec(n)])"
    assert run(python, "-c", code, cwd=tmp_path) == "[]\n"


@pytest.mark.ray
@pytest.mark.parametrize(("option", "below"), [
    ("working_dir", ""), pytest.param("py_modules", "rayflink", marks=pytest.mark.soak)
])  # fmt: skip
def test_ray_ships_the_checkout_to_its_workers(checkout, tmp_path, option, below):
    places = run(sys.executable, "-c", WITH_RAY, option, checkout / below, cwd=tmp_path).split()
    assert len(places) == 2
    for place in places:
        assert "runtime_resources" in place, f"{place} is not the copy that Ray shipped"
