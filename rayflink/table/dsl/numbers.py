"""Functions of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .expression_text import Function, Operand, Property, T, Written, call_tree, to_expression

if TYPE_CHECKING:
    from ..expression import Expression


class Numbers(Written[T]):
    """Methods of numeric expressions."""

    exp = Property("EXP", "e to this power.")
    log10 = Property("LOG10", "The logarithm to the base 10.")
    log2 = Property("LOG2", "The logarithm to the base 2.")
    ln = Property("LN", "The natural logarithm.")
    sin = Property("SIN", "The sine.")
    cos = Property("COS", "The cosine.")
    tan = Property("TAN", "The tangent.")
    cot = Property("COT", "The cotangent.")
    sinh = Property("SINH", "The hyperbolic sine.")
    cosh = Property("COSH", "The hyperbolic cosine.")
    tanh = Property("TANH", "The hyperbolic tangent.")
    asin = Property("ASIN", "The arc sine.")
    acos = Property("ACOS", "The arc cosine.")
    atan = Property("ATAN", "The arc tangent.")
    degrees = Property("DEGREES", "Radians as degrees.")
    radians = Property("RADIANS", "Degrees as radians.")
    sqrt = Property("SQRT", "The square root.")
    abs = Property("ABS", "The absolute value.")
    sign = Property("SIGN", "1, 0 or -1.")
    bin = Property("BIN", "A whole number in binary digits.")
    hex = Property("HEX", "A whole number or text in hexadecimal digits.")
    unhex = Property("UNHEX", "The bytes of hexadecimal digits.")
    chr = Property("CHR", "The character with this number.")
    inet_ntoa = Function("INET_NTOA", "The IPv4 address of a number.")

    def log(self, base: Operand = None) -> Expression[float]:
        """Return the logarithm to a base, the natural one if none is given."""

        return self._call("LOG") if base is None else to_expression(call_tree("LOG", base, self))

    def round(self, places: Operand) -> Expression[T]:
        """Rounded half up to this many digits behind the point."""
        return self._call("ROUND", places)

    def truncate(self, n: Operand = 0) -> Expression[T]:
        """Remove the fractional digits beyond a number of them."""
        return self._call("TRUNCATE", n)
