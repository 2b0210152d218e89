"""The names of types in SQL."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import TokenType
from sqlglot.parser import Parser

from rayflink.common.errors import InvalidTypesError

from ..types import MOST_LENGTH, DataType, DataTypes, RowField

_PLAIN: dict[str, Callable[[], DataType]] = {
    "BOOLEAN": DataTypes.BOOLEAN,
    "TINYINT": DataTypes.TINYINT,
    "SMALLINT": DataTypes.SMALLINT,
    "INT": DataTypes.INT,
    "INTEGER": DataTypes.INT,
    "BIGINT": DataTypes.BIGINT,
    "FLOAT": DataTypes.FLOAT,
    "DOUBLE": DataTypes.DOUBLE,
    "DOUBLE PRECISION": DataTypes.DOUBLE,
    "STRING": DataTypes.STRING,
    "BYTES": DataTypes.BYTES,
    "DATE": DataTypes.DATE,
    "NULL": DataTypes.NULL,
}
_SIZED: dict[str, Callable[[int], DataType]] = {
    "CHAR": DataTypes.CHAR,
    "CHARACTER": DataTypes.CHAR,
    "VARCHAR": DataTypes.VARCHAR,
    "BINARY": DataTypes.BINARY,
    "VARBINARY": DataTypes.VARBINARY,
}
_VARYING = ("CHAR VARYING", "CHARACTER VARYING")
_DECIMAL = ("DECIMAL", "DEC", "NUMERIC")
_YEARS = ("YEAR", "MONTH")


class TypeNames(Parser):
    """The part of a parser that reads a type: what a token is, is taken from the text alone."""

    def parsed_type(self) -> DataType:
        """Return the type that stands next."""
        token = self._curr
        try:
            data_type = self._without_null()
            while self._words("ARRAY") or self._words("MULTISET"):
                collection = DataTypes.ARRAY if self._prev.text.upper() == "ARRAY" else DataTypes.MULTISET
                data_type = collection(data_type)
        except InvalidTypesError as error:
            self.raise_error(str(error), token)
        if self._words("NOT", "NULL"):
            return data_type.not_null()
        self._words("NULL")
        return data_type

    def _words(self, *words: str) -> bool:
        """Return whether these words come next, outside of quotes; then they are passed over."""
        index, left = self._index, list(words)
        while left:
            quoted = self._curr.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
            text = [] if quoted or not self._curr else self._curr.text.upper().split()  # a token may be two words
            if not text or left[: len(text)] != text:
                self._retreat(index)
                return False
            del left[: len(text)]
            self._advance()
        return True

    def _without_null(self) -> DataType:
        name = " ".join(self._curr.text.upper().split())
        if name in _PLAIN:
            self._advance()
            if name == "DOUBLE":
                self._words("PRECISION")
            return _PLAIN[name]()
        if name in (*_SIZED, *_VARYING, *_DECIMAL, "TIMESTAMP_LTZ"):
            return self._sized(name)
        if name in ("TIME", "TIMESTAMP"):
            return self._timed(name)
        if name == "INTERVAL":
            return self._interval()
        if name in ("ARRAY", "MAP", "MULTISET", "ROW"):
            return self._nested(name)
        examples = "INT, STRING, DECIMAL(10, 2), TIMESTAMP(3), ARRAY<INT>, ROW<a INT>"
        self.raise_error(f"a type is wanted, found {self._curr.text!r}; write one such as {examples}")
        raise AssertionError

    def _sized(self, name: str) -> DataType:
        self._advance()
        if name in _VARYING or (name in ("CHAR", "CHARACTER") and self._words("VARYING")):
            name = "VARCHAR"
        sizes = self._sizes()
        if name in _DECIMAL:
            return DataTypes.DECIMAL(sizes[0] if sizes else 10, sizes[1] if len(sizes) > 1 else 0)
        if name == "TIMESTAMP_LTZ":
            return DataTypes.TIMESTAMP_LTZ(sizes[0] if sizes else 6)
        return _SIZED[name](sizes[0] if sizes else MOST_LENGTH if name.startswith("VAR") else 1)

    def _timed(self, name: str) -> DataType:
        self._advance()
        sizes = self._sizes()
        if name == "TIME":
            self._words("WITHOUT", "TIME", "ZONE")
            return DataTypes.TIME(sizes[0] if sizes else 0)
        if self._words("WITH", "LOCAL", "TIME", "ZONE"):
            return DataTypes.TIMESTAMP_LTZ(sizes[0] if sizes else 6)
        self._words("WITHOUT", "TIME", "ZONE")
        return DataTypes.TIMESTAMP(sizes[0] if sizes else 6)

    def _interval(self) -> DataType:
        self._advance()
        first = self._curr.text.upper()
        self._advance()
        self._sizes()
        digits: list[int] = []
        if self._words("TO"):
            self._advance()
            digits = self._sizes()
        if first in _YEARS:
            return DataTypes.INTERVAL_YEAR_MONTH()
        return DataTypes.INTERVAL_DAY_TIME(digits[0] if digits else 3)

    def _sizes(self) -> list[int]:
        if self._curr.token_type is not TokenType.L_PAREN or self._next.token_type is not TokenType.NUMBER:
            return []
        self._advance()
        sizes = [int(self._curr.text)]
        self._advance()
        while self._match(TokenType.COMMA):
            sizes.append(int(self._curr.text))
            self._advance()
        self._match_r_paren()
        return sizes

    def _nested(self, name: str) -> DataType:
        self._advance()
        closing = {TokenType.LT: TokenType.GT, TokenType.L_PAREN: TokenType.R_PAREN}.get(self._curr.token_type)
        if closing is None:
            self.raise_error(f"< is wanted behind {name}")
        self._advance()
        if name == "ROW":
            fields: list[RowField] = []
            while self._curr.token_type is not closing:
                fields.append(self._row_field())
                if self._curr.token_type is TokenType.COMMA:
                    self._advance()
            data_type: DataType = DataTypes.ROW(fields)
        elif name == "MAP":
            key = self.parsed_type()
            if self._curr.token_type is not TokenType.COMMA:
                self.raise_error(", and the type of the values are wanted in a MAP")
            self._advance()
            data_type = DataTypes.MAP(key, self.parsed_type())
        else:
            collection = DataTypes.ARRAY if name == "ARRAY" else DataTypes.MULTISET
            data_type = collection(self.parsed_type())
        if self._curr.token_type is not closing:
            self.raise_error(f"the end of {name}<...> is wanted")
        self._advance()
        return data_type

    def _row_field(self) -> RowField:
        name = self._curr.text
        self._advance()
        kind = self.parsed_type()
        about = None
        if self._curr.token_type is TokenType.STRING:
            about = self._curr.text
            self._advance()
        return DataTypes.FIELD(name, kind, about)
