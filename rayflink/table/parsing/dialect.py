"""Flink's grammar of queries and expressions, as a dialect of sqlglot.

Functions stay calls by their name, with what Flink's special forms say as further arguments: sqlglot's own classes for
them are of other systems. Types become `DataType`s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import TokenType, exp, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.parser import IsPredicatePrecedence, Parser

from .chains import balance
from .hints import HINTED, JOIN_HINTS, LOOKUP, LOOKUPS, MULTI_JOIN, MULTI_JOINS, OPTIONS, STATE_TTL, hints_in
from .type_names import TypeNames

TABLE_FUNCTIONS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
"""Those whose first argument is a table."""
UNITS = ("MILLENNIUM", "CENTURY", "DECADE", "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND",
         "MILLISECOND", "MICROSECOND", "NANOSECOND", "EPOCH", "DOW", "ISODOW", "DOY", "ISOYEAR")  # fmt: skip

_WRAPPERS = [
    " ".join((*kind, *array, "WRAPPER"))
    for kind in (("WITHOUT",), ("WITH", "CONDITIONAL"), ("WITH", "UNCONDITIONAL"), ("WITH",))
    for array in (("ARRAY",), ())
]
_INSTEAD = {
    "JSON_EXISTS": ("TRUE", "FALSE", "UNKNOWN", "ERROR"),
    "JSON_VALUE": ("NULL", "ERROR"),
    "JSON_QUERY": ("NULL", "EMPTY ARRAY", "EMPTY OBJECT", "ERROR"),
}
"""The possible results where a path leads to nothing or to an error."""
_PLAIN = (TokenType.NUMBER, TokenType.STRING)


class Typed(exp.Expression):
    """A data type in a query; `this` is the `DataType`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class TableArgument(exp.Expression):
    """TABLE name, as an argument; `partition_by` and `order_by` are columns."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "partition_by": False, "order_by": False}


class Descriptor(exp.Expression):
    """DESCRIPTOR(columns)."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class NamedArgument(exp.Expression):
    """name => value."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class ModelArgument(exp.Expression):
    """MODEL name, as an argument; `this` is the tuple of the parts of the name."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class PathCall(exp.Expression):
    """A call of a function with its database, and maybe its catalog, before it; `this` is the tuple of names."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True}


class Interval(exp.Expression):
    """INTERVAL 'text' unit [TO unit]."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "unit": True, "to": False}


