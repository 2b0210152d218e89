"""Statements of SQL before names are resolved; queries and expressions are sqlglot's trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..plan.conflicts import OnConflict
from ..plan.typed import Place
from ..types import DataType

Tree: TypeAlias = Any
"""An expression of sqlglot."""
Path: TypeAlias = tuple[str, ...]
"""The parts of a name: one to three of catalog, database, object."""


@dataclass(frozen=True)
class Statement:
    """A statement; `place` is where its object's name stands."""

    place: Place | None = field(default=None, compare=False, kw_only=True)


@dataclass(frozen=True)
class Query(Statement):
    """SELECT, VALUES and what combines them."""

    tree: Tree


@dataclass(frozen=True)
class Insert(Statement):
    """INSERT INTO.

    Args:
        columns: those that the query's columns go to; None: all of the table, in order.
        partition: columns of one value each.
        on_conflict: what ON CONFLICT says; None: it is not written.
    """

    target: Path
    query: Tree
    columns: tuple[str, ...] | None = None
    partition: Mapping[str, Tree] = field(default_factory=dict)
    overwrite: bool = False
    on_conflict: OnConflict | None = None


@dataclass(frozen=True)
class StatementSetOf(Statement):
    """EXECUTE STATEMENT SET BEGIN ... END."""

    inserts: tuple[Insert, ...]


@dataclass(frozen=True)
class ColumnOf:
    """A column of CREATE TABLE; a name alone stands for a column of the query of CREATE TABLE AS.

    Args:
        type: of a physical or metadata column.
        computed: the expression of a computed one.
        metadata: the key of a metadata column, "" for its own name; None: it is none.
        is_virtual: a metadata column that is read, and not written.
    """

    name: str
    type: DataType | None = None
    computed: Tree = None
    metadata: str | None = None
    is_virtual: bool = False
    comment: str | None = None
    is_key: bool = False
    place: Place | None = field(default=None, compare=False)

    @property
    def is_name(self) -> bool:
        """Return whether it is a name alone."""
        return self.type is None and self.computed is None


@dataclass(frozen=True)
class WatermarkOf:
    """WATERMARK FOR column AS expression."""

    column: Path
    expression: Tree
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True)
class LikeOf:
    """LIKE source (INCLUDING ..., EXCLUDING ..., OVERWRITING ...).

    Args:
        options: feature -> what is done with it, such as "WATERMARKS" -> "EXCLUDING".
    """

    source: Path
    options: Mapping[str, str] = field(default_factory=dict)
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True)
class CreateTable(Statement):
    """CREATE TABLE, and REPLACE TABLE.

    Args:
        query: of AS; its rows fill the table.
        replaces: whether a table of that name is dropped first.
        must_exist: whether there must be one to replace.
    """

    path: Path
    columns: tuple[ColumnOf, ...] = ()
    watermark: WatermarkOf | None = None
    primary_key: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    like: LikeOf | None = None
    query: Tree = None
    temporary: bool = False
    if_not_exists: bool = False
    replaces: bool = False
    must_exist: bool = False


@dataclass(frozen=True)
class CreateView(Statement):
    """CREATE VIEW; `text` is its query."""

    path: Path
    text: str
    columns: tuple[str, ...] = ()
    comment: str | None = None
    temporary: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateCatalog(Statement):
    """CREATE CATALOG."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True)
class AlterCatalog(Statement):
    """ALTER CATALOG ... SET (...), RESET (...) or COMMENT; `comment` None: it stays."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    reset: tuple[str, ...] = ()
    comment: str | None = None


@dataclass(frozen=True)
class CreateDatabase(Statement):
    """CREATE DATABASE."""

    path: Path
    comment: str | None = None
    if_not_exists: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AlterDatabase(Statement):
    """ALTER DATABASE ... SET (...)."""

    path: Path
    options: Mapping[str, str]


@dataclass(frozen=True)
class FunctionOf(Statement):
    """CREATE FUNCTION and ALTER FUNCTION.

    Args:
        class_name: where Python finds it, as "package.module.name".
        language: in capitals.
        is_system: it is known in all catalogs.
        if_exists: of ALTER; `if_not_exists` of CREATE.
    """

    path: Path
    class_name: str
    language: str = "JAVA"
    temporary: bool = False
    is_system: bool = False
    if_not_exists: bool = False
    is_altered: bool = False
    if_exists: bool = False


@dataclass(frozen=True)
class AlterPartitions(Statement):
    """ALTER TABLE ... ADD or DROP PARTITION.

    Args:
        partitions: column -> value of each, with its properties.
        is_added: they are added, not dropped.
        ignores: IF NOT EXISTS of ADD, IF EXISTS of DROP.
    """

    path: Path
    partitions: tuple[tuple[Mapping[str, str], Mapping[str, str]], ...]
    is_added: bool
    ignores: bool = False


