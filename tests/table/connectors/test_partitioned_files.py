"""Tables whose files lie in folders by the values of some columns."""

from __future__ import annotations

import datetime
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.records.batches import ArrowBatch
from rayflink.table import DataTypes, EnvironmentSettings, SqlError, TableEnvironment
from rayflink.table.connectors.partition_buckets import PartitionBuckets
from rayflink.table.connectors.partitions import Partitions, escape, unescape
from rayflink.table.plan.logical import Attribute
from tests.table.connectors.test_json_files import values_of

FORMS = ["csv", "json", "parquet", "arrow"]


def environment(batch: bool = False, **options: str) -> TableEnvironment:
    mode = EnvironmentSettings.in_batch_mode() if batch else EnvironmentSettings.in_streaming_mode()
    found = TableEnvironment.create(mode)
    given = {"execution.target": "local", "table.local-time-zone": "UTC", "parallelism.default": "2", **options}
    for key, value in given.items():
        found.get_config().set_string(key, value)
    return found


@pytest.fixture
def t_env() -> TableEnvironment:
    return environment()


def create(t_env: TableEnvironment, folder: Path, columns: str, keys: str, form: str = "json", **more: str) -> None:
    folder.mkdir(exist_ok=True)
    options = {"connector": "filesystem", "path": str(folder), "format": form, **more}
    clause = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    divided = f"PARTITIONED BY ({keys})" if keys else ""
    t_env.execute_sql(f"CREATE TABLE {folder.name} ({columns}) {divided} WITH ({clause})")


def rows(t_env: TableEnvironment, query: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in t_env.sql_query(query).to_arrow().to_pylist())


def folders(folder: Path) -> set[str]:
    return {str(path.parent.relative_to(folder)) for path in folder.rglob("part-*")}


@pytest.mark.parametrize("form", FORMS)
def test_rows_lie_in_the_folders_of_their_partitions_and_are_read_again(t_env, form, tmp_path):
    create(t_env, tmp_path / "t", "n INT, day DATE, w STRING, k INT", "day, k", form)
    values = """(1, DATE '2020-01-02', 'a', 7), (2, DATE '2020-01-02', 'b', 8), (3, CAST(NULL AS DATE), 'c', 7),
      (4, DATE '2020-01-02', 'd', 7)"""
    t_env.execute_sql(f"INSERT INTO t SELECT * FROM (VALUES {values}) AS v(n, day, w, k)").wait()
    default = "day=__DEFAULT_PARTITION__/k=7"
    assert folders(tmp_path / "t") == {"day=2020-01-02/k=7", "day=2020-01-02/k=8", default}
    day = datetime.date(2020, 1, 2)
    expected = {(1, day, "a", 7), (2, day, "b", 8), (3, None, "c", 7), (4, day, "d", 7)}
    assert rows(t_env, "SELECT * FROM t") == Counter(expected)
    assert rows(t_env, "SELECT k FROM t") == Counter({(7,): 3, (8,): 1})
    assert rows(t_env, "SELECT w, day FROM t WHERE k = 8") == Counter([("b", day)])
    if form in ("csv", "json"):
        (file,) = (tmp_path / "t" / "day=2020-01-02" / "k=8").iterdir()
        assert "b" in file.read_text() and "2020" not in file.read_text()


def test_partitions_that_a_condition_excludes_are_not_read(t_env, tmp_path):
    create(t_env, tmp_path / "t", "n INT, k INT, w STRING", "k, w")
    t_env.execute_sql("INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 2, 'c')").wait()
    for path in (tmp_path / "t" / "k=1").rglob("part-*"):
        path.write_text("this is no JSON\n")
    with pytest.raises(Exception, match="k=1/w=a/part.*line 1"):
        rows(t_env, "SELECT n FROM t")
    query = "SELECT n, w FROM t WHERE k > 1 AND n > 2 AND UPPER(w) <> 'B'"
    assert "partitions=[k > 1, UPPER(w) <> 'B']" in t_env.explain_sql(query)
    assert rows(t_env, query) == Counter([(3, "c")])
    assert rows(t_env, "SELECT n FROM t WHERE k IS NULL") == Counter()