def _closed(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Parses the arguments of a function, behind which its parenthesis has to close."""

    def parsed(parser: Any) -> Any:
        tree = parse(parser)
        if parser._curr.token_type is not TokenType.R_PAREN:
            parser.raise_error("Expecting )")
        return tree

    return parsed


def with_path_calls(tree: Any) -> Any:
    """Return a tree in which `shop.f(x)` is a call by a full name, and no field of a column."""
    if isinstance(tree, exp.Column) and isinstance(tree.this, exp.Filter):
        filtered, before = tree.this, [tree.args.get(part) for part in ("catalog", "db", "table")]
        filtered.this.replace(_path_call([name.name for name in before if name is not None], filtered.this))
        return filtered.pop()
    if isinstance(tree, exp.Window) and isinstance(tree.this, exp.Dot):
        tree.set("this", with_path_calls(tree.this))
    node = tree
    while isinstance(node, (exp.Dot, exp.Bracket)):
        call = node.expression if isinstance(node, exp.Dot) else None
        if isinstance(call, exp.Anonymous) and all(isinstance(x, (exp.Dot, exp.Identifier)) for x in node.this.walk()):
            path_call = _path_call([name.name for name in node.this.find_all(exp.Identifier, bfs=False)], call)
            if node is tree:
                return path_call
            node.replace(path_call)
            return tree
        node = node.this
    return tree


def _path_call(before: list[str], call: Any) -> PathCall:
    path_call = PathCall(this=(*before, call.name), expressions=call.expressions)
    path_call.meta.update(call.meta)
    return path_call


class FlinkParser(TypeNames):
    """Parses queries and expressions."""

    hints_taken: set[int]
    """Where the hints begin that a table has."""

    IS_PREDICATE_PRECEDENCE = IsPredicatePrecedence.LOW
    """`a > 2 IS TRUE` is `(a > 2) IS TRUE`."""
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNC_TOKENS: ClassVar[set[Any]] = {*Parser.FUNC_TOKENS, TokenType.SESSION}
    COLUMN_OPERATORS: ClassVar[dict[Any, Any]] = {
        kind: parse for kind, parse in Parser.COLUMN_OPERATORS.items() if kind is not TokenType.DCOLON
    }
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": lambda self: self._parse_case()}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[[Any], Any]]] = {
        "CAST": _closed(lambda self: self._cast("CAST")),
        "TRY_CAST": _closed(lambda self: self._cast("TRY_CAST")),
        "EXTRACT": _closed(lambda self: self._extract()),
        "CEIL": _closed(lambda self: self._rounded("CEIL")),
        "CEILING": _closed(lambda self: self._rounded("CEIL")),
        "FLOOR": _closed(lambda self: self._rounded("FLOOR")),
        "TRIM": _closed(lambda self: self._trim()),
        "SUBSTRING": _closed(lambda self: self._substring()),
        "POSITION": _closed(lambda self: self._position()),
        "OVERLAY": _closed(lambda self: self._overlay()),
        "TIMESTAMPADD": _closed(lambda self: self._with_unit("TIMESTAMPADD")),
        "TIMESTAMPDIFF": _closed(lambda self: self._with_unit("TIMESTAMPDIFF")),
        "JSON_ARRAY": _closed(lambda self: self._json_array()),
        "JSON_ARRAYAGG": _closed(lambda self: self._call("JSON_ARRAYAGG", self._parse_disjunction(), self._on_null())),
        "JSON_OBJECTAGG": _closed(lambda self: self._json_object("JSON_OBJECTAGG")),
        "JSON_OBJECT": _closed(lambda self: self._json_object()),
        "JSON_EXISTS": _closed(lambda self: self._json("JSON_EXISTS")),
        "JSON_VALUE": _closed(lambda self: self._json("JSON_VALUE")),
        "JSON_QUERY": _closed(lambda self: self._json("JSON_QUERY")),
        "DESCRIPTOR": _closed(lambda self: self._descriptor()),
    }

    def _call(self, name: str, *args: Any) -> Any:
        return exp.Anonymous(this=name, expressions=[arg for arg in args if arg is not None])

    def _cast(self, name: str) -> Any:
        value = self._parse_disjunction()
        if not self._match(TokenType.ALIAS):
            self.raise_error("AS and a type are wanted in a CAST")
        return self._call(name, value, self._type())

    def _extract(self) -> Any:
        unit = self._unit()
        if not self._match(TokenType.FROM):
            self.raise_error("FROM is wanted behind the unit of EXTRACT")
        return self._call("EXTRACT", unit, self._parse_disjunction())

    def _rounded(self, name: str) -> Any:
        value = self._parse_disjunction()
        unit = self._unit() if self._match_text_seq("TO") else None
        if unit is None and self._match(TokenType.COMMA):
            return self._call(name, value, *self._parse_csv(self._parse_disjunction))
        return self._call(name, value, unit)

    def _trim(self) -> Any:
        side = next((words for words in ("BOTH", "LEADING", "TRAILING") if self._words(words)), "BOTH")
        characters = None
        if self._match(TokenType.FROM):
            value = self._parse_bitwise()
        else:
            value = self._parse_bitwise()
            if self._match(TokenType.FROM):
                characters, value = value, self._parse_bitwise()
        return self._call("TRIM", exp.Var(this=side), value, characters)

    def _substring(self) -> Any:
        args = self._parse_csv(self._parse_bitwise)
        if self._match(TokenType.FROM):
            args.append(self._parse_bitwise())
            if self._match(TokenType.FOR):
                args.append(self._parse_bitwise())
        return self._call("SUBSTRING", *args)

    def _position(self) -> Any:
        needle = self._parse_bitwise()
        if not self._match(TokenType.IN):
            self.raise_error("IN is wanted: POSITION(text IN text)")
        return self._call("POSITION", needle, self._parse_bitwise())

    def _overlay(self) -> Any:
        args = [self._parse_bitwise()]
        for word in ("PLACING", "FROM", "FOR"):
            if self._words(word) or self._match(TokenType.COMMA):
                args.append(self._parse_bitwise())
            elif word != "FOR":
                self.raise_error(f"the word {word} is wanted: OVERLAY(text PLACING text FROM start [FOR length])")
        return self._call("OVERLAY", *args)

    def _with_unit(self, name: str) -> Any:
        unit = self._unit()
        if not self._match(TokenType.COMMA):
            self.raise_error(f", is wanted behind the unit of {name}")
        return self._call(name, unit, *self._parse_csv(self._parse_disjunction))

    def _unit(self) -> Any:
        text = self._curr.text.upper()
        if text.removesuffix("S") in UNITS and text not in UNITS:
            text = text.removesuffix("S")
        text = text.removeprefix("SQL_TSI_")
        if text not in UNITS:
            self.raise_error(f"a unit of time is wanted, such as {', '.join(UNITS[3:11])}")
        self._advance()
        return exp.Var(this=text)

    def _json(self, name: str) -> Any:
        args = self._parse_csv(self._parse_disjunction)
        words: list[Any] = []
        ends = {"ON EMPTY", "ON ERROR"} if name != "JSON_EXISTS" else {"ON ERROR"}
        if name != "JSON_EXISTS" and self._words("RETURNING"):
            words.append(Typed(this=self._without_null()))  # a NULL behind it is that of ON EMPTY or ON ERROR
        if wrapper := next(
            (option for option in _WRAPPERS if name == "JSON_QUERY" and self._words(*option.split())), None
        ):
            words += [exp.Var(this=word) for word in wrapper.split()]
        while ends and self._curr.token_type is not TokenType.R_PAREN:
            if name == "JSON_VALUE" and self._words("DEFAULT"):
                words += [exp.Var(this="DEFAULT"), self._parse_bitwise()]
            else:
                clause = next((option for option in _INSTEAD[name] if self._words(*option.split())), "")
                words += [exp.Var(this=word) for word in clause.split()]
            end = next((option for option in ends if self._words(*option.split())), None)
            if end is None:
                clauses = f"{', '.join(_INSTEAD[name])}{', DEFAULT value' * (name == 'JSON_VALUE')}"
                self.raise_error(f"one of {clauses} and {' or '.join(sorted(ends))} are wanted")
                break
            words += [exp.Var(this=word) for word in end.split()]
            ends.remove(end)
        return self._call(name, *args, *words)

    def _json_array(self) -> Any:
        args = self._parse_csv(self._parse_disjunction) if not self._on_null_follows() else []
        return self._call("JSON_ARRAY", *args, self._on_null())

    def _json_object(self, name: str = "JSON_OBJECT") -> Any:
        args: list[Any] = []
        while self._curr.token_type is not TokenType.R_PAREN and not self._on_null_follows():
            if args and not self._match(TokenType.COMMA):
                break
            self._match_text_seq("KEY")
            args.append(self._parse_bitwise())
            if not self._match_text_seq("VALUE"):
                self.raise_error("VALUE is wanted behind the key of JSON_OBJECT")
            args.append(self._parse_disjunction())
        return self._call(name, *args, self._on_null())

    def _on_null_follows(self) -> bool:
        return self._curr.text.upper() in ("NULL", "ABSENT") and self._next.text.upper() == "ON"

    def _on_null(self) -> Any:
        """{NULL | ABSENT} ON NULL, if it is there."""
        if not self._on_null_follows():
            return None
        word = self._curr.text.upper()
        self._advance(2)
        self._match(TokenType.NULL)
        return exp.Var(this=word)

    def _descriptor(self) -> Any:
        return Descriptor(expressions=self._parse_csv(self._parse_id_var))

    def _type(self) -> Any:
        return Typed(this=self.parsed_type())

    # literals of time, and collections

    def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True) -> Any:
        start, first = self._index, self._curr
        if not self._match(TokenType.INTERVAL):
            return None
        negative = self._match(TokenType.DASH)
        if not self._match(TokenType.STRING):
            self._retreat(start)
            return None
        text = ("-" if negative else "") + self._prev.text
        unit = self._unit().name
        self._precision()
        to = self._unit().name if self._match_text_seq("TO") else None
        self._precision()
        interval = Interval(this=text, unit=unit, to=to)
        interval.meta.update(start=first.start, end=self._prev.end)
        return interval

    def _precision(self) -> None:
        if self._match_pair(TokenType.L_PAREN, TokenType.NUMBER):
            self._match_r_paren()

    def _parse_types(self, *args: Any, **options: Any) -> Any:
        """Types stand in casts alone here, which read them by `parsed_type`."""
        return None

    def _parse_column_ops(self, this: Any) -> Any:
        return with_path_calls(super()._parse_column_ops(this))

    def _parse_disjunction(self) -> Any:
        return balance(super()._parse_disjunction())

    def _parse_conjunction(self) -> Any:
        return balance(super()._parse_conjunction())

    def _parse_select_or_expression(self, alias: bool = False) -> Any:
        """Parse the constants of a long list directly."""
        if self._curr.token_type in _PLAIN and self._next.token_type in (TokenType.COMMA, TokenType.R_PAREN):
            return super()._parse_primary()
        return super()._parse_select_or_expression(alias=alias)

    def _parse_primary(self) -> Any:
        token, following = self._curr, self._next
        word = token.text.upper()
        if token.token_type is not TokenType.STRING and following.token_type is TokenType.STRING:
            if word in ("DATE", "TIME", "TIMESTAMP"):
                self._advance(2)
                return self._call(f"{word} LITERAL", exp.Literal.string(self._prev.text)).update_positions(token)
        if word in ("ARRAY", "MAP") and following.token_type is TokenType.L_BRACKET:
            self._advance(2)
            items = self._parse_csv(self._parse_disjunction)
            if not self._match(TokenType.R_BRACKET):
                self.raise_error("] is wanted")
            return self._call(word, *items).update_positions(token)
        return super()._parse_primary()

    def _parse_lambda(self, alias: bool = False) -> Any:
        if self._next.token_type is TokenType.FARROW:
            name = self._curr.text
            self._advance(2)
            return NamedArgument(this=name, expression=self._parse_lambda())
        if self._curr.token_type is TokenType.TABLE:
            return self._table_argument()
        if self._curr.text.upper() == "MODEL" and self._next.token_type in (TokenType.VAR, TokenType.IDENTIFIER):
            return self._model_argument()
        return super()._parse_lambda(alias=alias)

    def _parse_csv(self, parse_method: Any, sep: TokenType = TokenType.COMMA) -> list[Any]:
        first = parse_method()
        items = [] if first is None else [first]
        while items and self._match(sep):
            following = parse_method()
            if following is None:
                self.raise_error(f"something is wanted behind the {self._prev.text!r}")
            items.append(following)
        return items

    # tables

    def _table_argument(self) -> Any:
        self._advance()
        argument = TableArgument(this=self._parse_table_parts())
        if self._words("PARTITION", "BY"):
            argument.set("partition_by", self._columns())
        if self._words("ORDER", "BY"):
            argument.set("order_by", self._keys())
        return argument

    def _keys(self) -> list[Any]:
        """Return the keys of ORDER BY of a table argument, of which several stand in parentheses."""
        if not self._match(TokenType.L_PAREN):
            return [self._parse_ordered()]
        keys = self._parse_csv(self._parse_ordered)
        self._match_r_paren()
        return keys

    def _model_argument(self) -> Any:
        first = self._curr
        self._advance()
        names: list[str] = []
        while not names or self._match(TokenType.DOT):
            part = self._parse_id_var()
            if part is None:
                self.raise_error("the name of a model is wanted behind MODEL")
                break
            names.append(part.name)
        argument = ModelArgument(this=tuple(names))
        argument.meta.update(start=first.start, end=self._prev.end)
        return argument

    def _columns(self) -> list[Any]:
        """Return the columns behind BY; arguments follow them, so a name before => is no column."""
        if self._match(TokenType.L_PAREN):
            columns = self._parse_csv(self._parse_column)
            self._match_r_paren()
            return list(columns)
        columns = [self._parse_column()]
        while self._curr.token_type is TokenType.COMMA and self._is_plain_column():
            self._advance()
            columns.append(self._parse_column())
        return columns

    def _is_plain_column(self) -> bool:
        tokens_left = self._tokens[self._index + 1 : self._index + 3]
        kinds = [token.token_type for token in tokens_left]
        names = (TokenType.VAR, TokenType.IDENTIFIER)
        return len(kinds) == 2 and kinds[0] in names and kinds[1] in (TokenType.COMMA, TokenType.R_PAREN)

    def _parse_table_parts(self, *args: Any, **options: Any) -> Any:
        """Parse a table's name, with the options of a hint behind it."""
        table = super()._parse_table_parts(*args, **options)
        stop = self._curr.start if self._curr else len(self.sql)
        for hint in hints_in(self.sql, self._prev.end + 1, stop) if table is not None else ():
            if hint.name != OPTIONS:
                continue
            assert table is not None
            table.meta[HINTED] = {**(table.meta.get(HINTED) or {}), **hint.options(self.sql)}
            self.hints_taken.add(hint.comment.start)
        if table is not None and isinstance(table.this, exp.Anonymous) and table.args.get("db"):
            names = [part.name for part in (table.args.get("catalog"), table.args["db"]) if part is not None]
            table = exp.Table(this=_path_call(names, table.this))
        if self._curr.token_type is TokenType.STAR:
            self.raise_error("a name or a clause is wanted behind a table")
        return table

    def _parse_hint(self) -> Any:
        """STATE_TTL, LOOKUP and MULTI_JOIN behind SELECT."""
        if not self._match(TokenType.HINT):
            return None
        pairs: list[tuple[str, str]] = []
        lookups: list[dict[str, str]] = []
        multi_joins: list[list[str]] = []
        for hint in hints_in(self.sql, self._prev.start, self._prev.end + 1):
            if hint.name == STATE_TTL:
                pairs += hint.options(self.sql).items()
            elif hint.name == LOOKUP:
                lookups.append(hint.options(self.sql))
            elif hint.name == MULTI_JOIN:
                multi_joins.append(hint.names(self.sql))
            elif hint.name not in JOIN_HINTS:
                raise hint.misplaced(self.sql)
        if not pairs and not lookups and not multi_joins:
            return None
        strings = [exp.EQ(this=exp.Literal.string(key), expression=exp.Literal.string(value)) for key, value in pairs]
        hints = exp.Hint(expressions=strings)
        hints.meta[LOOKUPS], hints.meta[MULTI_JOINS] = lookups, multi_joins
        return hints

    def _parse_pipe_syntax_query(self, query: Any) -> Any:
        self.raise_error("|> is no SQL of Flink: nest the queries, or write WITH")

    def _parse_table(self, *args: Any, **options: Any) -> Any:
        token = self._curr
        wrapped = token.token_type is TokenType.TABLE and self._next.token_type is TokenType.L_PAREN
        if wrapped:
            self._advance(2)
        if not wrapped and not self._is_table_function():
            return super()._parse_table(*args, **options)
        call = self._parse_function(anonymous=True, any_token=True)
        if call is None:
            self.raise_error("a table function is wanted, such as TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)")
        if wrapped:
            self._match_r_paren()
        table = exp.Table(this=call)
        alias = self._parse_table_alias()
        if alias:
            table.set("alias", alias)
        return table

    def _is_table_function(self) -> bool:
        return self._curr.text.upper() in TABLE_FUNCTIONS and self._next.token_type is TokenType.L_PAREN


class Flink(Dialect):
    """Apache Flink's SQL."""

    NULL_ORDERING = "nulls_are_small"

    class Tokenizer(tokens.Tokenizer):
        """Back quotes around names, quotes in strings doubled."""

        IDENTIFIERS: ClassVar[list[Any]] = ["`"]
        QUOTES: ClassVar[list[Any]] = ["'"]
        STRING_ESCAPES: ClassVar[list[str]] = ["'"]
        HEX_STRINGS: ClassVar[list[Any]] = [("x'", "'"), ("X'", "'")]
        COMMENTS: ClassVar[list[Any]] = ["--", ("/*", "*/")]
        NESTED_COMMENTS: ClassVar[bool] = False
        COMMANDS: ClassVar[set[Any]] = set()

    Parser = FlinkParser
