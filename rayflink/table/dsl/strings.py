"""Functions of strings and bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from .expression_text import Function, Operand, Property, T, Written, call_tree, to_expression, tree_of

if TYPE_CHECKING:
    from ..expression import Expression


class Strings(Written[T]):
    """Methods of string expressions. Positions in a string count from 1."""

    char_length = Property("CHAR_LENGTH", "The number of characters.")
    upper_case = Property("UPPER", "In capitals.")
    lower_case = Property("LOWER", "In small letters.")
    init_cap = Property("INITCAP", "Each word with a capital.")
    from_base64 = Property("FROM_BASE64", "The text of base 64.")
    to_base64 = Property("TO_BASE64", "As base 64.")
    ascii = Property("ASCII", "The number of the first character.")
    reverse = Property("REVERSE", "Backwards.")
    inet_aton = Function("INET_ATON", "The number of an IPv4 address.")
    url_decode = Function("URL_DECODE", "The text of application/x-www-form-urlencoded.")
    url_encode = Function("URL_ENCODE", "As application/x-www-form-urlencoded.")
    md5 = Property("MD5", "The MD5 hash in hexadecimal digits.")
    sha1 = Property("SHA1", "The SHA-1 hash in hexadecimal digits.")
    sha224 = Property("SHA224", "The SHA-224 hash in hexadecimal digits.")
    sha256 = Property("SHA256", "The SHA-256 hash in hexadecimal digits.")
    sha384 = Property("SHA384", "The SHA-384 hash in hexadecimal digits.")
    sha512 = Property("SHA512", "The SHA-512 hash in hexadecimal digits.")

    def sha2(self, hash_length: Operand) -> Expression[str]:
        """Return the SHA-2 hash of 224, 256, 384 or 512 bits."""
        return self._call("SHA2", hash_length)

    def concat(self, other: Operand) -> Expression[str]:
        """Append another string."""
        return self._call("CONCAT", other)

    def starts_with(self, start_expr: Operand) -> Expression[bool]:
        """Test whether it begins with a text."""
        return self._call("STARTSWITH", start_expr)

    def ends_with(self, end_expr: Operand) -> Expression[bool]:
        """Test whether it ends with a text."""
        return self._call("ENDSWITH", end_expr)

    def substring(self, begin_index: Operand, length: Operand = None) -> Expression[str]:
        """Return the characters from a place on, or this many of them."""
        return self._call("SUBSTRING", begin_index, length)

    def substr(self, begin_index: Operand, length: Operand = None) -> Expression[str]:
        """Return the same as `substring`."""
        return self._call("SUBSTR", begin_index, length)

    def trim_leading(self, character: Operand = None) -> Expression[str]:
        """Remove blanks, or another character, at the start."""
        return self._trimmed("LEADING", character)

    def trim_trailing(self, character: Operand = None) -> Expression[str]:
        """Remove blanks, or another character, at the end."""
        return self._trimmed("TRAILING", character)

    def trim(self, character: Operand = None) -> Expression[str]:
        """Remove blanks, or another character, at both ends."""
        return self._trimmed("BOTH", character)

    def _trimmed(self, side: str, character: Operand) -> Expression[str]:
        return to_expression(call_tree("TRIM", exp.Var(this=side), self, character))

    def ltrim(self, trim_str: Operand = None) -> Expression[str]:
        """Remove blanks, or some characters, at the start."""
        return self._call("LTRIM", trim_str)

    def rtrim(self, trim_str: Operand = None) -> Expression[str]:
        """Remove blanks, or some characters, at the end."""
        return self._call("RTRIM", trim_str)

    def btrim(self, trim_str: Operand = None) -> Expression[str]:
        """Remove blanks, or some characters, at both ends."""
        return self._call("BTRIM", trim_str)

    def replace(self, search: Operand = None, replacement: Operand = None) -> Expression[str]:
        """Replace each occurrence of a string by another."""
        return self._call("REPLACE", search, replacement)

    def translate(self, from_str: Operand, to_str: Operand) -> Expression[str]:
        """Replace each character of `from_str` by that of `to_str`."""
        return self._call("TRANSLATE", from_str, to_str)

    def like(self, pattern: Operand = None, escape: Operand = None) -> Expression[bool]:
        """Test whether it is as a pattern, in which % stands for any characters and _ for one."""
        condition: Any = exp.Like(this=self._tree, expression=tree_of(pattern))
        return to_expression(condition if escape is None else exp.Escape(this=condition, expression=tree_of(escape)))

    def similar(self, pattern: Operand = None) -> Expression[bool]:
        """Test whether it is as a regular expression of SQL."""
        return to_expression(exp.SimilarTo(this=self._tree, expression=tree_of(pattern)))

    def position(self, haystack: Operand = None) -> Expression[int]:
        """Find the first position of this string in another, 0 where it does not occur."""
        return self._call("POSITION", haystack)

    def lpad(self, length: Operand, pad: Operand) -> Expression[str]:
        """Filled at its begin, or cut, to a length."""
        return self._call("LPAD", length, pad)

    def rpad(self, length: Operand, pad: Operand) -> Expression[str]:
        """Filled at its end, or cut, to a length."""
        return self._call("RPAD", length, pad)

    def overlay(self, new_string: Operand, starting: Operand, length: Operand = None) -> Expression[str]:
        """Replace some characters by another string."""
        return self._call("OVERLAY", new_string, starting, length)

    def regexp(self, regex: Operand) -> Expression[bool]:
        """Test whether a regular expression matches a part of it."""
        return self._call("REGEXP", regex)

    def regexp_count(self, regex: Operand) -> Expression[int]:
        """Count the matches of a regular expression."""
        return self._call("REGEXP_COUNT", regex)

    def regexp_replace(self, regex: Operand, replacement: Operand) -> Expression[str]:
        """Replace the matches of a regular expression."""
        return self._call("REGEXP_REPLACE", regex, replacement)

    def regexp_extract(self, regex: Operand, extract_index: Operand = None) -> Expression[str]:
        """Extract the first match of a regular expression, or of one of its groups."""
        return self._call("REGEXP_EXTRACT", regex, extract_index)

    def regexp_extract_all(self, regex: Operand, extract_index: Operand = None) -> Expression[Any]:
        """Return all that a regular expression, or a group of it, matches."""
        return self._call("REGEXP_EXTRACT_ALL", regex, extract_index)

    def regexp_instr(self, regex: Operand) -> Expression[int]:
        """Find the position of the first match of a regular expression."""
        return self._call("REGEXP_INSTR", regex)

    def regexp_substr(self, regex: Operand) -> Expression[str]:
        """Extract the first match of a regular expression."""
        return self._call("REGEXP_SUBSTR", regex)

    def decode(self, charset: Operand) -> Expression[str]:
        """Return the text of bytes in a character set."""
        return self._call("DECODE", charset)

    def encode(self, charset: Operand) -> Expression[bytes]:
        """Return the bytes of the text in a character set."""
        return self._call("ENCODE", charset)

    def left(self, length: Operand) -> Expression[str]:
        """Return the first characters."""
        return self._call("LEFT", length)

    def right(self, length: Operand) -> Expression[str]:
        """Return the last characters."""
        return self._call("RIGHT", length)

    def instr(self, s: Operand) -> Expression[int]:
        """Find the first position of another string in this one, 0 where it does not occur."""
        return self._call("INSTR", s)

    def locate(self, s: Operand, pos: Operand = None) -> Expression[int]:
        """Find the first position of this string in another, at or after a position; 0 where it does not occur."""
        return self._call("LOCATE", s, pos)

    def parse_url(self, part_to_extract: Operand, key: Operand = None) -> Expression[str]:
        """Return a part of a URL, such as HOST or QUERY, of which a key."""
        return self._call("PARSE_URL", part_to_extract, key)

    def printf(self, *obj: Operand) -> Expression[str]:
        """Return the values put into this pattern."""
        return self._call("PRINTF", *obj)

    def repeat(self, n: Operand) -> Expression[str]:
        """Repeat the string n times."""
        return self._call("REPEAT", n)

    def split_index(self, separator: Operand, index: Operand) -> Expression[str]:
        """Return the part with a number, from 0, of those between separators."""
        return self._call("SPLIT_INDEX", separator, index)

    def split(self, delimiter: Operand) -> Expression[Any]:
        """Return the parts between separators."""
        return self._call("SPLIT", delimiter)

    def str_to_map(self, list_delimiter: Operand = None, key_value_delimiter: Operand = None) -> Expression[Any]:
        """Return the map of a text such as "a=1,b=2"."""
        if list_delimiter is None or key_value_delimiter is None:
            return self._call("STR_TO_MAP")
        return self._call("STR_TO_MAP", list_delimiter, key_value_delimiter)

    def elt(self, expr: Operand, *exprs: Operand) -> Expression[Any]:
        """Return the one of the values with this number, from 1."""
        return self._call("ELT", expr, *exprs)