def test_metadata_columns_tell_of_the_file(t_env, tmp_path):
    columns = """n INT, p STRING NOT NULL METADATA FROM 'file.path' VIRTUAL, f STRING METADATA FROM 'file.name' VIRTUAL,
      s BIGINT METADATA FROM 'file.size' VIRTUAL, m TIMESTAMP_LTZ(3) METADATA FROM 'file.modification-time' VIRTUAL"""
    create(t_env, tmp_path / "t", columns, "", "csv")
    (tmp_path / "t" / "a.csv").write_text("1\n22\n")
    found = t_env.from_path("t").to_arrow().to_pylist()
    modified = datetime.datetime.fromtimestamp((tmp_path / "t" / "a.csv").stat().st_mtime, datetime.timezone.utc)
    assert [row["n"] for row in found] == [1, 22]
    assert {(row["p"], row["f"], row["s"]) for row in found} == {(str(tmp_path / "t" / "a.csv"), "a.csv", 5)}
    assert abs(found[0]["m"] - modified) < datetime.timedelta(milliseconds=2)
    assert rows(t_env, "SELECT f FROM t") == Counter({("a.csv",): 2})
    t_env.execute_sql("INSERT INTO t VALUES (3)").wait()
    assert rows(t_env, "SELECT n FROM t") == Counter([(1,), (22,), (3,)])


def test_files_are_chosen_by_a_pattern(t_env, tmp_path):
    create(t_env, tmp_path / "t", "n INT", "", "csv", **{"source.path.regex-pattern": r".*/b[0-9]\.csv"})
    for name in ("a1", "b1", "b2"):
        (tmp_path / "t" / f"{name}.csv").write_text(f"{name[1]}\n")
    assert rows(t_env, "SELECT n FROM t") == Counter([(1,), (2,)])


def test_a_folder_is_watched(t_env, tmp_path):
    create(t_env, tmp_path / "t", "n INT, k STRING", "k", "csv", **{"source.monitor-interval": "10 ms"})
    (tmp_path / "t" / "k=a").mkdir()
    (tmp_path / "t" / "k=a" / "1.csv").write_text("1\n")
    with t_env.execute_sql("SELECT n, k FROM t").collect() as found:
        assert list(next(found)) == [1, "a"]
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "1.csv").write_text("2\n")
        (tmp_path / "new").rename(tmp_path / "t" / "k=b")
        assert list(next(found)) == [2, "b"]


@pytest.mark.slow
def test_many_partitions_have_few_open_files(t_env, tmp_path, monkeypatch):
    from rayflink.connectors.files.file_writing import FileWriter

    most = [0]
    opened = FileWriter._opened

    def counted(self: Any, bucket: str, now_ms: int) -> Any:
        found = opened(self, bucket, now_ms)
        most[0] = max(most[0], len(self._open))
        return found

    monkeypatch.setattr(FileWriter, "_opened", counted)
    create(t_env, tmp_path / "t", "n INT, k INT", "k", "csv")
    values = ", ".join(f"({n}, {n % 300})" for n in range(600))
    t_env.execute_sql(f"INSERT INTO t VALUES {values}").wait()
    assert most[0] <= 65
    assert len(folders(tmp_path / "t")) == 300
    assert rows(t_env, "SELECT n, k FROM t") == Counter((n, n % 300) for n in range(600))


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_any_text_is_the_name_of_a_folder(text):
    assert unescape(escape(text)) == text and "/" not in escape(text)


T = DataTypes
KINDS = [T.STRING(), T.INT(), T.BOOLEAN(), T.DOUBLE(), T.DATE(), T.TIMESTAMP(3), T.TIMESTAMP(6)]


@settings(max_examples=100)
@given(st.data(), st.sampled_from(KINDS))
def test_partition_values_are_read_as_they_were_written(data, kind):
    import pyarrow

    values = data.draw(st.lists(values_of(kind), min_size=1, max_size=6))
    keys = (Attribute("k", kind),)
    partitions = Partitions("/t", keys)
    column = pyarrow.array(values, kind.to_arrow())
    batch = ArrowBatch(pyarrow.RecordBatch.from_arrays([pyarrow.array(range(len(values))), column], ["n", "k"]))
    found: dict[int, Any] = {}
    for folder, part in PartitionBuckets(partitions, ["n"]).divided(batch, 0):
        assert isinstance(part, ArrowBatch) and part.data.schema.names == ["n"]
        value = pyarrow.array(partitions.values(f"/t/{folder}/file"), kind.to_arrow())[0].as_py()
        found.update(dict.fromkeys(part.data.column(0).to_pylist(), value))
    expected = [None if value == "" else value for value in column.to_pylist()]
    assert [found[at] for at in range(len(values))] == expected


