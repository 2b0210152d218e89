"""Which of the long tests a command runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings, strategies

from rayflink.testing import HARDSHIPS
from tests.suite import soak
from tests.suite.soak import Slice

ROOT = Path(__file__).resolve().parents[2]
MODULE = """
import pytest

@pytest.mark.soak
@pytest.mark.parametrize("n", range(12))
def test_long(n):
    pass

def test_daily():
    pass
"""


class Plugin:
    """Chooses tests as the conftest does, and keeps the names of those that run."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_addoption(self, parser: pytest.Parser) -> None:
        soak.add_option(parser)

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        return soak.is_left_out(collection_path, config) or None

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        soak.check_marks(items)
        soak.deselect(config, items)
        soak.limit_examples(config, items)

    def pytest_runtest_call(self, item: pytest.Item) -> None:
        self.names.append(item.name)


def ran(folder: Path, *arguments: str, name: str = "", module: str = MODULE) -> list[str]:
    """The tests that a command runs."""
    file = folder / "test_module.py"
    file.write_text(module, encoding="utf-8")
    plugin = Plugin()
    command = [f"{file}{name}", "-c", str(ROOT / "pyproject.toml"), "-qq", "--noconftest", "-p", "no:cacheprovider"]
    command += ["-p", "no:unraisableexception"]  # at the end it would search all that the process holds for garbage
    assert pytest.main([*command, *arguments], [plugin]) == 0
    return plugin.names


def test_slices_divide_the_tests_and_each_gets_its_share():
    names = [f"tests/test_module.py::test_long[{number}]" for number in range(800)]
    parts = [[name for name in names if name in Slice(number, 8)] for number in range(1, 9)]
    assert sorted(sum(parts, [])) == sorted(names)
    assert all(60 <= len(part) <= 140 for part in parts)
    assert Slice.parse("all") == Slice(1, 1) and Slice.parse("3/8") == Slice(3, 8)


@pytest.mark.parametrize("text", ["0/8", "9/8", "1", "1/0", "a/b", "1/8/2", ""])
def test_what_is_no_slice_is_refused(text):
    with pytest.raises(pytest.UsageError, match="wanted 'all' or K/N with 1 <= K <= N"):
        Slice.parse(text)


ALL = [f"test_long[{number}]" for number in range(12)]


@pytest.mark.parametrize(
    ("expression", "excluded"),
    [
        ("not slow and not ray", {"slow", "ray"}),
        ("not ray", {"ray"}),
        ("", set()),
        ("not (slow or ray)", set()),
        ("not slow or ray", set()),
        ("ray and not slow", set()),
    ],
)
def test_marks_are_excluded_by_a_list_of_them_alone(expression, excluded):
    assert soak.excluded_marks(expression) == excluded


@pytest.mark.parametrize(
    ("line", "marks"),
    [
        ("pytestmark = pytest.mark.slow", {"slow"}),
        ("pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures('cluster')]",
         {"ray", "slow", "usefixtures"}),
        ("pytestmark = [\n    pytest.mark.timeout(240),\n    pytest.mark.slow,\n]", {"timeout", "slow"}),
        ("pytestmark = pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.slow), 2])", {"parametrize"}),
        ("@pytest.mark.slow\ndef test_it(): ...", set()),
        ("text = '''\npytestmark = pytest.mark.slow\n'''", set()),
    ],
)  # fmt: skip
def test_the_marks_of_all_tests_of_a_module_are_read_without_importing_it(line, marks):
    assert soak.marks_of_module(f"import pytest\n\n{line}\n") == marks


def test_a_module_whose_tests_are_all_excluded_is_not_imported(tmp_path):
    file = tmp_path / "test_module.py"
    file.write_text("import pytest\npytestmark = [pytest.mark.slow]\n")

    def is_left_out(expression):
        option = SimpleNamespace(markexpr=expression)
        return soak.is_left_out(file, SimpleNamespace(option=option, getoption=lambda name: "", rootpath=tmp_path))

    assert is_left_out("not slow and not ray") and is_left_out("not slow")
    assert not any(is_left_out(each) for each in ("not ray", "slow", ""))


@pytest.mark.slow
def test_long_tests_run_when_they_are_asked_for_and_never_otherwise(tmp_path):
    assert ran(tmp_path) == ["test_daily"]
    assert ran(tmp_path, "-m", "not slow") == ["test_daily"]
    assert ran(tmp_path, "--soak", "all") == [*ALL, "test_daily"]
    assert ran(tmp_path, "-m", "soak") == ALL
    halves = [ran(tmp_path, "-m", "soak", "--soak", f"{number}/2") for number in (1, 2)]
    assert all(halves) and sorted(sum(halves, [])) == sorted(ALL)


