"""Functions of strings of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ..parsing.dialect import Typed
from ..types import DataType, DataTypes
from .expression_text import Function, Operand, T, Written, to_expression, tree_of
from .units import JsonExistsOnError, JsonQueryOnEmptyOrError, JsonQueryWrapper, JsonType, JsonValueOnEmptyOrError

if TYPE_CHECKING:
    from ..expression import Expression

_WRAPPERS = {
    JsonQueryWrapper.WITHOUT_ARRAY: "WITHOUT WRAPPER",
    JsonQueryWrapper.CONDITIONAL_ARRAY: "WITH CONDITIONAL WRAPPER",
    JsonQueryWrapper.UNCONDITIONAL_ARRAY: "WITH UNCONDITIONAL WRAPPER",
}


_STRING = DataTypes.STRING()


class Json(Written[T]):
    """Methods of expressions of JSON strings."""

    json_quote = Function("JSON_QUOTE", "As a text in JSON.")
    json_unquote = Function("JSON_UNQUOTE", "The text that a text in JSON stands for.")

    def is_json(self, json_type: JsonType | None = None) -> Expression[bool]:
        """Test whether it is JSON, or JSON of a kind."""
        kind = exp.JSON() if json_type is None else exp.JSON(this=json_type.name)
        return to_expression(exp.Is(this=self._tree, expression=kind))

    def json_exists(self, path: str, on_error: JsonExistsOnError | None = None) -> Expression[bool]:
        """Test whether something is at a path."""
        return self._call("JSON_EXISTS", path, *([] if on_error is None else _words(f"{on_error.name} ON ERROR")))

    def json_value(
        self,
        path: str,
        returning_type: DataType = _STRING,
        on_empty: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_empty: Operand = None,
        on_error: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_error: Operand = None,
    ) -> Expression[Any]:
        """Return the text, number or truth value at a path.

        Args:
            path: such as "$.name" or "$.list[0]".
            returning_type: of the result.
            on_empty, on_error: what it is where there is none, or where the text is no JSON.
            default_on_empty, default_on_error: the value of DEFAULT.
        """
        words: list[Any] = [Typed(this=returning_type)]
        for what, default, when in ((on_empty, default_on_empty, "EMPTY"), (on_error, default_on_error, "ERROR")):
            words.append(exp.Var(this=what.name))
            if what is JsonValueOnEmptyOrError.DEFAULT:
                words.append(tree_of(default))
            words += _words(f"ON {when}")
        return self._call("JSON_VALUE", path, *words)

    def json_query(
        self,
        path: str,
        wrapping_behavior: JsonQueryWrapper = JsonQueryWrapper.WITHOUT_ARRAY,
        on_empty: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
        on_error: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
    ) -> Expression[str]:
        """Return the object or array at a path, as JSON."""
        words = _words(_WRAPPERS[wrapping_behavior])
        for what, when in ((on_empty, "EMPTY"), (on_error, "ERROR")):
            words += _words(f"{what.name.replace('_', ' ')} ON {when}")
        return self._call("JSON_QUERY", path, *words)


def _words(text: str) -> list[Any]:
    return [exp.Var(this=word) for word in text.split()]