BAD = [
    ("n INT, k DECIMAL(5, 2)", "k", {}, "partitioned by 'k' of type DECIMAL"),
    ("k INT", "k", {}, "has only partition columns"),
    ("n INT, f INT METADATA FROM 'file.path' VIRTUAL", "", {}, "declare the column as STRING"),
    ("n INT, f INT METADATA FROM 'file.owner' VIRTUAL", "", {}, "file.modification-time"),
    ("n INT", "", {"source.path.regex-pattern": "("}, "a regular expression"),
    ("n INT", "", {"source.monitor-interval": "soon"}, "a duration, such as"),
    ("n INT", "", {"sink.rolling-policy.file-size": "big"}, "a memory size, such as"),
]


@pytest.mark.parametrize(("columns", "keys", "more", "message"), BAD)
def test_what_is_wrong_is_reported_before_anything_starts(t_env, columns, keys, more, message, tmp_path):
    with pytest.raises(SqlError, match=message):
        create(t_env, tmp_path / "t", columns, keys, **more)
        t_env.execute_sql("SELECT * FROM t")


def test_a_folder_whose_name_is_no_value_is_an_error(t_env, tmp_path):
    create(t_env, tmp_path / "t", "n INT, k INT", "k", "csv")
    (tmp_path / "t" / "k=seven").mkdir()
    (tmp_path / "t" / "k=seven" / "a.csv").write_text("1\n")
    with pytest.raises(Exception, match="folder 'k=seven': .*INT is wanted.*rename the folder"):
        rows(t_env, "SELECT n, k FROM t")


def test_metadata_cannot_be_written(t_env, tmp_path):
    create(t_env, tmp_path / "t", "n INT, f STRING METADATA FROM 'file.name'", "")
    with pytest.raises(SqlError, match="METADATA VIRTUAL"):
        t_env.execute_sql("INSERT INTO t VALUES (1, 'x')")


@pytest.mark.parametrize("form", FORMS)
def test_a_partition_is_written_by_its_name(t_env, form, tmp_path):
    create(t_env, tmp_path / "t", "n INT, w STRING, day DATE, k INT", "day, k", form)
    day = datetime.date(2020, 1, 2)
    t_env.execute_sql("INSERT INTO t PARTITION (day = DATE '2020-01-02', k = 7) SELECT 1, 'a'").wait()
    t_env.execute_sql("INSERT INTO t PARTITION (k = 8) (day, n) SELECT DATE '2020-01-02', 2").wait()
    assert folders(tmp_path / "t") == {"day=2020-01-02/k=7", "day=2020-01-02/k=8"}
    absent = "" if form == "csv" else None  # there is no text for NULL, unless one is named
    assert rows(t_env, "SELECT * FROM t") == Counter([(1, "a", day, 7), (2, absent, day, 8)])


@pytest.mark.slow
@pytest.mark.parametrize("width", ["1", "3"])
def test_what_is_overwritten_is_replaced_at_the_end(width, tmp_path):
    t_env = environment(batch=True, **{"parallelism.default": width})
    create(t_env, tmp_path / "t", "n INT, k INT", "k", "csv")
    t_env.execute_sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)").wait()
    t_env.execute_sql("INSERT OVERWRITE t SELECT n + 10, k FROM t WHERE k < 3").wait()
    assert rows(t_env, "SELECT * FROM t") == Counter([(11, 1), (12, 2), (3, 3)])
    t_env.execute_sql("INSERT OVERWRITE t PARTITION (k = 2) SELECT n FROM t WHERE n = 3").wait()
    assert rows(t_env, "SELECT * FROM t") == Counter([(11, 1), (3, 2), (3, 3)])
    t_env.execute_sql("INSERT OVERWRITE t PARTITION (k = 1) SELECT n FROM t WHERE n > 99").wait()
    assert rows(t_env, "SELECT * FROM t") == Counter([(3, 2), (3, 3)])
    t_env.execute_sql("INSERT OVERWRITE t SELECT n, k FROM t WHERE n > 99").wait()
    assert rows(t_env, "SELECT * FROM t") == Counter([(3, 2), (3, 3)])
    assert not [path for path in (tmp_path / "t").rglob(".*")]


