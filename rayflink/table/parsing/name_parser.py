"""Words, names and options of statements, from which the definitions are put together."""

from __future__ import annotations

from typing import NoReturn

from sqlglot import Token, TokenType

from ..plan.typed import Place
from . import statements
from .match_clauses import MatchClauses


class Names(MatchClauses):
    """The part of the statement parser for words, names, paths and options."""

    def refuse(self, problem: str, remedy: str, token: Token | None = None) -> NoReturn:
        """Raise an error about the next token."""
        raise NotImplementedError

    def _need(self, *words: str) -> None:
        if not self._words(*words):
            token = self._curr.text if self._curr else "the end"
            self.refuse(f"{' '.join(words)} is wanted, found {token!r}", "see the grammar in docs/sql.md")

    def _name(self) -> str:
        kinds = (TokenType.STRING, TokenType.NUMBER, TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA)
        if not self._curr or self._curr.token_type in kinds:
            token = self._curr.text if self._curr else "the end"
            self.refuse(f"a name is wanted, found {token!r}", "write a name, in `back quotes` where it is a keyword")
        self._advance()
        return str(self._prev.text)

    def _path(self) -> tuple[Place, statements.Path]:
        start = self._curr
        parts = [self._name()]
        while self._curr.token_type is TokenType.DOT:
            self._advance()
            parts.append(self._name())
        return Place(start.start, self._prev.end + 1), tuple(parts)

    def _names(self) -> tuple[str, ...]:
        self._need("(")
        names = [self._name()]
        while self._words(","):
            names.append(self._name())
        self._need(")")
        return tuple(names)

    def _string(self) -> str:
        if self._curr.token_type is not TokenType.STRING:
            self.refuse("a text in quotes is wanted", "write 'text'")
        self._advance()
        return str(self._prev.text)

    def _options(self) -> dict[str, str]:
        options: dict[str, str] = {}
        self._need("(")
        while not self._words(")"):
            key = self._string()
            self._need("=")
            options[key] = self._string()
            if not self._words(","):
                self._need(")")
                break
        return options

    def _comment(self) -> str | None:
        return self._string() if self._words("COMMENT") else None

    def _strings(self) -> tuple[str, ...]:
        self._need("(")
        strings = [self._string()]
        while self._words(","):
            strings.append(self._string())
        self._need(")")
        return tuple(strings)
