"""The pages of the architecture agree with the code: storeys, rooms, and every file and function that they name."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from types import FrameType

import pytest

from rayflink.common import Encoder, WatermarkStrategy
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.file_system import FileSink, FileSource, StreamFormat
from tests.source_files import PRODUCT, ROOT, source_files
from tests.test_architecture import ROOMS, STOREYS

OVERVIEW = ROOT / "ARCHITECTURE.md"
TOPICS = ROOT / "docs" / "architecture"
PAGES = [OVERVIEW, *sorted(TOPICS.rglob("*.md"))]
NEIGHBOURS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "glossary.md"]
DECISIONS = sorted((TOPICS / "decisions").glob("[0-9]*.md"))

WALKS = ("One record", "One barrier")
MOST_LINES = 250
MOST_COLUMNS = 100
MOST_HOPS = 32
_NAMED = re.compile(r"(?<![\w/.-])((?:actors|state|rayflink|tests|benchmarks|examples)/[\w/]*(?:\.\w+)?)(?::(\w+))?")
_HOP = re.compile(r"^(\d+)\. `([\w/]+\.py):(\w+)`", re.M)
_ROW = re.compile(r"^\| (.+?) \| (.+?) \|", re.M)


def names_in_cell(cell: str) -> list[str]:
    """Return the code spans of a table's cell."""
    return re.findall(r"`([^`]+)`", cell)


def rows_of_table(heading: str) -> list[tuple[str, str]]:
    """Return the first two cells of each row below the header that begins with `heading`."""
    table = OVERVIEW.read_text(encoding="utf-8").partition(f"\n| {heading} |")[2].partition("\n\n")[0]
    return _ROW.findall(table)


@cache
def functions_of(path: Path) -> frozenset[str]:
    """Return the names of all functions, methods and classes that a file defines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


def unknown_names(text: str) -> list[str]:
    """Return the paths, and the functions in files, that a text names and the repository does not have."""
    unknown = []
    for path, function in _NAMED.findall(text):
        place = ROOT / path
        if not place.exists() or (function and function not in functions_of(place)):
            unknown.append(f"{path}:{function}" if function else path)
    return unknown


def test_the_table_of_storeys_is_the_one_that_imports_are_checked_against():
    parts = defaultdict(list)
    for part, storey in STOREYS.items():
        parts[storey].append(part)
    wanted = [(str(storey), parts[storey]) for storey in sorted(parts, reverse=True)]
    assert [(storey, names_in_cell(cell)) for storey, cell in rows_of_table("storey")] == wanted


def test_storeys_are_whole_numbers_without_a_gap():
    assert sorted(set(STOREYS.values())) == list(range(max(STOREYS.values()) + 1))


def test_the_table_of_rooms_is_the_one_that_imports_are_checked_against():
    wanted = [(f"`{part}`", rooms.split()) for part, rooms in ROOMS.items()]
    assert [(part, names_in_cell(cell)) for part, cell in rows_of_table("part")] == wanted


@pytest.mark.parametrize("page", [*PAGES, *NEIGHBOURS], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_and_functions_named_on_a_page_exist(page):
    assert unknown_names(page.read_text(encoding="utf-8")) == []


@cache
def classes() -> frozenset[str]:
    """Return the names of all classes of the product."""
    return frozenset(
        name for file in source_files(PRODUCT) for name in re.findall(r"^ *class (\w+)", file.text(), re.M)
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_classes_named_on_a_page_exist(page):
    named = set(re.findall(r"`([A-Z]\w*[a-z]\w*)(?:\.\w+)?`", page.read_text(encoding="utf-8")))
    assert named - classes() == set()


def test_a_name_that_does_not_exist_is_seen():
    text = "`actors/task/task.py:step`, `actors/task/task.py:stride`, (actors/nowhere/task.py) and `state/`"
    assert unknown_names(text) == ["actors/task/task.py:stride", "actors/nowhere/task.py"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_prose_lines_are_short(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > MOST_COLUMNS and not line.startswith("|")] == []


def test_the_overview_is_short():
    assert len(OVERVIEW.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def hops_of(heading: str) -> list[tuple[int, str, str]]:
    """Return the number, file and function of each hop of a walk in the overview."""
    section = OVERVIEW.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [(int(number), file, function) for number, file, function in _HOP.findall(section)]


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_has_few_hops(walk):
    numbers = [number for number, _, _ in hops_of(walk)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert 20 <= len(numbers) <= MOST_HOPS


@pytest.mark.slow
def test_a_job_in_one_thread_passes_every_hop_that_needs_no_ray(tmp_path):
    walked = {(file, function) for walk in WALKS for _, file, function in hops_of(walk)}
    functions = {function for _, function in walked}
    called: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name in functions:
            file = Path(code.co_filename).resolve()
            if file.is_relative_to(ROOT):
                called.add((file.relative_to(ROOT).as_posix(), code.co_name))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        count_words(tmp_path)
    finally:
        sys.setprofile(before)
    assert {hop for hop in walked - called if not hop[0].startswith("actors/on_ray/")} == set()


def count_words(folder: Path) -> None:
    """Run the job of the walks in this thread: four files of words, checkpoints in a folder, a file sink."""
    (folder / "in").mkdir()
    for number in range(4):
        (folder / "in" / f"{number}.txt").write_text("to be or not to be\n" * 3000, encoding="utf-8")
    configuration = {
        "execution.target": "local",
        "execution.checkpointing.interval": "10ms",
        "execution.checkpointing.dir": str(folder / "checkpoints"),
    }
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(folder / "in")).build()
    lines = env.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), "read text")
    words = lines.flat_map(lambda line: [(word, 1) for word in line.split()])
    sink = FileSink.for_row_format(str(folder / "out"), Encoder.simple_string_encoder()).build()
    words.key_by(lambda pair: pair[0]).sum(1).map(str).sink_to(sink)
    env.execute("word count")


@pytest.mark.parametrize("number", range(1, len(DECISIONS) + 1))
def test_a_decision_says_why_and_what_follows(number):
    page = DECISIONS[number - 1]
    text = page.read_text(encoding="utf-8")
    assert page.name.startswith(f"{number:03}-") and text.startswith(f"# {number:03}: ")
    assert re.findall(r"^## (.*)$", text, re.M) == ["Context", "Decision", "Measurement", "Consequence"]


@pytest.mark.parametrize("folder", [TOPICS, TOPICS / "decisions"], ids=lambda folder: folder.name)
def test_an_index_names_every_page_of_its_folder(folder):
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert {page.name for page in folder.glob("*.md")} - {"README.md"} <= set(re.findall(r"\]\(([^)]+)\)", index))