def test_a_whole_table_is_overwritten(tmp_path):
    t_env = environment(batch=True)
    create(t_env, tmp_path / "t", "n INT", "", "parquet")
    t_env.execute_sql("INSERT INTO t VALUES (1), (2)").wait()
    t_env.from_path("t").execute_insert("t", overwrite=True).wait()
    assert rows(t_env, "SELECT * FROM t") == Counter([(1,), (2,)])
    t_env.execute_sql("INSERT OVERWRITE t SELECT 3").wait()
    assert rows(t_env, "SELECT * FROM t") == Counter([(3,)])
    t_env.execute_sql("INSERT OVERWRITE t SELECT n FROM t WHERE n > 3").wait()
    assert rows(t_env, "SELECT * FROM t") == Counter()


def test_a_job_that_fails_overwrites_nothing(tmp_path):
    t_env = environment(batch=True)
    create(t_env, tmp_path / "t", "n INT", "", "csv")
    t_env.execute_sql("INSERT INTO t VALUES (1), (0)").wait()
    with pytest.raises(Exception, match="division"):
        t_env.execute_sql("INSERT OVERWRITE t SELECT 1 / n FROM t").wait()
    assert rows(t_env, "SELECT * FROM t") == Counter([(1,), (0,)])


def test_a_table_is_created_as_a_query_gives_it(t_env, tmp_path):
    options = f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path / 't'}', 'format' = 'json')"
    query = "SELECT 1 AS n, CAST(2.5 AS DECIMAL(5, 2)) AS d, 'x' AS k"
    t_env.execute_sql(f"CREATE TABLE t PARTITIONED BY (k) {options} AS {query}").wait()
    assert folders(tmp_path / "t") == {"k=x"}
    described = [tuple(row) for row in t_env.execute_sql("DESCRIBE t").collect()]
    assert [row[:3] for row in described] == [
        ("n", "INT", False),
        ("d", "DECIMAL(5, 2)", False),
        ("k", "CHAR(1)", False),
    ]
    assert len(rows(t_env, "SELECT * FROM t")) == 1
    t_env.execute_sql(f"CREATE TABLE IF NOT EXISTS t {options} AS SELECT 2 AS other")
    assert len(rows(t_env, "SELECT n FROM t")) == 1


INSERTS = [
    ("INSERT OVERWRITE t SELECT 1, 2", "INSERT OVERWRITE in streaming mode", "batch mode"),
    ("INSERT INTO t PARTITION (j = 1) SELECT 1", "'j' is no partition key of", "its keys are k"),
    ("INSERT INTO t PARTITION (n = 1) SELECT 1", "'n' is no partition key of", "its keys are k"),
    (
        "INSERT INTO t PARTITION (k = 1) SELECT 1, 2",
        "the query gives 2 columns, and the partition takes 1",
        "wanted is n",
    ),
    ("INSERT INTO t PARTITION (k = 1) (n, k) SELECT 1, 2", "column 'k' is in PARTITION", "once"),
    ("INSERT INTO u PARTITION (k = 1) SELECT 1", "is not partitioned", "leave PARTITION out"),
    ("CREATE TEMPORARY TABLE v AS SELECT 1", "CREATE TABLE AS with TEMPORARY", "INSERT INTO"),
]


@pytest.mark.parametrize(("text", "message", "remedy"), INSERTS)
def test_a_wrong_insert_is_reported_before_anything_starts(t_env, text, message, remedy, tmp_path):
    create(t_env, tmp_path / "t", "n INT, k INT", "k")
    create(t_env, tmp_path / "u", "n INT, k INT", "")
    with pytest.raises(SqlError, match=message) as raised:
        t_env.execute_sql(text)
    assert remedy in str(raised.value)