@dataclass(frozen=True)
class CreateModel(Statement):
    """CREATE [TEMPORARY] MODEL.

    Args:
        inputs: columns that the model is given.
        outputs: columns that it gives.
    """

    path: Path
    inputs: tuple[ColumnOf, ...]
    outputs: tuple[ColumnOf, ...]
    options: Mapping[str, str]
    comment: str | None = None
    if_not_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True)
class AlterModel(Statement):
    """ALTER MODEL ... SET, RESET or RENAME TO; `new_name`: of RENAME TO."""

    path: Path
    options: Mapping[str, str] = field(default_factory=dict)
    reset: tuple[str, ...] = ()
    new_name: str | None = None
    if_exists: bool = False


@dataclass(frozen=True)
class Drop(Statement):
    """DROP of a `kind`: TABLE, VIEW, DATABASE, FUNCTION, MODEL or CATALOG; `is_system`: TEMPORARY SYSTEM FUNCTION."""

    kind: str
    path: Path
    if_exists: bool = False
    temporary: bool = False
    cascade: bool = False
    is_system: bool = False


@dataclass(frozen=True)
class Rename(Statement):
    """ALTER TABLE or VIEW ... RENAME TO."""

    kind: str
    path: Path
    to: Path
    if_exists: bool = False


@dataclass(frozen=True)
class SetOptions(Statement):
    """ALTER TABLE ... SET (...) and RESET (...)."""

    path: Path
    options: Mapping[str, str] = field(default_factory=dict)
    reset: tuple[str, ...] = ()
    if_exists: bool = False


@dataclass(frozen=True)
class AlterColumns(Statement):
    """ALTER TABLE ... ADD, MODIFY, DROP or RENAME of columns, the key or the watermark.

    Args:
        action: ADD, MODIFY, DROP, DROP PRIMARY KEY, DROP WATERMARK or RENAME.
        positions: column -> FIRST, or the column behind which it goes.
        names: columns to drop; for RENAME the old name and the new one.
    """

    path: Path
    action: str
    columns: tuple[ColumnOf, ...] = ()
    positions: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    watermark: WatermarkOf | None = None
    primary_key: tuple[str, ...] = ()
    if_exists: bool = False


@dataclass(frozen=True)
class AlterView(Statement):
    """ALTER VIEW ... AS."""

    path: Path
    text: str


@dataclass(frozen=True)
class Use(Statement):
    """USE database, USE CATALOG catalog, or USE MODULES module, ... ."""

    kind: str
    path: Path


@dataclass(frozen=True)
class Show(Statement):
    """SHOW.

    Args:
        what: TABLES, VIEWS, DATABASES, CATALOGS, FUNCTIONS, COLUMNS, CREATE TABLE, CREATE VIEW, CURRENT DATABASE,
            CURRENT CATALOG, PARTITIONS, PROCEDURES, CREATE CATALOG, MODELS, CREATE MODEL or MODULES.
        path: of which table or database.
        like: a pattern of names.
        partition: column -> value that partitions must have.
        ignores_case: whether the pattern is one of ILIKE.
    """

    what: str
    path: Path = ()
    like: str | None = None
    negated: bool = False
    partition: Mapping[str, str] = field(default_factory=dict)
    ignores_case: bool = False


@dataclass(frozen=True)
class Describe(Statement):
    """DESCRIBE a TABLE, CATALOG, DATABASE, FUNCTION or MODEL."""

    path: Path
    kind: str = "TABLE"
    is_extended: bool = False


@dataclass(frozen=True)
class Explain(Statement):
    """EXPLAIN; `details` of ESTIMATED_COST, CHANGELOG_MODE, JSON_EXECUTION_PLAN, PLAN_ADVICE."""

    explained: AnyStatement
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class CompilePlan(Statement):
    """COMPILE PLAN; `executes`: COMPILE AND EXECUTE PLAN.

    Args:
        path: of the file.
        compiled: INSERT, or several.
    """

    path: str
    compiled: AnyStatement
    if_not_exists: bool = False
    executes: bool = False


@dataclass(frozen=True)
class ExecutePlan(Statement):
    """EXECUTE PLAN of the file at a path."""

    path: str


@dataclass(frozen=True)
class SetOption(Statement):
    """SET 'key' = 'value'; without a key, all are shown."""

    key: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class ResetOption(Statement):
    """RESET 'key'; without a key, all."""

    key: str | None = None


AnyStatement: TypeAlias = (
    Query
    | Insert
    | StatementSetOf
    | CreateTable
    | CreateView
    | CreateModel
    | AlterModel
    | CreateCatalog
    | AlterCatalog
    | CreateDatabase
    | AlterDatabase
    | FunctionOf
    | AlterPartitions
    | Drop
    | Rename
    | SetOptions
    | AlterColumns
    | AlterView
    | Use
    | Show
    | Describe
    | Explain
    | CompilePlan
    | ExecutePlan
    | SetOption
    | ResetOption
)
"""All kinds of statements."""
