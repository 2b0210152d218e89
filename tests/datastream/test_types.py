"""What type checkers know of a program: the types of records, keys and state go from step to step.

mypy is asked here. pyright 1.1.414 passes both programs too, and finds each wrong spelling. It is no part of
`make lint`, for it needs node and downloads itself.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from rayflink.datastream import DataStream, OutputTag
from rayflink.datastream.state import ValueStateDescriptor
from tests.datastream import typed_clicks, typed_kinds

PROGRAM, KINDS = Path(typed_clicks.__file__), Path(typed_kinds.__file__)
ROOT = PROGRAM.parents[2]
WRONG = [
    ("clicks.map(lambda c: c.user)", "clicks.map(lambda c: c.usr)", '"Click" has no attribute "usr"'),
    ("clicks.flat_map(lambda c: [c.page])", "clicks.flat_map(lambda c: [c.pag])", '"Click" has no attribute "pag"'),
    ("key_by(lambda c: c.user)", "key_by(lambda c: c.usr)", '"Click" has no attribute "usr"'),
    ('filter(lambda c: c.page == "home")', 'filter(lambda c: c.pag == "home")', '"Click" has no attribute "pag"'),
    ("lambda one, other: other)", "lambda one, other: other.page)", "str"),
    ("(self.count.value() or 0) + 1", "self.count.value() + 1", "Unsupported operand types for +"),
    ("self.pages.add(value.page)", "self.pages.add(1)", 'incompatible type "int"; expected "str"'),
    ("longest: DataStream[str]", "longest: DataStream[int]", 'incompatible type "Longest"'),
    ("first: list[str]", "first: list[int]", "list[int]"),
    ("clicks.filter(Home())", "users.filter(Home())", 'incompatible type "Home"'),
]
"""Right spelling, a wrong one, and a part of what mypy says of that."""

WRONG_KINDS = [
    ("read: DataStream[Click]", "read: DataStream[str]", "CollectionSource"),
    ("drawn: DataStream[Price]", "drawn: DataStream[Click]", 'incompatible type "Generated"'),
    ("self.cents.update(value.cents)", "self.cents.update(value.page)", 'expected "int | None"'),
    ("self.most.add(value.cents)", "self.most.add(value.page)", 'expected "int | None"'),
    ("mean is None or mean.is_integer()", "mean is None or mean.hexx()", '"float" has no attribute "hexx"'),
    (".put(value.page, value.cents)", ".put(value.cents, value.cents)", 'expected "str"'),
    ("len(ctx.get_current_key())", "ctx.get_current_key() + 1", "Unsupported operand types"),
    ("key, context.window().end + sum", "key, context.window().ends + sum", '"TimeWindow" has no attribute "ends"'),
    ("both.map(Label())", "prices.connect(clicks).map(Label())", 'incompatible type "Label"'),
    (
        "both.map((lambda c: c.user, lambda p: p.page))",
        "both.map((lambda c: c.user, lambda p: p.user))",
        '"Price" has no',
    ),
    ("both.flat_map(Labels())", "prices.connect(clicks).flat_map(Labels())", 'incompatible type "Labels"'),
    ("both.process(Noted())", "prices.connect(clicks).process(Noted())", 'incompatible type "Noted"'),
    ("notes: DataStream[int]", "notes: DataStream[str]", 'incompatible type "OutputTag[int]"'),
    ("by_page.connect(priced).process(", "clicks.key_by(lambda c: c.at).connect(priced).process(", '"Costs"'),
    ("both.key_by(PageOf(), lambda p: p.page)", "both.key_by(PageOf(), lambda p: p.user)", '"Price" has no'),
    ("clicks.connect(rules).process(", "prices.connect(rules).process(", 'incompatible type "Rated"'),
    ("by_page.connect(rules).process(", "clicks.key_by(lambda c: c.at).connect(rules).process(", '"KeyedRated"'),
    ("by_page.window(tens).process(InWindow())", "priced.window(tens).process(InWindow())", '"InWindow"'),
    ("starts: DataStream[int] = by_page", "starts: DataStream[int] = clicks", 'has no attribute "window"'),
    ("by_page.count_window(1).apply(OfCount())", "by_page.window(tens).apply(OfCount())", '"OfCount"'),
    ("[window.end, inputs[0].at]", "[window.end, inputs[0].cents]", '"Click" has no attribute "cents"'),
    (".aggregate(Ends(), OfAggregate())", ".aggregate(Ends(), InWindow())", "InWindow"),
    (".reduce(Last(), InWindow())", ".reduce(Last(), OfAggregate())", "OfAggregate"),
    (".process(OfAll())", ".process(InWindow())", '"AllWindowedStream" matches argument type "InWindow"'),
    ("lambda total, c: total + c.at", "lambda total, c: total + c.page", "Unsupported operand types"),
    ("clicks.join(prices)", "prices.join(clicks)", 'incompatible type "Priced"'),
    ("clicks.co_group(prices)", "prices.co_group(clicks)", 'incompatible type "PageOf"'),
    (
        "near: DataStream[str] = by_page.interval_join(priced)",
        "near: DataStream[str] = by_page.interval_join(by_page)",
        "Near",
    ),
    ("lambda c, p: p.cents - c.at", "lambda c, p: p.cents - c.cents", "Cannot infer type of lambda"),
    ("ordered_wait(clicks, Asked(), 1000)", "ordered_wait(prices, Asked(), 1000)", "Asked"),
    ("clicks.process(Tagger())", "prices.process(Tagger())", 'incompatible type "Tagger"'),
    ("cached: CachedDataStream[Click]", "cached: CachedDataStream[Price]", '"CachedDataStream[Click]"'),
    ("rounds.close_with(rounds.map(", "rounds.close_with(prices.map(", '"Price" has no attribute "user"'),
    ("ByLength(), PageOf()", "ByLength(), lambda c: c.at", 'parameter "Selected" of "partition_custom"'),
    ("clicks.split(lambda c: [c.page])", "clicks.split(lambda c: [c.cents])", '"Click" has no attribute "cents"'),
    ("clicks.sink_to(Kinds())", "prices.sink_to(Kinds())", 'incompatible type "Kinds"'),
    ("clicks.add_sink(Kept())", "prices.add_sink(Kept())", 'incompatible type "Kept"'),
    ("print(end=c.user[:0])", "print(end=c.usr[:0])", '"Click" has no attribute "usr"'),
    ("lambda row: str(row[0])", "lambda row: row.as_dict()", "dict[str, Any]"),
]
"""The same of the program with a function of each kind."""
SPELLINGS = {PROGRAM: WRONG, KINDS: WRONG_KINDS}


def test_a_typed_program_runs():
    assert typed_clicks.counts() == [("ann", 1), ("ann", 2), ("bob", 1)]


def test_typed_steps_give_what_untyped_ones_do():
    assert typed_clicks.results() == {
        "users": ["ann", "ann", "bob"],
        "pages": ["cart", "help", "home"],
        "homes": ["ann", "ann"],
        "lasts": ["cart", "help", "home"],
        "longest": ["----"],
        "lengths": ["4", "4", "4"],
        "first": ["ann"],
    }


def test_a_typed_function_of_each_kind_runs():
    streams = typed_kinds.streams()
    first, *others = [stream.map(lambda value, name=name: (name, value)) for name, stream in streams.items()]
    found = {name: [] for name in streams}
    for name, value in first.union(*others).execute_and_collect():
        found[name].append(value)
    assert all(found.values()), found
    assert sorted(found["halves"]) == ["cart 0x1.8000000000000p+0", "home 0x1.0000000000000p-1"]
    assert sorted(found["joined"]) == ["ann 5", "ann 7", "bob 7"]
    assert sorted(found["near"]) == ["ann 5 1", "ann 7 3", "bob 7 3"]
    assert sorted(found["rated"]) == ["ann 5", "ann 7", "bob 7"]
    assert sorted(found["ends"]) == [("cart", 15), ("home", 11)]
    assert sorted(found["notes"]) == [1, 2, 3]


def test_a_descriptor_with_a_type_is_equal_to_one_without_and_travels():
    typed = ValueStateDescriptor[int]("count")
    assert typed == ValueStateDescriptor("count")
    assert pickle.loads(pickle.dumps(typed)) == typed
    assert pickle.dumps(typed) == pickle.dumps(ValueStateDescriptor("count"))
    assert pickle.dumps(OutputTag[int]("late")) == pickle.dumps(OutputTag("late"))
    assert DataStream[typed_clicks.Click].__origin__ is DataStream


@pytest.mark.slow
def test_mypy_passes_the_right_spelling_and_finds_each_wrong_one(tmp_path):
    pytest.importorskip("mypy", reason="mypy is of the extra dev")
    wrong = [written_wrong(program, spellings, tmp_path) for program, spellings in SPELLINGS.items()]
    # Options and cache are those of `make lint`, so that the package is not checked again.
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml"]
    command += ["--cache-dir", ".mypy_cache", *map(str, SPELLINGS), *(str(file) for file, _ in wrong)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    said = [line for line in done.stdout.splitlines() if " error: " in line or " note: " in line]
    right = [line for line in said if "wrong_typed_" not in line]
    assert not right, done.stdout + done.stderr
    missed = {}
    for (file, at), spellings in zip(wrong, SPELLINGS.values(), strict=True):
        for line, (_, spelling, message) in zip(at, spellings, strict=True):
            own = [one for one in said if f"{file.name}:{line}: " in one]
            if not any(" error: " in one for one in own) or not any(message in one for one in own):
                missed[spelling] = own
    assert not missed, f"{missed}\n{done.stderr}"


def written_wrong(program: Path, spellings: list[tuple[str, str, str]], folder: Path) -> tuple[Path, list[int]]:
    """The program with every wrong spelling at once, and the lines of them."""
    lines, at = program.read_text(encoding="utf-8").splitlines(), []
    for right, wrong, _ in spellings:
        number = next((number for number, line in enumerate(lines) if right in line), None)
        assert number is not None, right
        lines[number] = lines[number].replace(right, wrong)
        at.append(number + 1)
    file = folder / f"wrong_{program.name}"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file, at
