"""Statements of Flink's SQL: what they begin with is read here, queries and expressions by the dialect."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NoReturn

from sqlglot import Token, TokenType
from sqlglot.errors import ParseError, TokenError

from ..errors import SqlError, nearest
from ..plan.conflicts import OnConflict
from ..plan.typed import Place
from ..types import DataType
from . import statements
from .dialect import Flink
from .foreign_statements import refusal
from .hints import OPTIONS, hints_in
from .known_parts import KnownParts
from .nesting import deeply
from .table_parser import TableDefinitions

_BEGINNINGS = ("SELECT", "WITH", "VALUES", "INSERT", "CREATE", "DROP", "ALTER", "USE", "SHOW", "DESCRIBE", "DESC",
               "EXPLAIN", "COMPILE", "SET", "RESET", "EXECUTE", "BEGIN", "REPLACE")  # fmt: skip
_NO_WORDS = (TokenType.COMMA, TokenType.NUMBER, TokenType.STRING, TokenType.IDENTIFIER)


@dataclass(frozen=True)
class ScriptPart:
    """One statement of a text with several.

    Args:
        text: of the statement, with the comments before it.
        offset: place of its first character in the whole text.
        start: place of its first word in the whole text.
        tokens: of it; their places count from `offset`.
    """

    text: str
    offset: int
    start: int
    tokens: tuple[Token, ...]

    def statement(self) -> statements.AnyStatement:
        """Parse the statement.

        Raises:
            SqlError: that is no statement.
        """
        tokens = list(self.tokens) if self.offset == 0 else None
        parsed: statements.AnyStatement = deeply(lambda: StatementParser(self.text, tokens).statement(), self.text)
        return parsed


def parse_statement(text: str) -> statements.AnyStatement:
    """Return the one statement of a text.

    Raises:
        SqlError: there is none, or another behind it.
    """
    parts = script_parts(text)
    if len(parts) != 1:
        remedy = "pass one statement per call, or run all of them with execute_script()"
        second = parts[1].tokens[0] if parts else None
        place = None if second is None else Place(second.start, second.end + 1)
        raise SqlError(f"found {len(parts)} statements, expected one", remedy, text, place)
    return parts[0].statement()


def parse_expression(text: str) -> statements.Tree:
    """Parse one expression.

    Raises:
        SqlError: it is none.
    """

    def parse() -> statements.Tree:
        parser = StatementParser(text)
        tree = parser.whole(parser._parse_expression)
        parser.ensure_known(tree, "selected")
        return tree

    return deeply(parse, text)


def parse_type(text: str) -> DataType:
    """Return a type, such as "ROW<word STRING, size INT>".

    Raises:
        SqlError: it is none.
    """
    parser = StatementParser(text)
    data_type: DataType = parser.whole(parser.parsed_type)
    return data_type


def _tokens(text: str) -> list[Token]:
    try:
        tokens = list(Flink().tokenize(text))
        _ensure_apart(text, tokens)
        return tokens
    except TokenError as error:
        place = _unclosed(text)
        problem = (
            f"the statement cannot be read ({error})" if place is None else "the statement cannot be read from here on"
        )
        raise SqlError(problem, "close the quote or the comment", text, place) from error


def _ensure_apart(text: str, tokens: Sequence[Token]) -> None:
    """Refuse numbers with letters that stand at them, which would be read as names of their columns."""
    for token, following in zip_longest(tokens, tokens[1:]):
        stop = token.end + 1
        if token.token_type is TokenType.NUMBER and following is not None and following.start == stop:
            is_word = following.token_type is not TokenType.IDENTIFIER and following.text[:1].isidentifier()
            stop = following.end + 1 if is_word else stop
        is_number = token.token_type is TokenType.NUMBER and stop == token.end + 1
        if is_number and not _NUMBER.fullmatch(token.text) or stop != token.end + 1 or _is_prefixed(token, text):
            problem = f"{text[token.start : stop]} is not a number"
            raise SqlError(
                problem, "write digits, as 1000, 1.5, 1e3, or X'1F' for bytes", text, Place(token.start, stop)
            )


def _is_prefixed(token: Token, text: str) -> bool:
    return token.token_type in (TokenType.HEX_STRING, TokenType.BIT_STRING) and text[token.start] == "0"


_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def _unclosed(text: str) -> Place | None:
    """Return the quote or comment that is not closed."""
    return next((Place(*match.span()) for match in _QUOTED.finditer(text) if match[0] in ("'", "`", "/*")), None)


_QUOTED = re.compile(r"'(?:[^']|'')*'|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|/\*|['`]", re.DOTALL)
"""Strings, quoted names and comments, and what begins one without an end."""


def script_parts(text: str) -> list[ScriptPart]:
    """Return the statements of a text, divided by semicolons; what stands between BEGIN and END is one.

    Semicolons in strings, quoted names and comments divide nothing; a statement without a word is none.

    Raises:
        SqlError: a quote or comment is not closed.
    """
    parts: list[ScriptPart] = []
    offset, depth = 0, 0
    tokens: list[Token] = []
    for token in _tokens(text):
        word = "" if token.token_type in _NO_WORDS else token.text.upper()
        if token.token_type is TokenType.SEMICOLON and not depth:
            if tokens:
                parts.append(ScriptPart(text[offset : token.start], offset, tokens[0].start, tuple(tokens)))
            offset, tokens = token.end + 1, []
            continue
        if word == "BEGIN" and _begins_set(tokens):
            depth = 1
        elif depth and word == "CASE":
            depth += 1
        elif depth and word == "END":
            depth -= 1
        tokens.append(token)
    if tokens:
        parts.append(ScriptPart(text[offset:], offset, tokens[0].start, tuple(tokens)))
    return parts


def _begins_set(before: Sequence[Token]) -> bool:
    """Return whether BEGIN behind these words begins a statement set."""
    return not before or (len(before) > 1 and [token.text.upper() for token in before[-2:]] == ["STATEMENT", "SET"])


class StatementParser(TableDefinitions):
    """Parses one statement.

    Args:
        text: of the statement alone.
        tokens: its tokens, where they are known.
    """

    def __init__(self, text: str, tokens: list[Token] | None = None) -> None:
        super().__init__(dialect=Flink())
        self.text = text
        self.begin(text, tokens)

    def begin(self, text: str, tokens: list[Token] | None = None) -> None:
        """Read a text from its beginning."""
        self.reset()
        self.sql = text
        self._tokens = _tokens(text) if tokens is None else tokens
        self._tokens_size = len(self._tokens)
        self._chunks = [self._tokens]
        self._index = -1
        self.hints_taken = set()
        self._known_parts = KnownParts(text, self._tokens)
        self._advance()

    def ensure_known(self, tree: statements.Tree, role: str) -> None:
        """Refuse a tree with a part that has no meaning in a role of the grammar."""
        self._known_parts.check(tree, role)

    def statement(self) -> statements.AnyStatement:
        """Parse the text.

        Raises:
            SqlError: that is no statement.
        """
        parsed: statements.AnyStatement = self.whole(self._any)
        return parsed

    def _ensure_hints(self) -> None:
        """Refuse hints that would be ignored."""
        if "/*+" not in self.sql:
            return
        ends = [0, *(token.end + 1 for token in self._tokens)]
        for start, stop in zip(ends, [*(token.start for token in self._tokens), len(self.sql)], strict=True):
            for hint in hints_in(self.sql, start, stop):
                if hint.name != OPTIONS or hint.comment.start not in self.hints_taken:
                    raise hint.misplaced(self.text)

    def whole(self, parse: Any) -> Any:
        """Parse the whole text by one part of the grammar.

        Raises:
            SqlError: it is something else, or something stands behind it.
        """
        try:
            result = parse()
            if result is None:
                self.refuse("something else is wanted here", "see the grammar in docs/sql.md")
            if self._curr:
                remedy = (
                    "write CAST(a AS INT)"
                    if self._curr.text == "::"
                    else "remove it, or see the grammar in docs/sql.md"
                )
                self.refuse(f"{self._curr.text!r} is not expected here", remedy)
            self._ensure_hints()
            return result
        except ParseError as error:
            raise self._to_sql_error(error) from error

    def refuse(self, problem: str, remedy: str, token: Token | None = None) -> NoReturn:
        """Raise an error about the next token.

        Raises:
            SqlError: always.
        """
        token = token or self._curr or self._prev
        raise SqlError(problem, remedy, self.text, Place(token.start, token.end + 1))

    def _to_sql_error(self, error: ParseError) -> SqlError:
        first = error.errors[0] if error.errors else {}
        problem = str(first.get("description") or error)
        token = self._curr or self._prev
        current = repr(self._curr.text) if self._curr else "the end"
        if "<Token" in problem:
            problem = problem.split(" but got")[0]
        elif "<class" in problem:
            problem = f"something is missing after {self._prev.text!r}"
        place = Place(token.start, token.end + 1)
        if "; " in problem:
            problem, _, remedy = problem.partition("; ")
            return SqlError(problem, remedy, self.text, place)
        if problem[1:2].islower():
            problem = f"{problem[:1].lower()}{problem[1:]}"
        problem = f"{problem}, found {current}"
        return SqlError(problem, "see the grammar in docs/sql.md", self.text, place)

    # statements

    def _any(self) -> statements.AnyStatement:
        word = self._curr.text.upper() if self._curr else ""
        if word in ("SELECT", "WITH", "VALUES", "("):
            return statements.Query(self._query())
        if refused := refusal(word, self._next.text.upper() if self._next else ""):
            self.refuse(*refused)
        begun = getattr(self, f"_begun_{word.lower()}", None)
        if begun is None or word not in _BEGINNINGS:
            remedy = f"begin with one of {', '.join(_BEGINNINGS)}{nearest(word, _BEGINNINGS)}"
            self.refuse(f"{self._curr.text!r} begins no statement", remedy)
        self._advance()
        statement: statements.AnyStatement = begun()
        return statement

    def _query(self) -> statements.Tree:
        tree = self._parse_select(nested=True)
        tree = self._parse_set_operations(tree) if tree is not None else None
        tree = self._parse_query_modifiers(tree)
        if tree is None:
            self.refuse("a query is wanted", "begin it with SELECT, VALUES or WITH")
        self.ensure_known(tree, "query")
        return tree

    def _begun_insert(self) -> statements.Insert:
        overwrite = self._words("OVERWRITE")
        if not overwrite:
            self._need("INTO")
        place, path = self._path()
        partition = self._partition_values() if self._words("PARTITION") else {}
        columns = None
        if self._curr.token_type is TokenType.L_PAREN and not self._is_query_ahead():
            columns = self._names()
        query, on_conflict = self._query_and_conflict()
        return statements.Insert(path, query, columns, partition, overwrite, on_conflict, place=place)

    def _query_and_conflict(self) -> tuple[statements.Tree, OnConflict | None]:
        """Parse the query of an INSERT up to its ON CONFLICT, which is no condition of a join."""
        stop = self._conflict_index()
        if stop is None:
            return self._query(), None
        begins_clause = self._tokens[stop]
        tokens = list(self._tokens)
        tokens[stop] = Token(TokenType.SEMICOLON, ";", start=begins_clause.start, end=begins_clause.end)
        self._tokens, whole = tokens, self._tokens
        query = self._query()
        self._tokens = whole
        self._advance(0)  # reads the token again
        self._need("ON", "CONFLICT")
        for action in OnConflict:
            if self._words(*action.value.split()):
                return query, action
        self.refuse(
            f"{self._curr.text!r} is no action of ON CONFLICT" if self._curr else "ON CONFLICT has no action",
            "write ON CONFLICT DO NOTHING, DO ERROR or DO DEDUPLICATE",
        )

    def _conflict_index(self) -> int | None:
        """Return the place of ON CONFLICT among the tokens of this INSERT; None: it has none."""
        for index in range(self._index, len(self._tokens) - 1):
            token, following = self._tokens[index : index + 2]
            if token.token_type is TokenType.SEMICOLON:
                return None
            is_conflict = following.token_type is not TokenType.IDENTIFIER and following.text.upper() == "CONFLICT"
            if token.token_type is TokenType.ON and is_conflict and self._is_action_ahead(index + 2):
                return index
        return None

    def _is_action_ahead(self, index: int) -> bool:
        """Return whether DO, names and DO, or the end follows; if not, `conflict` is part of a condition."""
        kinds = [token.token_type for token in self._tokens[index:]]
        if kinds[:1] == [TokenType.L_PAREN] and TokenType.R_PAREN in kinds:
            index += kinds.index(TokenType.R_PAREN) + 1
            return index < len(self._tokens) and self._tokens[index].text.upper() == "DO"
        return not kinds or kinds[0] is TokenType.SEMICOLON or self._tokens[index].text.upper() == "DO"

    def _is_query_ahead(self) -> bool:
        return self._next is not None and self._next.text.upper() in ("SELECT", "WITH", "VALUES", "(")

    def _partition_values(self) -> dict[str, statements.Tree]:
        values: dict[str, statements.Tree] = {}
        self._need("(")
        while True:
            name = self._name()
            self._need("=")
            values[name] = self._parse_primary()
            if values[name] is None:
                self.refuse("a value is wanted", "write PARTITION (key = 'value')")
            self.ensure_known(values[name], "value")
            if not self._words(","):
                break
        self._need(")")
        return values

    def _begun_execute(self) -> statements.AnyStatement:
        if self._words("STATEMENT", "SET"):
            return self._statement_set()
        if self._words("PLAN"):
            return statements.ExecutePlan(self._plan_path())
        if self._curr.text.upper() == "INSERT":
            self._advance()
            return self._begun_insert()
        return statements.Query(self._query())

    def _begun_begin(self) -> statements.AnyStatement:
        self._retreat(self._index - 1)
        return self._statement_set()

    def _statement_set(self) -> statements.StatementSetOf:
        self._need("BEGIN")
        self._words("STATEMENT", "SET")
        self._words(";")
        inserts: list[statements.Insert] = []
        while not self._words("END"):
            self._need("INSERT")
            inserts.append(self._begun_insert())
            self._words(";")
        if not inserts:
            self.refuse("a statement set without a statement", "write INSERT INTO ... before END", self._prev)
        return statements.StatementSetOf(tuple(inserts))

    def _begun_explain(self) -> statements.Explain:
        details: list[str] = []
        if self._words("PLAN", "FOR"):
            return statements.Explain(self._any())
        kinds = ("ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE")
        while self._curr.text.upper() in kinds:
            details.append(self._curr.text.upper())
            self._advance()
            self._words(",")
        if self._curr.text.upper() == "STATEMENT":
            self._need("STATEMENT", "SET")
            return statements.Explain(self._statement_set(), tuple(details))
        return statements.Explain(self._any(), tuple(details))

    def _begun_compile(self) -> statements.CompilePlan:
        executes = self._words("AND", "EXECUTE")
        self._need("PLAN")
        path, if_not_exists = self._plan_path(), False
        if not executes:
            if_not_exists = self._words("IF", "NOT", "EXISTS")
        self._need("FOR")
        if self._words("INSERT"):
            return statements.CompilePlan(path, self._begun_insert(), if_not_exists, executes)
        self._words("EXECUTE")
        self._need("STATEMENT", "SET")
        return statements.CompilePlan(path, self._statement_set(), if_not_exists, executes)

    def _plan_path(self) -> str:
        if self._curr is None or self._curr.token_type is not TokenType.STRING:
            self.refuse("the file of a plan is wanted", "write its path in quotes: PLAN '/plans/orders.json'")
        return self._string().removeprefix("file://")

    def _begun_set(self) -> statements.SetOption:
        if not self._curr:
            return statements.SetOption()
        key = self._option_name()
        self._need("=")
        return statements.SetOption(key, self._option_value())

    def _begun_reset(self) -> statements.ResetOption:
        return statements.ResetOption(self._option_name() if self._curr else None)

    def _option_name(self) -> str:
        """Return a quoted key, or one written as it is, with its points and dashes."""
        if self._curr.token_type is TokenType.STRING:
            return self._string()
        start = self._curr
        while self._curr and self._curr.text != "=" and (self._curr is start or self._is_connected()):
            self._advance()
        return self.text[start.start : self._prev.end + 1]

    def _option_value(self) -> str:
        if self._curr.token_type is TokenType.STRING:
            return self._string()
        start = self._curr
        if not start:
            self.refuse("a value is wanted behind =", "quote it: SET 'key' = 'value'")
        while self._curr:
            self._advance()
        return self.text[start.start : self._prev.end + 1]
