"""Folders and files that are hard to read: very many, empty, cut, of other strings, growing and vanishing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rayflink.common.errors import JobFailed
from rayflink.connectors.files.file_blocks import splits_of
from rayflink.table import DataTypes
from rayflink.table.connectors.formats import FORMATS
from rayflink.table.plan.logical import Attribute
from tests.table.connectors.test_partitioned_files import create, environment

SCHEMA = (Attribute("n", DataTypes.INT()), Attribute("w", DataTypes.STRING()))
LINE = {"csv": '{n},"{w}"\n', "json": '{{"n":{n},"w":"{w}"}}\n'}


def form(name: str) -> Any:
    given = {key: option.default for key, option in FORMATS[name].options.items()}
    return FORMATS[name].reads(SCHEMA, ["n", "w"], given)


def table(folder: Path, name: str, **more: str) -> Any:
    t_env = environment()
    create(t_env, folder, "n INT, w STRING", "", name, **more)
    return t_env


@pytest.mark.slow
@pytest.mark.soak
def test_ten_thousand_small_files(tmp_path):
    t_env = table(tmp_path / "t", "csv")
    for n in range(10_000):
        (tmp_path / "t" / f"{n}.csv").write_text(f"{n},w\n")
    found = t_env.sql_query("SELECT n FROM t").to_arrow()
    assert sorted(found["n"].to_pylist()) == list(range(10_000))


@pytest.mark.parametrize("name", ["csv", "json"])
def test_empty_files_lines_and_folders_have_no_rows(name, tmp_path):
    t_env = table(tmp_path / "t", name)
    assert t_env.from_path("t").to_arrow().num_rows == 0
    (tmp_path / "t" / "a").write_text("")
    (tmp_path / "t" / "b").write_text("\n\r\n\n")
    (tmp_path / "t" / "c").write_bytes(b"\xef\xbb\xbf" + LINE[name].format(n=1, w="x").encode().rstrip(b"\n"))
    (tmp_path / "t" / "_hidden").write_text("no row\n")
    assert t_env.from_path("t").to_arrow().to_pydict() == {"n": [1], "w": ["x"]}


def test_a_header_is_no_row_of_the_table(tmp_path):
    t_env = table(tmp_path / "t", "csv")
    (tmp_path / "t" / "a.csv").write_text("n,w\n")
    with pytest.raises(Exception, match="a.csv', line 1: .*'n'"):
        t_env.from_path("t").to_arrow()


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_an_empty_file_of_columns_is_none(name, tmp_path):
    t_env = table(tmp_path / "t", name)
    (tmp_path / "t" / "a").write_bytes(b"PAR1 and no more")
    with pytest.raises(Exception, match="t/a' is no whole"):
        t_env.from_path("t").to_arrow()


@pytest.mark.slow
def test_a_quoted_value_of_many_lines_that_is_longer_than_a_block(tmp_path):
    t_env = table(tmp_path / "t", "csv")
    (tmp_path / "t" / "a").write_text('1,"' + "x\n" * 2_500_000 + '"\n2,s\n')
    with pytest.raises(JobFailed, match="'csv.newlines-in-values' = 'true'"):
        t_env.from_path("t").to_arrow()
    query = "SELECT n, CHAR_LENGTH(w) AS size FROM t /*+ OPTIONS('csv.newlines-in-values' = 'true') */"
    assert t_env.sql_query(query).to_arrow().to_pydict() == {"n": [1, 2], "size": [5_000_000, 1]}


@pytest.mark.parametrize("name", ["csv", "json"])
def test_a_line_that_is_longer_than_a_block(name, tmp_path):
    t_env = table(tmp_path / "t", name)
    long = "x" * 5_000_000
    (tmp_path / "t" / "a").write_text("".join(LINE[name].format(n=n, w=long if n == 1 else "s") for n in range(3)))
    found = t_env.sql_query("SELECT n, CHAR_LENGTH(w) AS size FROM t").to_arrow().sort_by("n").to_pydict()
    assert found == {"n": [0, 1, 2], "size": [1, 5_000_000, 1]}


@pytest.mark.parametrize("name", ["csv", "json"])
def test_another_encoding_is_an_error_with_its_place(name, tmp_path):
    t_env = table(tmp_path / "t", name)
    (tmp_path / "t" / "a").write_bytes(
        (LINE[name].format(n=1, w="x") + LINE[name].format(n=2, w="é")).encode("latin-1")
    )
    with pytest.raises(Exception, match="t/a', line .*(?i:utf-?8)"):
        t_env.from_path("t").to_arrow()
    t_env.execute_sql(f"ALTER TABLE t SET ('{name}.ignore-parse-errors' = 'true')")
    assert t_env.from_path("t").to_arrow().to_pydict() == {"n": [1], "w": ["x"]}


@pytest.mark.parametrize("name", ["csv", "json"])
def test_packed_files_are_read(name, tmp_path):
    import gzip

    t_env = table(tmp_path / "t", name)
    with gzip.open(tmp_path / "t" / f"a.{name}.gz", "wt") as file:
        file.writelines(LINE[name].format(n=n, w="x") for n in range(1000))
    assert sorted(t_env.sql_query("SELECT n FROM t").to_arrow()["n"].to_pylist()) == list(range(1000))
    (tmp_path / "t" / f"b.{name}.gz").write_bytes(b"no gzip")
    with pytest.raises(Exception, match="cannot be unpacked"):
        t_env.from_path("t").to_arrow()


@pytest.mark.parametrize("name", ["csv", "json"])
def test_a_file_that_grows_is_read_as_it_was_and_one_that_vanishes_is_an_error(name, tmp_path):
    path = tmp_path / "a"
    path.write_text(LINE[name].format(n=1, w="x"))
    (split,) = splits_of([str(path)], 1)
    with path.open("a") as file:
        file.write(LINE[name].format(n=2, w="y"))
    cursor = form(name).open_split(split)
    assert cursor.read(10).data.num_rows == 1 and cursor.read(10) is None
    cursor.close()
    path.write_text(LINE[name].format(n=7, w="z"))
    with pytest.raises(ValueError, match="leave files as they are"):
        form(name).open_split(split)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="is gone"):
        form(name).open_split(split)
