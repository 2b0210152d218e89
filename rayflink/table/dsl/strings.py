"""Functions of strings and bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from .expression_text import Function, Property, T, Written, call_tree, made, tree_of

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

    def sha2(self, hash_length: Any) -> Expression[str]:
        """Return the SHA-2 hash of 224, 256, 384 or 512 bits."""
        return self._call("SHA2", hash_length)

    def concat(self, other: Any) -> Expression[str]:
        """Append another string."""
        return self._call("CONCAT", other)

    def starts_with(self, start_expr: Any) -> Expression[bool]:
        """Test whether it begins with a text."""
        return self._call("STARTSWITH", start_expr)

    def ends_with(self, end_expr: Any) -> Expression[bool]:
        """Test whether it ends with a text."""
        return self._call("ENDSWITH", end_expr)

    def substring(self, begin_index: Any, length: Any = None) -> Expression[str]:
        """Return the characters from a place on, or this many of them."""
        return self._call("SUBSTRING", begin_index, length)

    def substr(self, begin_index: Any, length: Any = None) -> Expression[str]:
        """Return the same as `substring`."""
        return self._call("SUBSTR", begin_index, length)

    def trim_leading(self, character: Any = None) -> Expression[str]:
        """Remove blanks, or another character, at the start."""
        return self._trimmed("LEADING", character)

    def trim_trailing(self, character: Any = None) -> Expression[str]:
        """Remove blanks, or another character, at the end."""
        return self._trimmed("TRAILING", character)

    def trim(self, character: Any = None) -> Expression[str]:
        """Remove blanks, or another character, at both ends."""
        return self._trimmed("BOTH", character)

    def _trimmed(self, side: str, character: Any) -> Expression[str]:
        return made(call_tree("TRIM", exp.Var(this=side), self, character))

    def ltrim(self, trim_str: Any = None) -> Expression[str]:
        """Remove blanks, or some characters, at the start."""
        return self._call("LTRIM", trim_str)

    def rtrim(self, trim_str: Any = None) -> Expression[str]:
        """Remove blanks, or some characters, at the end."""
        return self._call("RTRIM", trim_str)

    def btrim(self, trim_str: Any = None) -> Expression[str]:
        """Remove blanks, or some characters, at both ends."""
        return self._call("BTRIM", trim_str)

    def replace(self, search: Any = None, replacement: Any = None) -> Expression[str]:
        """Replace each occurrence of a string by another."""
        return self._call("REPLACE", search, replacement)

    def translate(self, from_str: Any, to_str: Any) -> Expression[str]:
        """Replace each character of `from_str` by that of `to_str`."""
        return self._call("TRANSLATE", from_str, to_str)

    def like(self, pattern: Any = None, escape: Any = None) -> Expression[bool]:
        """Test whether it is as a pattern, in which % stands for any characters and _ for one."""
        condition: Any = exp.Like(this=self._tree, expression=tree_of(pattern))
        return made(condition if escape is None else exp.Escape(this=condition, expression=tree_of(escape)))

    def similar(self, pattern: Any = None) -> Expression[bool]:
        """Test whether it is as a regular expression of SQL."""
        return made(exp.SimilarTo(this=self._tree, expression=tree_of(pattern)))

    def position(self, haystack: Any = None) -> Expression[int]:
        """Find the first position of this string in another, 0 where it does not occur."""
        return self._call("POSITION", haystack)

    def lpad(self, length: Any, pad: Any) -> Expression[str]:
        """Filled at its begin, or cut, to a length."""
        return self._call("LPAD", length, pad)

    def rpad(self, length: Any, pad: Any) -> Expression[str]:
        """Filled at its end, or cut, to a length."""
        return self._call("RPAD", length, pad)

    def overlay(self, new_string: Any, starting: Any, length: Any = None) -> Expression[str]:
        """Replace some characters by another string."""
        return self._call("OVERLAY", new_string, starting, length)

    def regexp(self, regex: Any) -> Expression[bool]:
        """Test whether a regular expression matches a part of it."""
        return self._call("REGEXP", regex)

    def regexp_count(self, regex: Any) -> Expression[int]:
        """Count the matches of a regular expression."""
        return self._call("REGEXP_COUNT", regex)

    def regexp_replace(self, regex: Any, replacement: Any) -> Expression[str]:
        """Replace the matches of a regular expression."""
        return self._call("REGEXP_REPLACE", regex, replacement)

    def regexp_extract(self, regex: Any, extract_index: Any = None) -> Expression[str]:
        """Extract the first match of a regular expression, or of one of its groups."""
        return self._call("REGEXP_EXTRACT", regex, extract_index)

    def regexp_extract_all(self, regex: Any, extract_index: Any = None) -> Expression[Any]:
        """Return all that a regular expression, or a group of it, matches."""
        return self._call("REGEXP_EXTRACT_ALL", regex, extract_index)

    def regexp_instr(self, regex: Any) -> Expression[int]:
        """Find the position of the first match of a regular expression."""
        return self._call("REGEXP_INSTR", regex)

    def regexp_substr(self, regex: Any) -> Expression[str]:
        """Extract the first match of a regular expression."""
        return self._call("REGEXP_SUBSTR", regex)

    def decode(self, charset: Any) -> Expression[str]:
        """Return the text of bytes in a character set."""
        return self._call("DECODE", charset)

    def encode(self, charset: Any) -> Expression[bytes]:
        """Return the bytes of the text in a character set."""
        return self._call("ENCODE", charset)

    def left(self, length: Any) -> Expression[str]:
        """Return the first characters."""
        return self._call("LEFT", length)

    def right(self, length: Any) -> Expression[str]:
        """Return the last characters."""
        return self._call("RIGHT", length)

    def instr(self, s: Any) -> Expression[int]:
        """Find the first position of another string in this one, 0 where it does not occur."""
        return self._call("INSTR", s)

    def locate(self, s: Any, pos: Any = None) -> Expression[int]:
        """Find the first position of this string in another, at or after a position; 0 where it does not occur."""
        return self._call("LOCATE", s, pos)

    def parse_url(self, part_to_extract: Any, key: Any = None) -> Expression[str]:
        """Return a part of a URL, such as HOST or QUERY, of which a key."""
        return self._call("PARSE_URL", part_to_extract, key)

    def printf(self, *obj: Any) -> Expression[str]:
        """Return the values put into this pattern."""
        return self._call("PRINTF", *obj)

    def repeat(self, n: Any) -> Expression[str]:
        """Repeat the string n times."""
        return self._call("REPEAT", n)

    def split_index(self, separator: Any, index: Any) -> Expression[str]:
        """Return the part with a number, from 0, of those between separators."""
        return self._call("SPLIT_INDEX", separator, index)

    def split(self, delimiter: Any) -> Expression[Any]:
        """Return the parts between separators."""
        return self._call("SPLIT", delimiter)

    def str_to_map(self, list_delimiter: Any = None, key_value_delimiter: Any = None) -> Expression[Any]:
        """Return the map of a text such as "a=1,b=2"."""
        if list_delimiter is None or key_value_delimiter is None:
            return self._call("STR_TO_MAP")
        return self._call("STR_TO_MAP", list_delimiter, key_value_delimiter)

    def elt(self, expr: Any, *exprs: Any) -> Expression[Any]:
        """Return the one of the values with this number, from 1."""
        return self._call("ELT", expr, *exprs)
