"""CREATE and ALTER of tables and views."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import TokenType

from ..errors import SqlError
from ..plan.typed import Place
from . import statements
from .catalog_parser import CatalogDefinitions

_FEATURES = ("ALL", "CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS")
_CONSTRAINTS = ("UNIQUE", "CHECK", "FOREIGN")
_NO_ALIASES = ("ANY", "FINAL", "GLOBAL", "OPTION", "PASTE", "PERCENT", "POSITIONAL", "PREWHERE", "ROWS", "SAMPLE",
               "SETTINGS")  # fmt: skip
"""Words of other systems' clauses, which would else be names of the table that they stand behind."""


class TableDefinitions(CatalogDefinitions):
    """The part of the statement parser for definitions of tables and views."""

    text: str

    def ensure_known(self, tree: statements.Tree, role: str) -> None:
        """Refuse a tree with a part that has no meaning in a role of the grammar."""
        raise NotImplementedError

    def _parse_table_alias(self, alias_tokens: Any = None) -> Any:
        if self._match_follows():
            return self._match_clause(alias_tokens)
        word, of_query = self._curr.text, alias_tokens is self.ID_VAR_TOKENS
        if not of_query and self._curr.token_type is not TokenType.IDENTIFIER and word.upper() in _NO_ALIASES:
            self.refuse(f"{word} is not supported", f"leave it out; if it is meant as a name, write AS {word}")
        return super()._parse_table_alias(alias_tokens)

    # CREATE

    def _begun_create(self) -> statements.AnyStatement:
        if self._words("OR", "REPLACE"):
            return self._replaced_table("CREATE OR REPLACE", must_exist=False)
        temporary = self._words("TEMPORARY")
        if self._words("TABLE"):
            return self._create_table(temporary)
        if self._words("VIEW"):
            return self._create_view(temporary)
        return self._create_in_catalog(temporary)

    def _begun_replace(self) -> statements.CreateTable:
        return self._replaced_table("REPLACE", must_exist=True)

    def _replaced_table(self, words: str, must_exist: bool) -> statements.CreateTable:
        """Parse [CREATE OR] REPLACE TABLE ... AS, whose words have been read."""
        word = self._prev
        if not self._words("TABLE") or self._text() == "IF":
            remedy = "write TABLE ... AS SELECT behind it, or DROP ... IF EXISTS first, then CREATE"
            self.refuse(f"{words} is not supported but of tables", remedy, word)
        table = self._create_table(False)
        if table.query is None:
            remedy = "write AS SELECT ..., or DROP TABLE IF EXISTS first, then CREATE TABLE"
            self.refuse(f"{words} is not supported without AS", remedy, word)
        return replace(table, replaces=True, must_exist=must_exist)

    def _create_view(self, temporary: bool) -> statements.CreateView:
        unless = self._words("IF", "NOT", "EXISTS")
        place, path = self._path()
        columns: tuple[str, ...] = ()
        if self._curr.token_type is TokenType.L_PAREN:
            columns = self._names()
        comment = self._comment()
        self._need("AS")
        return statements.CreateView(path, self._rest(), columns, comment, temporary, unless, place=place)

    def _rest(self) -> str:
        """Return the query that follows, as text, with a hint behind it."""
        start = self._curr.start
        self._query()
        return self.text[start : self._curr.start if self._curr else len(self.text)].rstrip()

    def _query(self) -> statements.Tree:
        raise NotImplementedError

    def _create_table(self, temporary: bool) -> statements.CreateTable:
        unless = self._words("IF", "NOT", "EXISTS")
        place, path = self._path()
        columns: list[statements.ColumnOf] = []
        watermark: statements.WatermarkOf | None = None
        key: tuple[str, ...] = ()
        if self._words("("):
            while True:
                if self._is_watermark():
                    watermark = self._watermark(watermark)
                elif self._curr.text.upper() in _CONSTRAINTS and self._next.text.upper() in ("(", "KEY"):
                    self.refuse(f"{self._curr.text.upper()} is not supported", "leave it out; who writes keeps to it")
                elif key_columns := self._primary_key():
                    key = key_columns
                else:
                    columns.append(self._column_or_name())
                if not self._words(","):
                    self._need(")")
                    break
        comment = self._comment()
        self._distribution()
        partition = self._names() if self._words("PARTITIONED", "BY") else ()
        options = self._options() if self._words("WITH") else {}
        like = self._like() if self._words("LIKE") else None
        query = self._query() if self._words("AS") else None
        if query is None and (name := next((column for column in columns if column.is_name), None)):
            problem = f"column {name.name!r} has no type"
            raise SqlError(problem, "write one such as INT; names alone are for AS SELECT", self.text, name.place)
        key = key or tuple(column.name for column in columns if column.is_key)
        return statements.CreateTable(
            path,
            tuple(columns),
            watermark,
            key,
            partition,
            options,
            comment,
            like,
            query,
            temporary,
            unless,
            place=place,
        )

    def _distribution(self) -> None:
        if self._curr and self._curr.text.upper() == "DISTRIBUTED":
            self.refuse("DISTRIBUTED is not supported", "leave it out; no connector here has buckets")

    def _is_watermark(self) -> bool:
        return self._curr.text.upper() == "WATERMARK" and self._next.text.upper() == "FOR"

    def _watermark(self, before: statements.WatermarkOf | None = None) -> statements.WatermarkOf:
        if before is not None:
            self.refuse("a second watermark", "a table has one at most")
        start = self._curr
        self._need("WATERMARK", "FOR")
        _, column = self._path()
        self._need("AS")
        expression = self._written()
        return statements.WatermarkOf(column, expression, Place(start.start, self._prev.end + 1))

    def _written(self) -> statements.Tree:
        """Return an expression that remembers its text."""
        start = self._curr
        tree = self._parse_disjunction()
        if tree is None:
            self.refuse("an expression is wanted", "write one of the columns, such as ts - INTERVAL '5' SECOND")
        self.ensure_known(tree, "value")
        tree.meta["text"] = self.text[start.start : self._prev.end + 1]
        return tree

    def _primary_key(self) -> tuple[str, ...]:
        index = self._index
        if self._words("CONSTRAINT"):
            self._name()
        if not self._words("PRIMARY", "KEY"):
            self._advance(index - self._index)
            return ()
        names = self._names()
        self._not_enforced()
        return names

    def _not_enforced(self) -> None:
        if not self._words("NOT", "ENFORCED"):
            self.refuse("a key that would be enforced", "write PRIMARY KEY (...) NOT ENFORCED: who writes keeps it")

    def _column_or_name(self) -> statements.ColumnOf:
        """Parse a column, or the name of one of the query of CREATE TABLE AS."""
        follows = self._next.token_type if self._next is not None else None
        if follows not in (TokenType.COMMA, TokenType.R_PAREN):
            return self._column()
        start = self._curr
        return statements.ColumnOf(self._name(), place=Place(start.start, start.end + 1))

    def _column(self) -> statements.ColumnOf:
        start = self._curr
        name = self._name()
        place = Place(start.start, start.end + 1)
        if self._words("AS"):
            computed = self._written()
            return statements.ColumnOf(name, computed=computed, comment=self._comment(), place=place)
        kind = self.parsed_type()
        if self._words("METADATA"):
            key = self._string() if self._words("FROM") else ""
            virtual = self._words("VIRTUAL")
            return statements.ColumnOf(
                name, kind, metadata=key, is_virtual=virtual, comment=self._comment(), place=place
            )
        is_key = self._words("PRIMARY", "KEY")
        if is_key:
            self._not_enforced()
            kind = kind.not_null()
        return statements.ColumnOf(name, kind, comment=self._comment(), is_key=is_key, place=place)

    def _like(self) -> statements.LikeOf:
        place, path = self._path()
        options: dict[str, str] = {}
        if self._words("("):
            while not self._words(")"):
                how = self._name().upper()
                what = self._name().upper()
                if how not in ("INCLUDING", "EXCLUDING", "OVERWRITING") or what not in _FEATURES:
                    remedy = f"INCLUDING, EXCLUDING or OVERWRITING of one of {', '.join(_FEATURES)}"
                    self.refuse(f"{how} {what} is not known", f"write {remedy}", self._prev)
                options[what] = how
                self._words(",")
        return statements.LikeOf(path, options, place)

    # DROP and ALTER

    def _begun_alter(self) -> statements.AnyStatement:
        if self._words("VIEW"):
            place, path = self._path()
            if self._words("RENAME", "TO"):
                return statements.Rename("VIEW", path, self._path()[1], place=place)
            self._need("AS")
            return statements.AlterView(path, self._rest(), place=place)
        if not self._words("TABLE"):
            return self._alter_in_catalog()
        exists = self._words("IF", "EXISTS")
        place, path = self._path()
        if partitions := self._altered_partitions(path, place):
            return partitions
        if self._words("RENAME", "TO"):
            return statements.Rename("TABLE", path, self._path()[1], exists, place=place)
        if self._words("SET"):
            return statements.SetOptions(path, self._options(), (), exists, place=place)
        if self._words("RESET"):
            return statements.SetOptions(path, {}, self._strings(), exists, place=place)
        return self._alter_columns(path, exists, place)

    def _alter_columns(self, path: statements.Path, exists: bool, place: Place) -> statements.AlterColumns:
        if self._words("RENAME"):
            self._words("COLUMN")
            old = self._name()
            self._need("TO")
            return statements.AlterColumns(path, "RENAME", names=(old, self._name()), if_exists=exists, place=place)
        if self._words("DROP"):
            if self._words("PRIMARY", "KEY"):
                return statements.AlterColumns(path, "DROP PRIMARY KEY", if_exists=exists, place=place)
            if self._words("WATERMARK"):
                return statements.AlterColumns(path, "DROP WATERMARK", if_exists=exists, place=place)
            self._words("COLUMN")
            names = self._names() if self._curr.token_type is TokenType.L_PAREN else (self._name(),)
            return statements.AlterColumns(path, "DROP", names=names, if_exists=exists, place=place)
        action = "ADD" if self._words("ADD") else "MODIFY" if self._words("MODIFY") else ""
        if not action:
            remedy = "RENAME TO, SET (...), RESET (...), ADD, MODIFY, DROP or RENAME a column"
            self.refuse(f"{self._curr.text!r} is not expected here", f"alter a table by {remedy}")
        return self._changed_columns(path, action, exists, place)

    def _changed_columns(
        self, path: statements.Path, action: str, exists: bool, place: Place
    ) -> statements.AlterColumns:
        wrapped = self._words("(")
        columns: list[statements.ColumnOf] = []
        positions: dict[str, str] = {}
        watermark: statements.WatermarkOf | None = None
        key: tuple[str, ...] = ()
        while True:
            if self._is_watermark():
                watermark = self._watermark(watermark)
            elif key_columns := self._primary_key():
                key = key_columns
            else:
                self._words("COLUMN")
                columns.append(self._column())
                if self._words("FIRST"):
                    positions[columns[-1].name] = "FIRST"
                elif self._words("AFTER"):
                    positions[columns[-1].name] = self._name()
            if not wrapped or not self._words(","):
                break
        if wrapped:
            self._need(")")
        return statements.AlterColumns(
            path, action, tuple(columns), positions, (), watermark, key, exists, place=place
        )  # fmt: skip
