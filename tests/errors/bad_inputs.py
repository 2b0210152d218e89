"""Bad inputs: what a program does wrong, when that is seen, what the error says. tests/test_errors.py runs them all.

`python -m tests.errors.bad_inputs` writes the table in docs/failures.md.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rayflink.common import OutputTag, Row, Types, WatermarkStrategy
from rayflink.common.serialization import Encoder
from rayflink.connectors.files.file_sink import FileSink
from rayflink.connectors.files.file_source import FileSource
from rayflink.connectors.formats.csv_files import CsvFormat
from rayflink.connectors.formats.json_files import JsonLinesFormat
from rayflink.connectors.formats.parquet_files import ParquetColumnarRowInputFormat
from rayflink.connectors.socket_text import SocketTextSource
from rayflink.datastream import KeyedProcessFunction, MapFunction, ProcessFunction, StreamExecutionEnvironment
from rayflink.datastream.state import MapStateDescriptor, ValueStateDescriptor
from rayflink.datastream.window import TumblingEventTimeWindows
from tests.errors import bad_outside_work, bad_state, bad_watermarks, bad_windows
from tests.errors.bad_input import ALL, RUNNING, SUBMITTED, WRITTEN, BadInput, bad, stamped
from tests.errors.outside_faults import page_with_faults

PAGE = Path(__file__).resolve().parents[2] / "docs" / "failures.md"
BEGIN, END = "<!-- bad inputs: begin, made by `python -m tests.errors.bad_inputs` -->", "<!-- bad inputs: end -->"

__all__ = [
    "ALL", "PAGE", "RUNNING", "SUBMITTED", "WRITTEN", "BadInput", "bad_outside_work", "bad_state", "bad_watermarks",
    "bad_windows", "page_with_table",
]  # fmt: skip

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
WORDS = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])


# fields


@bad("key_by a field that the declared type lacks", WRITTEN, "key_by wants field 'wrod'", "did you mean 'word'?")
def _(env: Any, folder: Path) -> None:
    env.from_collection([("a", 1)], WORDS).key_by("wrod")


@bad("sum a field that the declared type lacks", WRITTEN, "sum wants field 5", "records have 2 fields, the last is 1")
def _(env: Any, folder: Path) -> None:
    env.from_collection([("a", 1)], PAIR).key_by(0).sum(5)


@bad("project a field that the declared type lacks", WRITTEN, "project wants field 7", "records have 2 fields")
def _(env: Any, folder: Path) -> None:
    env.from_collection([("a", 1)], PAIR).project(0, 7)


@bad("key_by a name, records without names", RUNNING, "key_by wants field 'word' of each record", "record: ('a', 1)")
def _(env: Any, folder: Path) -> None:
    env.from_collection([("a", 1)]).key_by("word").sum(1).print()


@bad("sum a field that a record lacks, the first of its key too", RUNNING, "type Row has no field 'm'", "record: Row(")
def _(env: Any, folder: Path) -> None:
    env.from_collection([Row(word="a", n=1)]).key_by("word").sum("m").print()


@bad("max of a field that the only record of a window lacks", RUNNING, "type tuple has no field 9", "record: ('a', 1)")
def _(env: Any, folder: Path) -> None:
    windows = stamped(env, 1).key_by(lambda r: r[0]).window(TumblingEventTimeWindows.of(5))
    windows.max(9).print()


@bad("project a field that a record lacks", RUNNING, "project wants fields 0, 7 of each record", "record: ('a', 1)")
def _(env: Any, folder: Path) -> None:
    env.from_collection([("a", 1)]).project(0, 7).print()


@bad("None where a field is wanted", RUNNING, "key_by wants field 0 of each record", "record: None")
def _(env: Any, folder: Path) -> None:
    env.from_collection([("a", 1), None]).key_by(0).sum(1).print()


@bad(
    "None, or a text, in a field that is summed", RUNNING,
    "sum of field 1 found NoneType after int, wanted numbers", "filter such records out", "record: ('a', None)",
)  # fmt: skip
def _(env: Any, folder: Path) -> None:
    env.from_collection([("a", 1), ("a", None)]).key_by(0).sum(1).print()


@bad(
    "values of several types under max", RUNNING,
    "max of field 1 found str after int, wanted values that can be compared", "record: ('a', 'x')",
)  # fmt: skip
def _(env: Any, folder: Path) -> None:
    env.from_collection([("a", 1), ("a", "x")]).key_by(0).max(1).print()


# keys


@bad("a dict as key, on one subtask too", RUNNING, "key is a dict, which cannot be a key; use tuple(", "record: {1: 2}")
def _(env: Any, folder: Path) -> None:
    env.from_collection([{1: 2}]).key_by(lambda v: v).map(lambda v: v).print()


@bad("an object without equality of its own as key", RUNNING, "P, which cannot be a key; key by", "record: 1")
def _(env: Any, folder: Path) -> None:
    class P:
        pass

    env.from_collection([1]).key_by(lambda v: P()).map(lambda v: v).print()


@bad("a key nested too deeply", RUNNING, "nested too deeply", "cannot be a key", "record: 1")
def _(env: Any, folder: Path) -> None:
    def deep(value: int) -> Any:
        return functools.reduce(lambda key, _: (key,), range(100_000), ())

    env.set_parallelism(2).from_collection([1]).key_by(deep).map(lambda v: v).print()


@bad("key_by what is no function", WRITTEN, "a KeySelector or a callable is wanted, found NoneType")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).key_by(None)


@bad("a step of keyed streams on one without keys", WRITTEN, "sum() needs a keyed stream; call key_by(...) before it")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).sum(0)


@bad("a step that is misspelled", WRITTEN, "a DataStream has no 'fliter'; did you mean 'filter'?")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).fliter(lambda v: v)


# functions


@bad("a function of another number of arguments", WRITTEN, "map wants a function of 1 argument, found one of 2")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).map(lambda a, b: a)


@bad("a function class in place of its instance", WRITTEN, "the class Locked itself was passed", "Locked(...)")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).map(Locked)


@bad("an async function", WRITTEN, "cannot be async")
def _(env: Any, folder: Path) -> None:
    async def wait(value: int) -> int:
        return value

    env.from_collection([1]).map(wait)


class Locked(MapFunction):
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def map(self, value: Any) -> Any:
        return value


@bad("a function that holds what cannot be pickled", WRITTEN, "Locked.lock, a lock", "create it in open()")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).map(Locked())


@bad("an element that cannot be pickled", WRITTEN, "[1], a lock: TypeError: cannot pickle")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1, threading.Lock()])


@bad("a record that cannot be pickled", RUNNING, "'Map'", "type builtins.generator cannot be pickled", "plain data")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).map(lambda v: (x for x in [v])).rebalance().map(lambda v: v).print()


@bad("a function that raises", RUNNING, "'Map'", "ZeroDivisionError", "record: 0", "1 / v")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1, 0]).map(lambda v: 1 / v).print()


@bad("a function that calls sys.exit()", RUNNING, "'Map'", "SystemExit: 3", "raise SystemExit(3)")
def _(env: Any, folder: Path) -> None:
    def leave(value: int) -> int:
        raise SystemExit(3)

    env.from_collection([1]).map(leave).print()


@bad("a function that calls itself without end", RUNNING, "'Map'", "RecursionError", "record: 1", "repeated")
def _(env: Any, folder: Path) -> None:
    def again(value: int) -> int:
        return again(value)

    env.from_collection([1]).map(again).print()


@bad("a flat_map or process that gives no iterable", RUNNING, "gave int 1, wanted an iterable", "map()", "record: 1")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).flat_map(lambda v: v).print()


@bad("a keyed process function that gives no iterable", RUNNING, "gave int 5, wanted an iterable", "record: 1")
def _(env: Any, folder: Path) -> None:
    class Single(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            return 5

    env.from_collection([1]).key_by(lambda v: v).process(Single()).print()


@bad("an async generator as function", RUNNING, "gave async_generator", "'def' in place of 'async def'", "record: 1")
def _(env: Any, folder: Path) -> None:
    async def several(value: int) -> Any:
        yield value

    env.from_collection([1]).flat_map(several).print()


@bad("a generator that raises midway", RUNNING, "'Flat Map'", "ValueError: midway", "record: 1", "in several")
def _(env: Any, folder: Path) -> None:
    def several(value: int) -> Iterator[int]:
        yield value
        raise ValueError("midway")

    env.from_collection([1]).flat_map(several).print()


# types


@bad(
    "a result of another type than declared", RUNNING,
    "result of 'Map': found str 'x', wanted Integer", "or declare the type as String", "record: 'x'",
)  # fmt: skip
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).map(lambda v: "x", Types.INT()).print()


@bad(
    "a reduce that gives another type than its stream has", RUNNING,
    "result of 'Keyed Reduce': found str 'oops', wanted TupleTypeInfo", "record: 'oops'",
)  # fmt: skip
def _(env: Any, folder: Path) -> None:
    env.from_collection([("a", 1), ("a", 2)], PAIR).key_by(0).reduce(lambda a, b: "oops").print()


@bad("a declared type that is none", WRITTEN, "'INT' is not a type; give a TypeInformation such as Types.STRING()")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).map(lambda v: v, "INT")


@bad("an element of 9,999 fields, 10,000 declared", WRITTEN, "found Row of 9999 fields", "... (10000 fields)")
def _(env: Any, folder: Path) -> None:
    env.from_collection([Row(*range(9_999))], Types.ROW([Types.INT()] * 10_000))


# time


@bad("event-time windows, records without timestamps", RUNNING, "with_timestamp_assigner(...)", "record: 1")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).key_by(lambda v: v).window(TumblingEventTimeWindows.of(5)).sum().print()


@bad("an interval join, records without timestamps", RUNNING, "with_timestamp_assigner(...)", "record: 1")
def _(env: Any, folder: Path) -> None:
    keyed = env.from_collection([1]).key_by(str)
    keyed.interval_join(keyed).between(0, 1).process(max).print()


@bad("an interval join of no time", WRITTEN, "no record lies in the interval [2 ms, 1 ms]; give a lower bound")
def _(env: Any, folder: Path) -> None:
    keyed = stamped(env, 1).key_by(0)
    keyed.interval_join(keyed).between(2, 1)


@bad("a join without equal_to", WRITTEN, "window() was called where equal_to() is due; a join is written a.join(b)")
def _(env: Any, folder: Path) -> None:
    stamped(env, 1).join(stamped(env, 2)).where(0).window(TumblingEventTimeWindows.of(5))


@bad("a join of streams of two environments", WRITTEN, "join was given streams of two environments; make both")
def _(env: Any, folder: Path) -> None:
    stamped(env, 1).join(stamped(StreamExecutionEnvironment.get_execution_environment(), 2))


@bad("a timestamp that is no int", RUNNING, "an int of epoch milliseconds, found '2024-01-01' of type str", "record: (")
def _(env: Any, folder: Path) -> None:
    stamped(env, "2024-01-01").print()


@bad("a timestamp beyond 64 bits", RUNNING, "[-2^63, 2^63) epoch milliseconds, found a number of 71 bits", "record: (")
def _(env: Any, folder: Path) -> None:
    stamped(env, 2**70).print()


@bad("a timer without a time", RUNNING, "epoch milliseconds, found None", "record without a timestamp", "record: 1")
def _(env: Any, folder: Path) -> None:
    class Timed(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> None:
            ctx.timer_service().register_event_time_timer(ctx.timestamp())

    env.from_collection([1]).key_by(lambda v: v).process(Timed()).print()


# state


@bad("keyed state without keys", RUNNING, "asked for keyed state 's', but its stream is not keyed; call key_by(...)")
def _(env: Any, folder: Path) -> None:
    class Stateful(ProcessFunction):
        def open(self, context: Any) -> None:
            context.get_state(ValueStateDescriptor("s", Types.INT()))

        def process_element(self, value: Any, ctx: Any) -> None:
            pass

    env.from_collection([1]).process(Stateful()).print()


class Keeping(KeyedProcessFunction):
    """Keeps what it is made with."""

    def __init__(self, value: Any, of: Any) -> None:
        self.value, self.type = value, of

    def open(self, context: Any) -> None:
        self.state = context.get_state(ValueStateDescriptor("s", self.type))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.state.update(self.value())


@bad("a value of another type than its state", RUNNING, "state 's': found str '', wanted Integer", "self.state.update")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).key_by(lambda v: v).process(Keeping(str, Types.INT())).print()


@bad("state that cannot be copied", RUNNING, "type lock cannot be kept", "keep plain data", "self.state.update")
def _(env: Any, folder: Path) -> None:
    keeping = Keeping(threading.Lock, Types.PICKLED_BYTE_ARRAY())
    env.from_collection([1]).key_by(lambda v: v).process(keeping).print()


RULES = MapStateDescriptor("rules")


def judged(env: Any, judge: Any) -> None:
    """Print what `judge` gives for a record next to broadcast rules."""
    rules = env.from_collection([1]).broadcast(RULES)
    env.from_collection([1]).connect(rules).process((judge, lambda value, ctx: None)).print()


@bad("broadcast state that was not declared", RUNNING, "given 'rule', but the stream was broadcast with 'rules'; give")
def _(env: Any, folder: Path) -> None:
    judged(env, lambda value, ctx: ctx.get_broadcast_state(MapStateDescriptor("rule")))


@bad("broadcast state written by the other side", RUNNING, "put of broadcast state 'rules' was called", "write it")
def _(env: Any, folder: Path) -> None:
    judged(env, lambda value, ctx: ctx.get_broadcast_state(RULES).put(1, 2))


# plans


@bad("a program without steps", SUBMITTED, "No operators defined in streaming topology. Cannot execute. Give a stream")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1])


@bad("parallelism over max parallelism", SUBMITTED, "'Map' has parallelism 8 above its max parallelism 4; lower")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).map(str).set_max_parallelism(4).set_parallelism(8).print()


@bad("parallelism below 1, or no whole number", WRITTEN, "the parallelism of 'Map' is '4', of type str; give an int")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).map(str).set_parallelism("4")


@bad("a name or uid that is no text", WRITTEN, "the uid of 'Map' is 5, of type int; give a str")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).map(str).uid(5)


@bad("two equal uids", SUBMITTED, "'Map' (created at ", "have the same uid 'x'; give one of them another uid")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).map(str).uid("x").map(str).uid("x").print()


@bad("union or connect with what is no stream", WRITTEN, "union needs a DataStream, found int 5; make one")
def _(env: Any, folder: Path) -> None:
    env.from_collection([1]).union(5)


@bad("a side output by a name", WRITTEN, "get_side_output needs an OutputTag, found str 'late'", "OutputTag('late')")
def _(env: Any, folder: Path) -> None:
    assert OutputTag("late").tag_id == "late"
    env.from_collection([1]).get_side_output("late")


@bad("an option that does not parse", SUBMITTED, "option 'parallelism.default'", "found 'three', wanted int; write")
def _(env: Any, folder: Path) -> None:
    env.get_configuration().set_string("parallelism.default", "three")
    env.from_collection([1]).print()


# sources


@bad("a called generator as source", WRITTEN, "found generator; give the generator function itself, without calling it")
def _(env: Any, folder: Path) -> None:
    env.add_source(x for x in [1])


@bad("a source function that gives no iterable", RUNNING, "gave NoneType None, wanted an iterable of records; yield")
def _(env: Any, folder: Path) -> None:
    env.add_source(lambda: None).print()


@bad("a source's generator that raises midway", RUNNING, "'Source: Custom Source'", "ValueError: midway", "in numbers")
def _(env: Any, folder: Path) -> None:
    def numbers() -> Iterator[int]:
        yield 1
        raise ValueError("midway")

    env.add_source(numbers).print()


@bad("a collection that is none", WRITTEN, "from_collection needs an iterable, found int 5; give a list")
def _(env: Any, folder: Path) -> None:
    env.from_collection(5)


@bad("a file that is not there", RUNNING, "no file, folder or match for '", "correct the path, or put the file there")
def _(env: Any, folder: Path) -> None:
    env.read_text_file(str(folder / "nope.txt")).print()


@bad("a file that vanishes before it is read", RUNNING, "no file, folder or match for '", "correct the path")
def _(env: Any, folder: Path) -> None:
    file = written(folder, "there\n")
    env.read_text_file(file).print()
    Path(file).unlink()


@bad("a file of another charset", RUNNING, "in line 2, is no utf-8 text", "pass the file's encoding= or charset_name")
def _(env: Any, folder: Path) -> None:
    env.read_text_file(written(folder, "first\ngr\u00fc\u00df\n", "latin-1")).print()


@bad("a charset that does not exist", WRITTEN, "there is no charset 'utf-88'; did you mean 'utf-8'?")
def _(env: Any, folder: Path) -> None:
    env.read_text_file(str(folder), "utf-88")


@bad("a malformed line of CSV", RUNNING, "', line 3: Expected 2 columns, got 1", "correct the line, or pass schema=")
def _(env: Any, folder: Path) -> None:
    read(env, CsvFormat(), written(folder, "word,n\na,1\nb\n"))


@bad("a malformed line of JSON", RUNNING, "', line 2: '{\"a\":'", "ignore_parse_errors=True to leave such lines")
def _(env: Any, folder: Path) -> None:
    read(env, JsonLinesFormat(), written(folder, '{"a": 1}\n{"a":\n'))


@bad("a file that is no Parquet", RUNNING, "file'", "Parquet magic bytes not found")
def _(env: Any, folder: Path) -> None:
    form = ParquetColumnarRowInputFormat(WORDS)
    source = FileSource.for_bulk_file_format(form, written(folder, "no parquet file at all\n")).build()
    env.from_source(source, WatermarkStrategy.no_watermarks(), "files").print()


@bad("a server that is not there", RUNNING, "cannot connect to 127.0.0.1:1", "start the server first, or set max")
def _(env: Any, folder: Path) -> None:
    env.from_source(SocketTextSource("127.0.0.1", 1)).print()


def written(folder: Path, text: str, encoding: str = "utf-8") -> str:
    file = folder / "file"
    file.write_text(text, encoding=encoding)
    return str(file)


def read(env: Any, form: Any, file: str) -> None:
    source = FileSource.for_record_stream_format(form, file).build()
    env.from_source(source, WatermarkStrategy.no_watermarks(), "files").print()


# sinks


def to_files(stream: Any, folder: Path) -> None:
    stream.sink_to(FileSink.for_row_format(str(folder), Encoder.simple_string_encoder()).build())


@bad("a sink's folder that is a file", RUNNING, "' is a file, a folder is wanted; choose another folder for the sink")
def _(env: Any, folder: Path) -> None:
    to_files(env.from_collection(["ok"]), Path(written(folder, "")))


@bad("a sink's folder that cannot be made", RUNNING, "cannot write below '/proc/out'", "choose another folder")
def _(env: Any, folder: Path) -> None:
    to_files(env.from_collection(["ok"]), Path("/proc/out"))


@bad("a text that its charset cannot hold", RUNNING, "surrogates not allowed; replace such", "record: 'a\\ud8")
def _(env: Any, folder: Path) -> None:
    to_files(env.from_collection(["ok", "a\ud800b"]), folder)


@bad("a record whose text raises", RUNNING, "'Sink: Print to Std. Out'", "ValueError: no text", "record: <", "in __str")
def _(env: Any, folder: Path) -> None:
    class Mute:
        def __str__(self) -> str:
            raise ValueError("no text")

    env.from_collection([1]).map(lambda v: Mute()).print()


def table() -> str:
    """Return the table of docs/failures.md."""
    rows = [f"| {row.what} | {row.seen} | {' ... '.join(map(_shown, row.says))} |" for row in ALL]
    return "\n".join([BEGIN, "| input | reported | the error says |", "|---|---|---|", *rows, END])


def _shown(text: str) -> str:
    return f"`{text.replace('|', '&#124;')}`"


def page_with_table(page: str) -> str:
    """The page with the table as it should be."""
    return re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: table(), page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page_with_faults(page_with_table(PAGE.read_text(encoding="utf-8"))), encoding="utf-8")
