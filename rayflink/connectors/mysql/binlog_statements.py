"""Statements in the log: which tables they change, and how. Rows are in events of their own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

_TOKEN = re.compile(
    r"""(?P<skip>\s+|--[ \t].*?(?:\n|$)|\#.*?(?:\n|$)|/\*(?![!M]).*?\*/|/\*M?!\d*|\*/)"""
    r"""|(?P<quoted>`(?:[^`]|``)*`|"(?:[^"]|"")*")|(?P<string>'(?:[^'\\]|\\.|'')*')|(?P<word>[\w$]+)|(?P<sign>.)""",
    re.DOTALL,
)
_MOST_TOKENS = 4000


class Effect(Enum):
    """The ways in which a statement changes a table."""

    TRUNCATE = "truncated"
    DROP = "dropped"
    RENAME = "renamed"
    ALTER = "altered"
    ROWS = "changed by a statement whose rows are not in the log"


@dataclass(frozen=True)
class TableEffect:
    """The effect of a statement on one table.

    Args:
        schema: the database of the table.
        table: its name; "": all tables of the database.
    """

    effect: Effect
    schema: str
    table: str


class _Tokens:
    """The tokens of a statement: words in upper case, and names as they are."""

    def __init__(self, statement: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        for token in _TOKEN.finditer(statement):
            kind = token.lastgroup or ""
            if kind != "skip":
                self._tokens.append((kind, token[0]))
            if len(self._tokens) >= _MOST_TOKENS:
                break
        self._at = 0

    @property
    def is_ended(self) -> bool:
        return self._at >= len(self._tokens)

    def take(self, *words: str) -> bool:
        """Pass some words, if they come next."""
        ahead = self._tokens[self._at : self._at + len(words)]
        if [text.upper() for kind, text in ahead if kind in ("word", "sign")] != list(words):
            return False
        self._at += len(words)
        return True

    def skip_any(self, *words: str) -> None:
        """Pass any of some words, in any order."""
        while any(self.take(word) for word in words):
            pass

    def next(self) -> None:
        self._at += 1

    def name(self, schema: str) -> tuple[str, str] | None:
        """Return a table's database and name, and pass them; None: there is no name."""
        first = self._identifier()
        if first is None:
            return None
        if self.take("."):
            second = self._identifier()
            return None if second is None else (first, second)
        return schema, first

    def _identifier(self) -> str | None:
        if self.is_ended or self._tokens[self._at][0] not in ("quoted", "word"):
            return None
        kind, text = self._tokens[self._at]
        self._at += 1
        return text[1:-1].replace(text[0] * 2, text[0]) if kind == "quoted" else text


def effects_of(statement: str, schema: str) -> list[TableEffect]:
    """Return what a statement of the log does to tables.

    A table that is renamed and whose name another one gets in the same statement, as tools for schema changes do it, is
    altered.

    >>> effects_of("TRUNCATE orders", "shop")
    [TableEffect(effect=<Effect.TRUNCATE: 'truncated'>, schema='shop', table='orders')]
    >>> [found.effect.name for found in effects_of("rename table a to b, c to a", "shop")]
    ['ALTER', 'RENAME']

    Args:
        schema: the database in which the statement was run.
    """
    tokens = _Tokens(statement)
    if tokens.take("SET"):  # MariaDB's SET STATEMENT ... FOR
        if not tokens.take("STATEMENT"):
            return []
        while not tokens.is_ended and not tokens.take("FOR"):
            tokens.next()
    if tokens.take("TRUNCATE"):
        tokens.take("TABLE")
        return _one(Effect.TRUNCATE, tokens, schema)
    if tokens.take("DROP"):
        return _drop(tokens, schema)
    if tokens.take("RENAME"):
        return _rename(tokens, schema)
    if tokens.take("ALTER"):
        return _alter(tokens, schema)
    if tokens.take("CREATE", "OR", "REPLACE", "TABLE"):
        return _one(Effect.DROP, tokens, schema)
    return _rows(tokens, schema)


def _one(effect: Effect, tokens: _Tokens, schema: str) -> list[TableEffect]:
    name = tokens.name(schema)
    return [] if name is None else [TableEffect(effect, *name)]


def _drop(tokens: _Tokens, schema: str) -> list[TableEffect]:
    if tokens.take("DATABASE") or tokens.take("SCHEMA"):
        tokens.take("IF", "EXISTS")
        name = tokens.name(schema)
        return [] if name is None else [TableEffect(Effect.DROP, name[1], "")]
    if not (tokens.take("TABLE") or tokens.take("TABLES")):
        return []
    tokens.take("IF", "EXISTS")
    effects = _one(Effect.DROP, tokens, schema)
    while tokens.take(","):
        effects += _one(Effect.DROP, tokens, schema)
    return effects


def _rename(tokens: _Tokens, schema: str) -> list[TableEffect]:
    if not (tokens.take("TABLE") or tokens.take("TABLES")):
        return []
    tokens.take("IF", "EXISTS")
    pairs: list[tuple[tuple[str, str], tuple[str, str]]] = []
    while (source := tokens.name(schema)) is not None:
        if tokens.take("WAIT"):
            tokens.next()
        tokens.take("NOWAIT")
        target = tokens.name(schema) if tokens.take("TO") else None
        if target is None:
            break
        pairs.append((source, target))
        if not tokens.take(","):
            break
    new_names = {target for _, target in pairs}
    return [TableEffect(Effect.ALTER if source in new_names else Effect.RENAME, *source) for source, _ in pairs]


def _alter(tokens: _Tokens, schema: str) -> list[TableEffect]:
    tokens.skip_any("ONLINE", "IGNORE")
    if not tokens.take("TABLE"):
        return []
    tokens.take("IF", "EXISTS")
    name = tokens.name(schema)
    if name is None:
        return []
    effects = [TableEffect(Effect.ALTER, *name)]
    while not tokens.is_ended:
        if tokens.take("RENAME"):
            if not (tokens.take("COLUMN") or tokens.take("INDEX") or tokens.take("KEY")):
                effects.append(TableEffect(Effect.RENAME, *name))
        elif tokens.take("TRUNCATE", "PARTITION"):
            effects.append(TableEffect(Effect.TRUNCATE, *name))
        elif tokens.take("DROP", "PARTITION"):
            effects.append(TableEffect(Effect.TRUNCATE, *name))
        else:
            tokens.next()
    return effects


def _rows(tokens: _Tokens, schema: str) -> list[TableEffect]:
    for verb in ("INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD"):
        if not tokens.take(verb):
            continue
        if verb == "LOAD":
            while not tokens.is_ended and not tokens.take("TABLE"):
                tokens.next()
        tokens.skip_any("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "QUICK", "IGNORE", "INTO", "FROM")
        return _one(Effect.ROWS, tokens, schema)
    return []


__all__ = ["Effect", "TableEffect", "effects_of"]
