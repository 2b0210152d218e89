"""PyFlink's own examples as programs of rayflink, and what PyFlink printed for them.

The programs come from PyFlink's wheel; their text is changed in one word, the package's name. What they print by
themselves, besides rows, is read from their text. `golden/pyflink_examples` holds the rows that PyFlink 2.3 printed
for those of the DataStream API, `golden/pyflink_table_examples` for those of the Table API, without lines of logging.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tests.pyflink.pyflink_wheels import unzipped_wheel
from tests.source_files import ROOT

GOLDEN = Path(__file__).parents[1] / "golden" / "pyflink_examples"
TABLE_GOLDEN = Path(__file__).parents[1] / "golden" / "pyflink_table_examples"
FOLDER = "pyflink/examples/datastream"
TABLE_FOLDER = "pyflink/examples/table"
RECORDED = (
    "basic_operations",
    "event_time_timer",
    "process_json_data",
    "state_access",
    "windowing/session_with_dynamic_gap_window",
    "windowing/session_with_gap_window",
    "windowing/sliding_time_window",
    "windowing/tumbling_count_window",
    "windowing/tumbling_time_window",
    "word_count",
)
"""Those that end by themselves and need nothing but PyFlink."""
ENDLESS = ("asyncio/remote_model_inference", "streaming_word_count")
"""Those that run and do not end; what they print is random."""
KAFKA = {
    "connectors/kafka_avro_format": "test_avro_topic",
    "connectors/kafka_bytearray_format": "test_bytearray_topic",
    "connectors/kafka_csv_format": "test_csv_topic",
    "connectors/kafka_json_format": "test_json_topic",
    "connectors/kafka_row_field_extractor_example": "row-extractor-example",
}
"""Those that need a broker of Kafka, with their topics: `connectors/kafka/test_pyflink_kafka_examples.py` runs them."""
CONNECTORS_TO_COME = {"connectors/elasticsearch": "Elasticsearch", "connectors/pulsar": "Pulsar"}
"""Those that need a connector that is not there, with its system."""
TABLE_RECORDED = (
    "mixing_use_of_datastream_and_table",
    "multi_sink",
    "pandas/conversion_from_dataframe",
    "pandas/pandas_udaf",
    "process_json_data",
    "process_json_data_with_udf",
    "windowing/over_window",
    "windowing/session_window",
    "windowing/sliding_window",
    "windowing/tumble_window",
    "word_count",
)
"""The same of the Table API."""
TABLE_ENDLESS = ("streaming_word_count",)
"""Those of the Table API that run and do not end."""
TABLE_COMMENTED = ("basic_operations",)
"""Those whose text has their tables as comments. It fails in PyFlink 2.3, where its import of all expressions hides the
module `json`.
"""
TABLE_NEW = ("async/async_scalar_function",)
"""Those that PyFlink 1.20, whose rows are recorded, does not have; their rows are random."""
PARALLELISM = 2
"""That of programs which set none: PyFlink's default is the number of cores, and the rows were recorded with two."""


@dataclass(frozen=True)
class Rows:
    """Rows that a program printed, in an order that counts at parallelism 1 alone."""

    lines: tuple[str, ...]
    prefixed: bool
    """Whether `N> ` stood before each, which says that N of the parallel subtasks printed it."""

    @classmethod
    def of(cls, printed: list[str]) -> Rows:
        """The rows in these lines; a number is only taken away where each line has one."""
        bare = [re.fullmatch(r"\d+> (.*)", line) for line in printed]
        if not printed or None in bare:
            return cls(tuple(printed), False)
        return cls(tuple(sorted(match[1] for match in bare if match)), True)


def final_tables(lines: list[str]) -> list[tuple[str, Counter[str]]]:
    """The header of each table in the lines, and the rows that its changes leave, in no order.

    >>> final_tables(["| op | n |", "+--+", "| +I | 1 |", "| -U | 1 |", "| +U | 2 |", "# | op | m |", "# | +I | 3 |"])
    [('n |', Counter({'2 |': 1})), ('m |', Counter({'3 |': 1}))]
    """
    tables: list[tuple[str, Counter[str]]] = []
    for line in lines:
        match = re.fullmatch(r"[# ]*\| (op|[-+][IUD]) \|\s*(.*)", line)
        if match and match[1] == "op":
            tables.append((match[2], Counter()))
        elif match:
            tables[-1][1][match[2]] += 1 if match[1][0] == "+" else -1
    return [(header, +rows) for header, rows in tables]


def names_in_wheel(within: str, version: str = "2.3.0") -> list[str]:
    """The examples in a folder of PyFlink's wheel and below, by name; skips the test where it cannot be downloaded."""
    folder = unzipped_wheel(version) / within
    found = (path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.py"))
    return sorted(name for name in found if not name.endswith("__init__"))


def recorded(name: str, golden: Path = GOLDEN) -> Rows:
    """What PyFlink printed for an example."""
    return Rows.of((golden / f"{name.replace('/', '_')}.out").read_text(encoding="utf-8").splitlines())


def example_text(name: str, version: str = "2.3.0", within: str = FOLDER) -> str:
    """The text of an example in a version of PyFlink; skips the test where it cannot be downloaded."""
    return (unzipped_wheel(version) / within / f"{name}.py").read_text(encoding="utf-8")


def run_example(name: str, folder: Path, *arguments: str, target: str = "local", before: str = "",
                within: str = FOLDER) -> list[str]:  # fmt: skip
    """Run an example by rayflink in a process of its own; gives the lines that are no remarks of the program's.

    Args:
        name: one of `RECORDED`.
        folder: where it is written and run.
        arguments: of its command line.
        target: option `execution.target`; "ray" joins the Ray that is running.
        before: lines of Python that run before those of the example.
        within: the folder of PyFlink's wheel that has it.
    """
    text, command, environment = prepared(name, folder, target, before, within)
    command += arguments
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=90)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout + ran.stderr
    remarks = printed_texts(text)
    return [line for line in ran.stdout.splitlines() if line not in remarks]


def first_lines(name: str, folder: Path, count: int) -> list[str]:
    """The first lines of an example that does not end; it is ended then."""
    _, command, environment = prepared(name, folder, "local", "", FOLDER)
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            return [line.rstrip() for line in islice(running.stdout, count)]
        finally:
            running.kill()


def prepared(name: str, folder: Path, target: str, before: str, within: str) -> tuple[str, list[str], dict[str, str]]:
    """An example's text for rayflink, which is written into the folder; the command that runs it; its environment."""
    program = folder / "example.py"
    text = before + re.sub(r"\bpyflink\b", "rayflink", example_text(name, within=within))
    program.write_text(text, encoding="utf-8")
    options = f"execution.target={target}\nparallelism.default={PARALLELISM}\ntable.local-time-zone=UTC"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "RAYFLINK_OPTIONS": options}
    return text, [sys.executable, str(program)], environment


def printed_texts(program: str) -> set[str]:
    """The texts that stand in calls of `print` in a program.

    >>> sorted(printed_texts("print('a')\\nstream.print()\\nprint(x)\\nprint('b')"))
    ['a', 'b']
    """
    return {
        argument.value
        for call in ast.walk(ast.parse(program))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"
        for argument in call.args
        if isinstance(argument, ast.Constant)
    }
