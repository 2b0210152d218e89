"""What happens to the rows of each step is known before anything starts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from rayflink.table import EnvironmentSettings, ExplainDetail, SqlError, TableEnvironment
from rayflink.table.connectors.contract import TableSink, TableSource
from rayflink.table.plan.changelog import Change, ChangelogMode, ChangelogModes
from rayflink.table.plan.logical import Attribute, Filter, Project, Relation, Scan, Sink, Union
from rayflink.table.plan.typed import Column
from rayflink.table.types import DataTypes


@dataclass(frozen=True)
class Made(Relation):
    """A step that gives and takes what it is told."""

    name: str
    given: tuple[Relation, ...]
    gives: Change
    takes: Change = Change.ALL
    before: bool = False

    @property
    def inputs(self):
        return self.given

    def gives_changes(self, inputs):
        return self.gives

    def takes_changes(self):
        return self.takes

    def requires_update_before(self, is_wanted):
        return self.before

    def explain_line(self):
        return f"{self.name}()"


@dataclass
class Taking(TableSink):
    is_append_only: bool = False
    requires_update_before: bool = True

    def attach(self, stream, name):
        raise NotImplementedError


UPSERT = Change.INSERT | Change.UPDATE


def counts(gives=UPSERT):
    return Made((Attribute("n", DataTypes.BIGINT()), Attribute("b", DataTypes.BOOLEAN())), "GroupAggregate", (), gives)


def projected(below):
    return Project(below.schema, below, tuple(below.column(at) for at in range(len(below.schema))))


def filtered(below):
    return Filter(below.schema, below, Column(DataTypes.BOOLEAN(), 1, "b"))


def written(below, sink):
    return Sink((), below, ("c", "d", "t"), sink)


def modes(*roots, of):
    return str(ChangelogModes(roots).of(of))


def test_rows_of_a_source_only_come():
    class Source(TableSource):
        def stream(self, env, strategy, name):
            raise NotImplementedError

    scan = Scan(counts().schema, ("t",), Source())
    assert modes(projected(filtered(scan)), of=projected(filtered(scan))) == "[I]"


def test_steps_of_each_row_pass_changes_on():
    plan = projected(counts(Change.ALL))
    assert modes(plan, of=plan) == "[I,UA,D]"
    both = Union(counts().schema, (counts(), counts(Change.INSERT | Change.DELETE)))
    assert modes(both, of=both) == "[I,UA,D]"


def test_the_row_before_is_emitted_to_those_that_require_it():
    count = counts()
    assert modes(projected(count), of=count) == "[I,UA]"
    assert modes(filtered(count), of=count) == "[I,UB,UA]"
    assert modes(written(count, Taking()), of=count) == "[I,UB,UA]"
    keyed = written(projected(count), Taking(requires_update_before=False))
    assert modes(keyed, of=count) == "[I,UA]" and modes(keyed, of=keyed) == "[NONE]"


def test_a_step_with_two_consumers_is_as_the_more_demanding_one_wants_it():
    count = counts()
    keyed, filtering = projected(count), filtered(count)
    for roots in ((keyed, filtering), (filtering, keyed)):
        assert modes(*roots, of=count) == "[I,UB,UA]"
    join = Made(count.schema, "Join", (projected(count), count), UPSERT, before=True)
    assert modes(projected(join), of=join) == "[I,UA]" and modes(projected(join), of=count) == "[I,UB,UA]"


@pytest.mark.parametrize(
    ("gives", "kind"),
    [(UPSERT, "update"), (Change.INSERT | Change.DELETE, "delete"), (Change.ALL, "update and delete")],
)
def test_a_sink_of_insertions_refuses_other_changes(gives, kind):
    with pytest.raises(SqlError) as raised:
        ChangelogModes([written(projected(counts(gives)), Taking(is_append_only=True))])
    assert raised.value.problem.startswith(f"Table sink 'c.d.t' doesn't support consuming {kind} changes which is ")
    assert "'print'" in raised.value.remedy


def test_a_step_that_takes_insertions_alone_is_distinguished():
    top = Made(counts().schema, "WindowJoin", (counts(),), Change.INSERT, takes=Change.INSERT)
    with pytest.raises(SqlError, match=r"WindowJoin doesn't support consuming update changes .* GroupAggregate\(\)"):
        ChangelogModes([top])


def test_an_append_only_mode_is_one():
    assert ChangelogMode(Change.INSERT).is_append_only and not ChangelogMode(UPSERT).is_append_only


def test_a_query_that_updates_is_refused_before_anything_starts(tmp_path):
    @dataclass(frozen=True)
    class Updating(TableSource):
        started: list = field(default_factory=list, compare=False)
        changes = UPSERT

        def stream(self, env, strategy, name):
            self.started.append(name)
            raise AssertionError("it was started")

    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.execute_sql(f"CREATE TABLE out (n BIGINT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', "
                      "'format' = 'csv')")  # fmt: skip
    from rayflink.table import Table

    t_env.create_temporary_view("t", Table(t_env, Scan(counts().schema, ("t",), Updating())))
    with pytest.raises(SqlError, match="'default_catalog.default_database.out' doesn't support consuming update"):
        t_env.execute_sql("INSERT INTO out SELECT n FROM t WHERE b")


def group_modes(query: str, root: str = "", options: Mapping[str, str] | None = None) -> list[str]:
    """The changelog modes of the groups in a query, the upper ones first."""
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {"execution.target": "local", **(options or {})}.items():
        t_env.get_config().set_string(key, value)
    t_env.create_temporary_view("words", t_env.from_elements([("a", 1)], ["word", "n"]))
    for name, key in (("counts", "word"), ("others", "n")):
        columns = f"word STRING, n BIGINT, PRIMARY KEY ({key}) NOT ENFORCED"
        topic = "'connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'host:1'"
        formats = "'key.format' = 'json', 'value.format' = 'json'"
        t_env.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ({topic}, {formats})")
    t_env.execute_sql("CREATE TABLE printed (word STRING, n BIGINT) WITH ('connector' = 'print')")
    plan = t_env.explain_sql(f"{root} {query}", ExplainDetail.CHANGELOG_MODE)
    physical = plan.partition("== Optimized Physical Plan ==")[2].partition("== Optimized Execution Plan ==")[0]
    return re.findall(r"(?:GroupAggregate|Deduplicate)\(.*changelogMode=\[(\S+)\]\)", physical)


LAST = """SELECT word, n FROM (SELECT *, PROCTIME() AS p FROM words)
  QUALIFY ROW_NUMBER() OVER (PARTITION BY word ORDER BY p DESC) = 1"""
COUNTED = "SELECT word, COUNT(*) AS n FROM words GROUP BY word"


@pytest.mark.parametrize(
    ("query", "root", "wanted"),
    [
        (COUNTED, "INSERT INTO printed", ["I,UB,UA"]),
        (COUNTED, "INSERT INTO counts", ["I,UA"]),
        (COUNTED, "INSERT INTO others", ["I,UB,UA"]),
        (f"{COUNTED} HAVING COUNT(*) < 3", "INSERT INTO counts", ["I,UB,UA"]),
        (f"SELECT 'all', SUM(n) FROM ({COUNTED}) GROUP BY n", "INSERT INTO printed", ["I,UB,UA,D", "I,UB,UA"]),
        ("SELECT word, MAX(n) FROM words GROUP BY word", "INSERT INTO counts", ["I,UA"]),
        (LAST, "INSERT INTO counts", ["I,UA"]),
        (LAST, "INSERT INTO others", ["I,UB,UA"]),
    ],
)
def test_the_row_before_an_update_is_left_out_where_the_key_finds_it(query, root, wanted):
    assert group_modes(query, root) == wanted


CHANGING = "(SELECT word, COUNT(*) AS n FROM words GROUP BY word) AS t"


@pytest.mark.parametrize(
    ("query", "refused"),
    [
        (f"INSERT INTO printed SELECT UUID() AS id, n FROM {CHANGING}", "column 'id' is computed by UUID"),
        (f"INSERT INTO printed SELECT word, n FROM {CHANGING} WHERE RAND() > 0.5", "a condition is computed by RAND"),
        (f"INSERT INTO printed SELECT k, COUNT(*) FROM (SELECT CAST(NOW() AS STRING) AS k FROM {CHANGING}) GROUP BY k",
         "column 'k' is computed by CURRENT_TIMESTAMP"),
        (f"INSERT INTO counts SELECT word, CAST(RAND() * n AS BIGINT) FROM {CHANGING}", ""),
        (f"INSERT INTO printed SELECT word, COUNT(*) FROM (SELECT word, UUID() FROM {CHANGING}) GROUP BY word", ""),
        ("INSERT INTO printed SELECT k, COUNT(*) FROM (SELECT UUID() AS k FROM words) GROUP BY k", ""),
    ],
)  # fmt: skip
def test_values_that_differ_each_time_are_refused_where_rows_are_found_by_them(query, refused):
    strategy = {"table.optimizer.non-deterministic-update.strategy": "TRY_RESOLVE"}
    if refused:
        with pytest.raises(SqlError, match=f"{refused}, which gives another value each time.*= 'IGNORE'"):
            group_modes(query, options=strategy)
        assert group_modes(query)
    else:
        assert group_modes(query, options=strategy)