@pytest.mark.slow
def test_a_long_test_that_is_named_runs(tmp_path):
    assert ran(tmp_path, name="::test_long[7]") == ["test_long[7]"]
    assert ran(tmp_path, name="::test_long") == ALL


def left_out(file: Path, part: str = "", marks: str = "") -> bool:
    asked = SimpleNamespace(getoption=lambda name: part, rootpath=file.parent, option=SimpleNamespace(markexpr=marks))
    return soak.is_left_out(file, asked)


def test_parts_divide_the_files_and_each_gets_its_share(tmp_path):
    files = [tmp_path / f"test_{number}.py" for number in range(300)]
    parts = [[file for file in files if not left_out(file, f"{number}/3")] for number in (1, 2, 3)]
    assert sorted(sum(parts, [])) == sorted(files) and all(len(part) > 70 for part in parts)
    assert not any(left_out(tmp_path / "conftest.py", f"{number}/3") for number in (1, 2, 3))


def test_where_only_tests_on_ray_run_files_without_them_are_left_out(tmp_path):
    with_ray, without = tmp_path / "test_a.py", tmp_path / "test_b.py"
    with_ray.write_text("@pytest.mark.ray\ndef test_a(): ...", encoding="utf-8")
    without.write_text("@pytest.mark.slow\ndef test_b(): ...", encoding="utf-8")
    only_on_ray = {"ray": True, "soak and ray": True, "not ray": False, "ray or slow": False, "": False}
    for marks, wanted in only_on_ray.items():
        assert (left_out(with_ray, marks=marks), left_out(without, marks=marks)) == (False, wanted), marks


def test_a_test_on_ray_in_a_file_that_does_not_name_the_mark_is_refused(tmp_path):
    file = tmp_path / "test_a.py"
    item = SimpleNamespace(path=file, get_closest_marker=lambda name: name == "ray")
    file.write_text("@pytest.mark.ray\ndef test_a(): ...", encoding="utf-8")
    soak.check_marks([item])
    file.write_text("@on_ray\ndef test_a(): ...", encoding="utf-8")
    with pytest.raises(pytest.UsageError, match="`-m ray` leaves it out"):
        soak.check_marks([item])


TRIES = """
from hypothesis import given, settings, strategies

tried = []

@settings(max_examples={})
@given(strategies.integers())
def test_numbers(number):
    tried.append(number)

def test_tried():
    assert len(tried) == {}
"""


@pytest.mark.parametrize(
    ("asked", "arguments", "wanted"),
    [(90, [], 15), (30, [], 8), (4, [], 4), (80, ["--soak", "all"], 80)],
    ids=["a sixth", "but not too few", "those of few", "all where all are asked for"],
)
@pytest.mark.slow
def test_examples_of_hypothesis_are_fewer_day_by_day(tmp_path, asked, arguments, wanted):
    assert len(ran(tmp_path, *arguments, module=TRIES.format(asked, wanted))) == 2


def test_a_test_that_tries_all_its_examples_is_long():
    @settings(max_examples=90)
    @given(strategies.integers())
    def tries(number: int) -> None: ...

    def is_long(asked: str) -> bool:
        item = SimpleNamespace(function=tries, nodeid="a", stash=pytest.Stash(), get_closest_marker=lambda name: None)
        soak.limit_examples(SimpleNamespace(getoption=lambda name: asked), [item])
        return soak.is_long(item)

    assert is_long("all") and not is_long("")


def test_the_cases_of_operators_are_whole_jobs_in_a_part_of_the_tests(monkeypatch):
    ran: list[str] = []
    monkeypatch.setitem(HARDSHIPS, "as a job in this process", HARDSHIPS["as a job in this process"])

    def jobs(asked: str, test: str) -> int:
        """How many of a hundred tests run their case as a whole job."""
        monkeypatch.setitem(HARDSHIPS, "as a simulated job", lambda case, expected, name: ran.append(name))
        soak.sample_jobs(SimpleNamespace(getoption=lambda name: asked))
        ran.clear()
        for number in range(100):
            monkeypatch.setenv("PYTEST_CURRENT_TEST", f"{test}[{number}] (call)")
            HARDSHIPS["as a simulated job"](None, None, "")
        return len(ran)

    sampled, with_slice = (jobs(asked, "tests/operators/keyed/test_rolling.py::test_a") for asked in ("", "1/4"))
    assert 20 <= sampled <= 50 and sampled + 8 <= with_slice <= 70
    assert jobs("all", "tests/operators/keyed/test_rolling.py::test_a") == 100
    assert jobs("", "tests/testing/test_verify.py::test_a") == 100
