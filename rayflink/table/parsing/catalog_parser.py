"""CREATE, ALTER, DROP, SHOW, DESCRIBE and USE of catalogs, databases, functions and partitions."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import TokenType

from ..plan.typed import Place
from . import statements
from .model_parser import ModelDefinitions

_LISTS = ("TABLES", "VIEWS", "DATABASES", "CATALOGS", "USER FUNCTIONS", "FUNCTIONS", "PROCEDURES", "MODULES",
          "FULL MODULES", "MODELS", "CURRENT DATABASE", "CURRENT CATALOG")  # fmt: skip
_OF_DATABASES = ("TABLES", "VIEWS", "DATABASES", "FUNCTIONS", "USER FUNCTIONS", "PROCEDURES", "MODELS")


class CatalogDefinitions(ModelDefinitions):
    """The part of the statement parser for what catalogs hold beside tables and views."""

    # CREATE

    def _create_in_catalog(self, temporary: bool) -> statements.AnyStatement:
        """Parse what follows CREATE and is no table and no view."""
        if temporary:
            is_system = self._words("SYSTEM")
            if self._words("FUNCTION"):
                return self._function(True, is_system)
            if not is_system and self._words("MODEL"):
                return self._create_model(True)
            remedy = "create a TABLE, VIEW, MODEL or SYSTEM FUNCTION"
            self.refuse(f"CREATE TEMPORARY {self._text()} is not known", remedy)
        if self._words("MODEL"):
            return self._create_model(False)
        if self._words("FUNCTION"):
            return self._function(False, False)
        if self._words("DATABASE"):
            unless = self._words("IF", "NOT", "EXISTS")
            place, path = self._path()
            comment = self._comment()
            options = self._options() if self._words("WITH") else {}
            return statements.CreateDatabase(path, comment, unless, options, place=place)
        if self._words("CATALOG"):
            unless = self._words("IF", "NOT", "EXISTS")
            place, name = self._single_name()
            comment = self._comment()
            options = self._options() if self._words("WITH") else {}
            return statements.CreateCatalog(name, options, comment, unless, place=place)
        remedy = "create a TABLE, VIEW, FUNCTION, MODEL, DATABASE or CATALOG"
        self.refuse(f"CREATE {self._text()} is not known", remedy)

    def _function(self, temporary: bool, is_system: bool, is_altered: bool = False) -> statements.FunctionOf:
        unless = not is_altered and self._words("IF", "NOT", "EXISTS")
        exists = is_altered and self._words("IF", "EXISTS")
        place, path = self._path()
        self._need("AS")
        class_name = self._string()
        language = self._name().upper() if self._words("LANGUAGE") else "JAVA"
        if self._words("USING"):
            remedy = "leave USING out; Python finds the function by its module"
            self.refuse("a function in Python has no files of its own", remedy, self._prev)
        return statements.FunctionOf(
            path, class_name, language, temporary, is_system, unless, is_altered, exists, place=place
        )

    def _single_name(self) -> tuple[Place, str]:
        place, path = self._path()
        if len(path) != 1:
            self.refuse(f"{'.'.join(path)} has {len(path)} parts", "a catalog has one name", self._prev)
        return place, path[0]

    # ALTER and DROP

    def _alter_in_catalog(self) -> statements.AnyStatement:
        """Parse what follows ALTER and is no table and no view."""
        if self._words("DATABASE"):
            place, path = self._path()
            self._need("SET")
            return statements.AlterDatabase(path, self._options(), place=place)
        if self._words("CATALOG"):
            place, name = self._single_name()
            if self._words("SET"):
                return statements.AlterCatalog(name, self._options(), place=place)
            if self._words("RESET"):
                return statements.AlterCatalog(name, {}, self._strings(), place=place)
            self._need("COMMENT")
            return statements.AlterCatalog(name, {}, (), self._string(), place=place)
        if self._words("MODEL"):
            return self._alter_model()
        temporary = self._words("TEMPORARY")
        is_system = temporary and self._words("SYSTEM")
        if self._words("FUNCTION"):
            return self._function(temporary, is_system, is_altered=True)
        self.refuse(f"ALTER {self._text()} is not known", "alter a TABLE, VIEW, FUNCTION, MODEL, DATABASE or CATALOG")

    def _altered_partitions(self, path: statements.Path, place: Place) -> statements.AlterPartitions | None:
        """Parse ADD and DROP of partitions; None: something else follows."""
        is_partition = self._next is not None and self._next.text.upper() in ("PARTITION", "IF")
        if not is_partition or self._curr.text.upper() not in ("ADD", "DROP"):
            return None
        is_added = self._words("ADD")
        if not is_added:
            self._need("DROP")
        ignores = self._words("IF", "NOT", "EXISTS") if is_added else self._words("IF", "EXISTS")
        partitions = [self._partition()]
        while self._words(",") or self._text() == "PARTITION":
            partitions.append(self._partition())
        return statements.AlterPartitions(path, tuple(partitions), is_added, ignores, place=place)

    def _partition(self) -> tuple[dict[str, str], dict[str, str]]:
        """Parse PARTITION (...) [WITH (...)]."""
        self._need("PARTITION")
        values = self._partition_strings()
        return values, self._options() if self._words("WITH") else {}

    def _partition_strings(self) -> dict[str, str]:
        values: dict[str, str] = {}
        self._need("(")
        while True:
            name = self._name()
            self._need("=")
            if self._curr.token_type is TokenType.STRING:
                values[name] = self._string()
            else:
                self._advance()
                values[name] = str(self._prev.text)
            if not self._words(","):
                break
        self._need(")")
        return values

    def _begun_drop(self) -> statements.Drop:
        temporary = self._words("TEMPORARY")
        is_system = temporary and self._words("SYSTEM")
        for kind in ("FUNCTION",) if is_system else ("TABLE", "VIEW", "DATABASE", "FUNCTION", "MODEL", "CATALOG"):
            if self._words(kind):
                exists = self._words("IF", "EXISTS")
                place, path = self._path()
                if kind in ("DATABASE", "CATALOG") and temporary:
                    self.refuse(f"there are no temporary {kind.lower()}s", "leave TEMPORARY out", self._prev)
                cascade = kind == "DATABASE" and self._words("CASCADE")
                if kind == "DATABASE" and not cascade:
                    self._words("RESTRICT")
                return statements.Drop(kind, path, exists, temporary, cascade, is_system, place=place)
        self.refuse(f"DROP {self._text()} is not known", "drop a TABLE, VIEW, DATABASE, FUNCTION, MODEL or CATALOG")

    # USE, SHOW and DESCRIBE

    def _begun_use(self) -> statements.Use:
        if self._next is not None and self._next.token_type is TokenType.VAR and self._words("MODULES"):
            place, path = self._path()
            while self._words(","):
                path += self._path()[1]
            return statements.Use("MODULES", path, place=place)
        kind = "CATALOG" if self._words("CATALOG") else "DATABASE"
        place, path = self._path()
        return statements.Use(kind, path, place=place)

    def _begun_show(self) -> statements.Show:
        for what in _LISTS:
            if self._words(*what.split()):
                path: statements.Path = ()
                place = None
                if what in _OF_DATABASES and (self._words("FROM") or self._words("IN")):
                    place, path = self._path()
                show = statements.Show(what, path, place=place)
                return show if what.startswith("CURRENT") else self._liked(show)
        for what in ("CREATE TABLE", "CREATE VIEW", "CREATE CATALOG", "CREATE MODEL", "PARTITIONS"):
            if self._words(*what.split()):
                place, path = self._path()
                partition = self._partition()[0] if what == "PARTITIONS" and self._text() == "PARTITION" else {}
                return statements.Show(what, path, partition=partition, place=place)
        if self._words("COLUMNS"):
            if not (self._words("FROM") or self._words("IN")):
                self.refuse("FROM and a table are wanted", "write SHOW COLUMNS FROM table")
            place, path = self._path()
            return self._liked(statements.Show("COLUMNS", path, place=place))
        remedy = "show TABLES, VIEWS, DATABASES, CATALOGS, FUNCTIONS, COLUMNS FROM table or CREATE TABLE table"
        self.refuse(f"SHOW {self._text()} is not known", remedy)

    def _liked(self, show: statements.Show) -> statements.Show:
        negated = self._words("NOT")
        for word in ("LIKE", "ILIKE"):
            if self._words(word):
                return replace(show, like=self._string(), negated=negated, ignores_case=word == "ILIKE")
        return show

    def _begun_describe(self) -> statements.Describe:
        for kind in ("CATALOG", "DATABASE", "FUNCTION", "MODEL"):
            if self._next is not None and self._next.token_type is not TokenType.DOT and self._words(kind):
                is_extended = self._words("EXTENDED")
                place, path = self._path()
                return statements.Describe(path, kind, is_extended, place=place)
        is_extended = self._words("EXTENDED")
        place, path = self._path()
        return statements.Describe(path, "TABLE", is_extended, place=place)

    _begun_desc = _begun_describe

    def _text(self) -> str:
        """Return the next word in capitals; "": there is none."""
        return str(self._curr.text).upper() if self._curr else ""
