"""Numbers from strings, by the ASCII forms alone: Python also takes `1_0` and digits of other scripts."""

from __future__ import annotations

import re
from decimal import Context, Decimal

_WHOLE = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"(?ai)[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf(?:inity)?)")
_WIDE = Context(prec=100_000)
_MOST_DIGITS = 4300
"""Python's own limit for the digits of whole numbers in a string; a larger power of ten would fill the memory."""


def whole_number(text: str) -> int:
    """Return the whole number a string stands for.

    >>> whole_number(" -12 ")
    -12

    Raises:
        ValueError: it stands for none.
    """
    return int(_checked(text, _WHOLE, "whole number"))


def real_number(text: str) -> float:
    """Return the number a string stands for; `NaN` and `Infinity` are numbers.

    >>> real_number("1.5e3")
    1500.0

    Raises:
        ValueError: it stands for none.
    """
    return float(_checked(text, _REAL, "number"))


def decimal_number(text: str) -> Decimal:
    """Return the decimal a string stands for, with all its digits.

    >>> decimal_number("1.50")
    Decimal('1.50')

    Raises:
        ValueError: it stands for none.
    """
    return Decimal(_checked(text, _REAL, "number"))


def whole_or_real(number: Decimal) -> int | float:
    """Return a whole number where it is one, else a float.

    Raises:
        ValueError: a whole number has more than 4,300 digits.
    """
    if number and number.adjusted() >= _MOST_DIGITS:
        raise ValueError(f"{number:.3e} is too large, at most {_MOST_DIGITS} digits are wanted")
    return int(number) if number == number.to_integral_value() else float(number)


def stripped_decimal(number: Decimal) -> str:
    """Return a decimal without the zeros at its end, as Flink's JSON and CSV formats of tables write it.

    >>> [stripped_decimal(Decimal(text)) for text in ("1.10", "227.000", "100", "0.00")]
    ['1.1', '227', '1E+2', '0']
    """
    return str(number.normalize(_WIDE)) if number else "0"


def _checked(text: str, form: re.Pattern[str], called: str) -> str:
    text = text.strip()
    if not form.fullmatch(text):
        raise ValueError(f"{text[:80]!r} is no {called}; ASCII digits are wanted, without separators")
    return text
