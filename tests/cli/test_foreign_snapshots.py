"""`rayflink state` reads a snapshot of unknown origin and runs nothing that it names, unless it is told to."""

from __future__ import annotations

import pickle
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from importlib import import_module
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy
import pytest

from rayflink.cli.main import main
from rayflink.common.records.batches import RowBatch, Watermark, WatermarkStatus
from rayflink.common.time import Instant
from rayflink.common.types import Row, RowKind
from rayflink.operators.windows.window import CountWindow, GlobalWindow, TimeWindow
from rayflink.state.backend import NO_KEY
from rayflink.state.classes.plain_classes import PLAIN_CLASSES, only_plain_classes
from rayflink.state.classes.unknown_objects import UnknownObject, loads_leniently
from rayflink.state.descriptors import ValueStateDescriptor
from rayflink.state.errors import UnresolvedClassError
from rayflink.state.keys.key_encoding import encode_key, read_key
from rayflink.state.keys.list_key import ListKey
from rayflink.state_processor import Savepoint

ran: list[str] = []


def run(what: str) -> str:
    ran.append(what)
    return what


class Bomb:
    """Runs a function when it is unpickled."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __reduce__(self) -> Any:
        return run, (self.what,)


class Colour(Enum):
    RED = 1


class Order(NamedTuple):
    item: str
    count: int


@pytest.fixture
def foreign(tmp_path: Path) -> str:
    rows = [{"key": "a", "value": Bomb("value")}, {"key": "b", "value": Order("tea", 2)}]
    maps = [{"key": Colour.RED, "part": "m", "value": 5}]
    made = Savepoint.new("foreign").with_state("op", ValueStateDescriptor("v"), rows, "key", "value")
    made = made.with_state("op", ValueStateDescriptor("colours"), maps, "key", "value")
    path = str(tmp_path / "foreign")
    made.write(path)
    ran.clear()
    return path


def test_what_a_snapshot_names_is_shown_and_does_not_run(foreign: str, capsys: Any, tmp_path: Path) -> None:
    target = tmp_path / "v.json"
    for command in (
        ["show", foreign, "op", "v", "--json"],
        ["show", foreign, "--count"],
        ["diff", foreign, foreign],
        ["export", foreign, "op", "v", str(target)],
    ):
        assert main(["state", *command]) == 0
        said = capsys.readouterr()
        assert f"{__name__}:run" in said.err and f"{__name__}:Order" in said.err and "--trust imports" in said.err
        if command[0] == "show" and "--json" in command:
            assert '"f0": "value"' in said.out and '"item": "tea"' in said.out
    assert ran == [] and '"item": "tea"' in target.read_text(encoding="utf-8")


def test_keys_of_other_classes_are_shown_too(foreign: str, capsys: Any) -> None:
    assert main(["state", "show", foreign, "op", "colours"]) == 0
    said = capsys.readouterr()
    assert '{"f0": 1}' in said.out and f"{__name__}:Colour" in said.err and ran == []


def test_a_snapshot_that_is_trusted_runs_what_it_names(foreign: str, capsys: Any) -> None:
    assert main(["state", "show", foreign, "op", "v", "--trust"]) == 0
    assert ran and capsys.readouterr().err == ""
    assert main(["state", "show", foreign, "op", "colours", "--trust"]) == 0
    assert "RED" in capsys.readouterr().out


PLAIN = [
    None, True, 1, 1.5, 2j, "a", b"a", bytearray(b"a"), (1, [2], {3: 4}, {5}, frozenset({6})), range(3), slice(1, 2),
    Counter("aab"), OrderedDict(a=1), defaultdict(int, a=1), deque([1], 3), date(2024, 1, 2), time(3, 4),
    datetime(2024, 1, 2, tzinfo=timezone.utc), datetime(2024, 1, 2, tzinfo=ZoneInfo("UTC")), timedelta(1),
    Decimal("1.5"), Fraction(1, 3), ip_address("::1"), UUID(int=5), Row(a=1), Row(1, 2), RowKind.DELETE,
    Instant(1, 2), TimeWindow(1, 2), CountWindow(3), GlobalWindow(), Watermark(5), WatermarkStatus(True),
    RowBatch([1], [2]).values, NO_KEY, ListKey([1]), numpy.int64(3), numpy.datetime64(5, "s"),
]  # fmt: skip


@pytest.mark.parametrize("value", PLAIN, ids=lambda value: f"{type(value).__name__}")
def test_plain_values_are_read_as_they_are(value: Any) -> None:
    with only_plain_classes() as refused:
        found = loads_leniently(pickle.dumps(value, 5))
    assert type(found) is type(value) and found == value and not refused


def test_arrays_are_read_as_they_are() -> None:
    for array in (numpy.arange(6).reshape(2, 3), numpy.array(["a", None], dtype=object), numpy.array(["a", "bc"])):
        with only_plain_classes() as refused:
            found = loads_leniently(pickle.dumps(array, 5))
        assert numpy.array_equal(found, array) and found.dtype == array.dtype and not refused


@pytest.mark.parametrize(
    "callee", ["os:system", "builtins:eval", "builtins:exec", "builtins:getattr", "builtins:__import__", "pickle:loads",
               "numpy:load", "rayflink.common.user_code.value_bytes:from_bytes",
               "rayflink.state.classes.class_names:resolve_class", "subprocess:Popen",
               "operator:attrgetter", "functools:partial", "builtins:list.append"],
)  # fmt: skip
def test_nothing_else_is_called(callee: str) -> None:
    module, name = callee.split(":")
    short = [b"\x8c" + bytes((len(part),)) + part.encode() for part in (module, name, "an argument")]
    data = b"\x80\x05" + short[0] + short[1] + b"\x93" + short[2] + b"\x85R."
    with only_plain_classes() as refused:
        found = loads_leniently(data)
    assert isinstance(found, UnknownObject) and found.arguments == ("an argument",) and refused == {callee}


def test_names_of_the_script_are_not_looked_up() -> None:
    from rayflink.state.classes.class_names import main_attribute

    by_name = pickle.dumps(main_attribute, 5)[:-1] + b"\x8c\x05print\x85R\x8c\x01a\x85R."
    with only_plain_classes() as refused:
        found = loads_leniently(by_name)
    assert isinstance(found, UnknownObject) and refused == {"__main__:print"}


def test_keys_are_not_looked_up_either() -> None:
    data = bytes(encode_key(Colour.RED))
    assert read_key(data, 0)[0] is Colour.RED
    with only_plain_classes() as refused, pytest.raises(UnresolvedClassError, match="no plain class"):
        read_key(data, 0)
    assert refused == {f"{__name__}:Colour"}


def test_each_plain_class_is_there_and_none_reaches_others() -> None:
    for name in PLAIN_CLASSES - {one for one in PLAIN_CLASSES if one.startswith(("numpy.core", "numpy._core"))}:
        module, _, qualname = name.partition(":")
        found: Any = import_module(module)
        for part in qualname.split("."):
            found = getattr(found, part)
        assert isinstance(found, type) or name in {
            "zoneinfo:ZoneInfo._unpickle", "rayflink.common.types:_create_row", "rayflink.state.backend:NO_KEY",
            "rayflink.state.keys.key_forms:FIELD_NAN", "rayflink.cep.nfa.partial_matches:read_rows",
        }, name  # fmt: skip
        assert not module.startswith("rayflink.") or module in sys.modules


class Zone(tzinfo):
    """A zone of the program's own."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        return timedelta(hours=1)

    def tzname(self, moment: datetime | None) -> str:
        return "+01:00"


def test_a_value_that_takes_no_stand_in_is_an_error_with_the_class_and_the_option(tmp_path: Path, capsys: Any) -> None:
    rows = [{"key": "a", "value": datetime(2024, 1, 2, tzinfo=Zone())}]
    path = str(tmp_path / "zones")
    Savepoint.new("zones").with_state("op", ValueStateDescriptor("v"), rows, "key", "value").write(path)
    assert main(["state", "show", path, "op", "v"]) == 1
    said = capsys.readouterr().err
    assert f"a value is made with {__name__}:Zone, which are no plain types" in said and "--trust imports" in said
    assert main(["state", "show", path, "op", "v", "--trust"]) == 0
