"""Strings as bytes and numbers, hashes, addresses of the web and of networks."""

from __future__ import annotations

import base64
import hashlib
import urllib.parse
from collections.abc import Callable
from typing import Any

import numpy
import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions.declaring import (
    BIGINT,
    BYTES,
    INT,
    INTEGER,
    STRING,
    TEXT,
    TEXT_OR_BYTES,
    Columns,
    Family,
    Kind,
    by_columns,
    by_values,
    takes,
)
from rayflink.table.functions.regexes import each_distinct, strings_of
from rayflink.table.functions.strings import strings
from rayflink.table.plan.typed import Arguments, RowError
from rayflink.table.types import DataTypes

hashes = Family("Hashes")


def _binary(values: pyarrow.Array) -> Any:
    return pc.cast(values, pyarrow.binary())


def _hashed(name: str) -> Any:
    """Neither Arrow nor polars has these hashes: each different text is hashed once."""
    return by_columns(
        lambda arguments, columns: each_distinct(
            _binary(columns[0]), lambda value: _hash(name, value), pyarrow.string()
        )
    )


def _hash(name: str, value: Any) -> str | None:
    return None if value is None else hashlib.new(name, value, usedforsecurity=False).hexdigest()


for _name, _bits in (("MD5", 128), ("SHA1", 160), ("SHA224", 224), ("SHA256", 256), ("SHA384", 384), ("SHA512", 512)):
    hashes.add(f"{_name}(text)", f"The {_name} hash of the text, {_bits // 4} hexadecimal digits.",
               takes(TEXT_OR_BYTES, gives=DataTypes.CHAR(_bits // 4)), _hashed(_name.lower()))  # fmt: skip


@hashes("SHA2(text, bits)", "The SHA-2 hash of 224, 256, 384 or 512 bits, in hexadecimal digits.",
        takes(TEXT_OR_BYTES, INTEGER, gives=DataTypes.VARCHAR(128)), raises=True)  # fmt: skip
@by_values(1)
def _sha2(arguments: Arguments, columns: Columns, bits: int) -> Any:
    if bits not in (224, 256, 384, 512):
        raise RowError(f"there is no SHA-2 hash of {bits} bits", "give 224, 256, 384 or 512")
    return each_distinct(_binary(columns[0]), lambda value: _hash(f"sha{bits}", value), pyarrow.string())


# Bytes and numbers of characters.


@strings("ASCII(text)", "The first byte of the text as a number; 0 if the text is empty.", takes(TEXT, gives=INT))
@by_columns
def _ascii(arguments: Arguments, columns: Columns) -> Any:
    values = _binary(strings_of(columns[0]))
    padded = pc.binary_join_element_wise(pc.binary_slice(values, 0, 1), b"\0", b"")
    first = pc.fill_null(pc.binary_slice(padded, 0, 1), b"\0")
    first = pyarrow.concat_arrays([first])
    data = numpy.frombuffer(first.buffers()[2] or b"", numpy.int8)[: len(first)].astype(numpy.int32)
    return pc.if_else(pc.is_valid(values), pyarrow.array(data), pyarrow.scalar(None, pyarrow.int32()))


_CHARACTERS = [chr(code) for code in range(256)]


@strings("CHR(number)", "The character with this number modulo 256; an empty text if the number is negative.",
       takes(INTEGER, gives=STRING, null=True))  # fmt: skip
@by_columns
def _character(arguments: Arguments, columns: Columns) -> Any:
    numbers = pc.cast(columns[0], pyarrow.int64())
    characters = pyarrow.array(_CHARACTERS).take(pc.bit_wise_and(numbers, 255))
    return pc.if_else(pc.less(numbers, 0), "", characters)


_CHARSETS = {"US-ASCII": "ascii", "ISO-8859-1": "latin-1", "UTF-8": "utf-8", "UTF-16BE": "utf-16-be"}
_CHARSETS |= {"UTF-16LE": "utf-16-le", "UTF-16": "utf-16"}


def _charset(name: str) -> str:
    charset = _CHARSETS.get(name.upper())
    if charset is None:
        raise RowError(f"there is no character set {name!r}", f"give one of {', '.join(_CHARSETS)}")
    return charset


@strings("ENCODE(text, charset)", "The bytes of the text in a character set, such as 'UTF-8' or 'ISO-8859-1'.",
       takes(TEXT, TEXT, gives=BYTES), raises=True)  # fmt: skip
@by_values(1)
def _encoded(arguments: Arguments, columns: Columns, charset: str) -> Any:
    codec = _charset(charset)
    values = strings_of(columns[0])
    if codec == "utf-8":
        return _binary(values)

    def encoded(text: str | None) -> bytes | None:
        if text is None:
            return None
        return b"\xfe\xff" + text.encode("utf-16-be") if codec == "utf-16" else text.encode(codec, "replace")

    return each_distinct(values, encoded, pyarrow.binary())


@strings("DECODE(bytes, charset)", "The text that bytes encode in a character set, such as 'UTF-8' or 'ISO-8859-1'.",
       takes(Kind("bytes", TEXT_OR_BYTES.holds, BYTES), TEXT, gives=STRING), raises=True)  # fmt: skip
@by_values(1)
def _decoded(arguments: Arguments, columns: Columns, charset: str) -> Any:
    codec = _charset(charset)

    def decoded(value: Any) -> str | None:
        return None if value is None else str(value, codec, "replace")

    return each_distinct(_binary(columns[0]), decoded, pyarrow.string())


@strings("TO_BASE64(text)", "The text, or bytes, in base64.", takes(TEXT_OR_BYTES, gives=STRING))
@by_columns
def _to_base64(arguments: Arguments, columns: Columns) -> Any:
    import polars

    series: Any = polars.from_arrow(_binary(columns[0]))
    return series.bin.encode("base64").to_arrow().cast(pyarrow.string())


@strings("FROM_BASE64(text)", "The text decoded from base64.", takes(TEXT, gives=STRING), raises=True)
@by_columns
def _from_base64(arguments: Arguments, columns: Columns) -> Any:
    def decoded(text: str | None) -> str | None:
        try:
            return None if text is None else base64.b64decode(text, validate=True).decode("utf-8", "replace")
        except ValueError as error:
            raise RowError(f"{text!r} is not base64", "filter such strings out first") from error

    return each_distinct(strings_of(columns[0]), decoded, pyarrow.string())


# URLs.


def _each(compute: Callable[[str], Any]) -> Any:
    """Compute each distinct string once; a string without a result gives null."""

    def one(text: str | None) -> Any:
        try:
            return None if text is None else compute(text)
        except ValueError:
            return None

    return by_columns(lambda arguments, columns: each_distinct(strings_of(columns[0]), one, arguments.result))


def _url_decoded(text: str) -> str:
    if "%" in text and not all(_is_hex(escape[:2]) for escape in text.split("%")[1:]):
        raise ValueError(text)
    return urllib.parse.unquote_plus(text, errors="replace")


def _is_hex(digits: str) -> bool:
    return len(digits) == 2 and all(digit in "0123456789abcdefABCDEF" for digit in digits)


strings.add("URL_ENCODE(text)", "The text encoded for a URL.", takes(TEXT, gives=STRING, null=True),
          _each(lambda text: urllib.parse.quote_plus(text, safe="*").replace("~", "%7E")))  # fmt: skip
strings.add("URL_DECODE(text)", "The text decoded from its form in a URL; null if it is malformed.",
          takes(TEXT, gives=STRING, null=True), _each(_url_decoded))  # fmt: skip

_URL = (
    r"^(?P<protocol>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<authority>[^/?#]*))?(?P<path>[^?#]*)"
    r"(?P<mark>\?)?(?P<query>[^#]*)(?P<hash>#)?(?P<ref>.*)$"
)


@strings("PARSE_URL(url, part[, key])",
       "A part of a URL: HOST, PATH, QUERY, REF, PROTOCOL, AUTHORITY, FILE, USERINFO; or, with QUERY and a "
       "key, the value of the key.",
       takes(TEXT, TEXT, TEXT, gives=STRING, least=2, null=True))  # fmt: skip
@by_values(1, 2)
def _url_part(arguments: Arguments, columns: Columns, part_name: str, key: str | None = None) -> Any:
    values = strings_of(columns[0])
    match = pc.extract_regex(values, _URL)

    def group(name: str) -> Any:
        return pc.struct_field(match, name)

    none = pyarrow.scalar(None, pyarrow.string())
    query = pc.if_else(pc.equal(group("mark"), "?"), group("query"), none)
    if key is not None:
        if part_name != "QUERY":
            return pyarrow.nulls(len(values), pyarrow.string())
        pattern = rf"(?:^|&){_quoted(key)}=(?P<value>[^&]*)"
        return pc.struct_field(pc.extract_regex(query, pattern), "value")
    authority = group("authority")
    user = pc.struct_field(pc.extract_regex(authority, r"^(?P<user>.*)@"), "user")
    parts = {
        "HOST": lambda: pc.replace_substring_regex(pc.replace_substring_regex(authority, r"^.*@", ""), r":[0-9]*$", ""),
        "PATH": lambda: group("path"),
        "QUERY": lambda: query,
        "REF": lambda: pc.if_else(pc.equal(group("hash"), "#"), group("ref"), none),
        "PROTOCOL": lambda: group("protocol"),
        "AUTHORITY": lambda: authority,
        "FILE": lambda: pc.coalesce(pc.binary_join_element_wise(group("path"), query, "?"), group("path")),
        "USERINFO": lambda: user,
    }
    return parts[part_name]() if part_name in parts else pyarrow.nulls(len(values), pyarrow.string())


def _quoted(text: str) -> str:
    import re

    return re.escape(text)


# Addresses of networks.


@strings("INET_ATON(text)", "The number of an address such as 192.168.0.1; null if the text is no address.",
       takes(TEXT, gives=BIGINT, null=True))  # fmt: skip
@by_columns
def _address_number(arguments: Arguments, columns: Columns) -> Any:
    values = strings_of(columns[0])
    good = pc.match_substring_regex(values, r"^[0-9]{1,10}(\.[0-9]{1,10}){0,3}$")
    pieces = pc.split_pattern(pc.if_else(pc.fill_null(good, False), values, "0"), ".")
    numbers = pc.cast(pieces.flatten(), pyarrow.int64()).to_numpy()
    ends, counts = pieces.offsets.to_numpy()[1:] - pieces.offsets.to_numpy()[0], numpy.diff(pieces.offsets.to_numpy())
    last = numbers[ends - 1]
    number, valid = last.copy(), last < numpy.array([0, 2**32, 2**24, 2**16, 2**8])[counts]
    for position in range(3):
        there = counts > position + 1
        byte = numbers[numpy.where(there, ends - counts + position, 0)]
        valid &= ~there | (byte < 256)
        number += numpy.where(there, byte << (24 - 8 * position), 0)
    return pc.if_else(
        pc.and_(pc.fill_null(good, False), pyarrow.array(valid)),
        pyarrow.array(number),
        pyarrow.scalar(None, pyarrow.int64()),
    )


@strings("INET_NTOA(number)", "The address with this number, such as 192.168.0.1; null if there is none.",
       takes(INTEGER, gives=STRING, null=True))  # fmt: skip
@by_columns
def _address_text(arguments: Arguments, columns: Columns) -> Any:
    numbers = pc.cast(columns[0], pyarrow.int64())
    bytes_ = pyarrow.array([str(byte) for byte in range(256)])
    parts = [bytes_.take(pc.bit_wise_and(pc.shift_right(numbers, shift), 255)) for shift in (24, 16, 8, 0)]
    inside = pc.and_(pc.greater_equal(numbers, 0), pc.less_equal(numbers, 2**32 - 1))
    return pc.if_else(inside, pc.binary_join_element_wise(*parts, "."), pyarrow.scalar(None, pyarrow.string()))
