"""What holds for all functions: they are documented, tested, found by name, and quick to travel."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from rayflink.table.functions.__main__ import markdown
from rayflink.table.plan.typed import all_functions, known_names, named
from tests.table.functions.flink_expressions import recorded

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def test_every_function_is_described():
    for function in all_functions():
        assert function.family and function.usage, function.name
        assert function.about.endswith("."), function.name
        assert (function.kernel is None) == (function.lazily is not None), function.name


def test_a_function_travels_by_its_name():
    for name in known_names():
        function = named(name)
        assert pickle.loads(pickle.dumps(function)) is function
        assert len(pickle.dumps(function)) < 120


def source_of_tests() -> set[str]:
    """Strings in the code of the tests here."""
    found = set()
    for path in HERE.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def test_every_function_is_tested():
    called = source_of_tests()
    words = " ".join(one.expression for one in recorded())

    def is_tested(name: str) -> bool:
        return name in called or any(part in words for part in (f"{name}(", f"{name}[", f" {name} "))

    missing = [one.name for one in all_functions() if not any(map(is_tested, (one.name, *one.aliases)))]
    assert not missing


def test_the_page_is_current():
    assert (ROOT / "docs" / "sql-functions.md").read_text(encoding="utf-8") == markdown(), (
        "run python -m rayflink.table.functions > docs/sql-functions.md"
    )


@pytest.mark.slow  # starts Python
def test_the_page_is_printed():
    command = [sys.executable, "-m", "rayflink.table.functions"]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert finished.stdout == markdown()


def test_names_are_flinks():
    """All of Flink 2.3's scalar functions but those that are named as missing in the page."""
    flinks = """
    ABS ACOS ARRAY ARRAY_APPEND ARRAY_CONCAT ARRAY_CONTAINS ARRAY_DISTINCT ARRAY_EXCEPT ARRAY_INTERSECT ARRAY_JOIN
    ARRAY_MAX ARRAY_MIN ARRAY_POSITION ARRAY_PREPEND ARRAY_REMOVE ARRAY_REVERSE ARRAY_SLICE ARRAY_SORT ARRAY_UNION ASCII
    ASIN ATAN ATAN2 BIN BTRIM CARDINALITY CASE CAST CEIL CEILING CHARACTER_LENGTH CHAR_LENGTH CHR COALESCE CONCAT
    CONCAT_WS CONVERT_TZ COS COSH COT CURRENT_DATE CURRENT_ROW_TIMESTAMP CURRENT_TIME CURRENT_TIMESTAMP DATE_FORMAT
    DAYOFMONTH DAYOFWEEK DAYOFYEAR DECODE DEGREES E ELEMENT ELT ENCODE ENDSWITH EXP EXTRACT FLOOR FROM_BASE64
    FROM_UNIXTIME GREATEST HEX HOUR IF IFNULL IN INET_ATON INET_NTOA INITCAP INSTR IS_ALPHA IS_DECIMAL IS_DIGIT JSON
    JSON_ARRAY JSON_EXISTS JSON_OBJECT JSON_QUERY JSON_QUOTE JSON_STRING JSON_UNQUOTE JSON_VALUE LEAST LEFT LIKE LN
    LOCALTIME LOCALTIMESTAMP LOCATE LOG LOG10 LOG2 LOWER LPAD LTRIM MAP MAP_ENTRIES MAP_FROM_ARRAYS MAP_KEYS MAP_UNION
    MAP_VALUES MD5 MINUTE MOD MONTH NOW NULLIF OVERLAPS OVERLAY PARSE_URL PI POSITION POWER PRINTF PROCTIME QUARTER
    RADIANS RAND RAND_INTEGER REGEXP REGEXP_COUNT REGEXP_EXTRACT REGEXP_EXTRACT_ALL REGEXP_INSTR REGEXP_REPLACE
    REGEXP_SUBSTR REPEAT REPLACE REVERSE RIGHT ROUND ROW RPAD RTRIM SECOND SHA1 SHA2 SHA224 SHA256 SHA384 SHA512 SIGN
    SIN SINH SPLIT SPLIT_INDEX SQRT STARTSWITH STR_TO_MAP SUBSTR SUBSTRING TAN TANH TIMESTAMPADD TIMESTAMPDIFF TO_BASE64
    TO_DATE TO_TIMESTAMP TO_TIMESTAMP_LTZ TRANSLATE TRIM TRUNCATE TRY_CAST TYPEOF UNHEX UNIX_TIMESTAMP UPPER URL_DECODE
    URL_ENCODE UUID WEEK YEAR"""
    assert set(flinks.split()) <= set(known_names())
