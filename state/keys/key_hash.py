"""The hash of a key: 32 bits, the same in every process and in every version, for ever.

Equal keys hash alike, by the rule of ``key_forms``. Every kind of key is a row of 64-bit lanes:

    start   h = kind * K3 (mod 2**64)
    absorb  h = (h ^ lane) * K1; h ^= h >> 32           for each lane
    digest  h = h * K2; h ^= h >> 32                    64 bits, becomes a lane of the tuple around it
    hash    the upper 32 bits of the digest

Numbers, dates and times are one lane (two's complement; floats their IEEE bits). Strings are their UTF-8 bytes: the
size times K4 is added to the start; up to 64 bytes they are little-endian lanes, the last padded with zeros, at
least one; longer ones are the one lane of BLAKE2b-64. Tuples and lists add their length times K4 to the start and
absorb the digests of their items. The kinds are the tags of ``key_encoding``.
Source: the multiplications and shifts follow the finalisers of SplitMix64 and MurmurHash3.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from uuid import UUID

from ..errors import InvalidKeyError
from .key_encoding import datetime_us, int_bytes, time_us
from .key_forms import ObjectForm, key_fields, number_form, unusual_form
from .list_key import ListKey

__all__ = ["key_digest", "key_hash"]

K1, K2, K3, K4 = 0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93, 0xC2B2_AE3D_27D4_EB4F, 0xFF51_AFD7_ED55_8CCD
MASK64 = (1 << 64) - 1
LONGEST_IN_LANES = 64
"""Most bytes of a string that are hashed lane by lane."""
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


def _start(kind: int) -> int:
    return kind * K3 & MASK64


(
    START_NONE,
    START_INT,
    START_FLOAT,
    START_BIGINT,
    START_DECIMAL,
    START_STR,
    START_BYTES,
    START_DATE,
    START_TIME,
    START_TIME_UTC,
    START_DATETIME,
    START_DATETIME_UTC,
    START_TIMEDELTA,
    START_UUID,
    START_TUPLE,
    START_ENUM,
    START_DATACLASS,
    START_LIST,
) = map(_start, range(1, 19))


def key_hash(key: object) -> int:
    """Hash of a key, in [0, 2**32).

    Raises: InvalidKeyError: the value, or a part of it, cannot be a key.

    >>> key_hash(1) == key_hash(True) == key_hash(1.0)
    True
    """
    return key_digest(key) >> 32


def key_digest(key: object) -> int:
    """Return the 64 bits of which ``key_hash`` is the upper half."""
    digest = _DIGESTS.get(type(key))
    if digest is not None:
        return digest(key)
    form = unusual_form(key)
    if type(form) is ObjectForm:
        return _object_digest(form, type(key))
    return key_digest(form)


def digest_of_lanes(h: int, lanes: Iterable[int]) -> int:
    """Absorb unsigned 64-bit lanes into a start and finish the digest."""
    for lane in lanes:
        h = (h ^ lane) * K1 & MASK64
        h ^= h >> 32
    h = h * K2 & MASK64
    return h ^ (h >> 32)


def digest_of_bytes(start: int, data: bytes) -> int:
    """Return the digest of a byte string; ``start`` depends on its kind."""
    size = len(data)
    h = (start + size * K4) & MASK64
    if size <= 8:
        return digest_of_lanes(h, (int.from_bytes(data, "little"),))
    if size <= LONGEST_IN_LANES:
        count = (size + 7) // 8
        return digest_of_lanes(h, struct.unpack(f"<{count}Q", data.ljust(8 * count, b"\0")))
    return digest_of_lanes(h, (long_lane(data),))


def long_lane(data: bytes) -> int:
    """Return the one lane of a byte string longer than ``LONGEST_IN_LANES``."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def digest_of_parts(start: int, digests: list[int]) -> int:
    """Return the digest of a row of parts, each already a digest."""
    return digest_of_lanes((start + len(digests) * K4) & MASK64, digests)


def _none(key: None) -> int:
    return DIGEST_NONE


def _number(key: int | float | Decimal) -> int:
    form = number_form(key)
    if type(form) is float:
        lane: int = struct.unpack("<Q", struct.pack("<d", form))[0]
        return digest_of_lanes(START_FLOAT, (lane,))
    if type(form) is Decimal:
        sign, digits, exponent = form.as_tuple()
        assert isinstance(exponent, int)
        coefficient = digest_of_bytes(START_BIGINT, int_bytes(int(Decimal((sign, digits, 0)))))
        return digest_of_lanes(START_DECIMAL, (-exponent, coefficient))
    assert isinstance(form, int)
    if -(1 << 63) <= form < 1 << 63:
        return digest_of_lanes(START_INT, (form & MASK64,))
    return digest_of_bytes(START_BIGINT, int_bytes(form))


def _str(key: str) -> int:
    return digest_of_bytes(START_STR, key.encode("utf-8", "surrogatepass"))


def _bytes(key: bytes) -> int:
    return digest_of_bytes(START_BYTES, key)


def _date(key: date) -> int:
    return digest_of_lanes(START_DATE, ((key.toordinal() - EPOCH_ORDINAL) & MASK64,))


def _time(key: time) -> int:
    offset = key.utcoffset()
    start = START_TIME if offset is None else START_TIME_UTC
    return digest_of_lanes(start, (time_us(key, offset) & MASK64,))


def _datetime(key: datetime) -> int:
    offset = key.utcoffset()
    start = START_DATETIME if offset is None else START_DATETIME_UTC
    return digest_of_lanes(start, (datetime_us(key, offset) & MASK64,))


def _timedelta(key: timedelta) -> int:
    us = (key.days * 86_400 + key.seconds) * 1_000_000 + key.microseconds
    return digest_of_lanes(START_TIMEDELTA, (us & MASK64,))


def _uuid(key: UUID) -> int:
    return digest_of_bytes(START_UUID, key.bytes)


def _tuple(key: Sequence[Any]) -> int:
    digests = []
    for position, part in enumerate(key):
        try:
            digests.append(key_digest(part))
        except InvalidKeyError as error:
            raise error.inside(f"[{position}]") from None
    return digest_of_parts(START_TUPLE if isinstance(key, tuple) else START_LIST, digests)


@lru_cache(maxsize=1024)
def _name_digest(name: str) -> int:
    return _str(name)


def _object_digest(form: ObjectForm, cls: type) -> int:
    digests = [_name_digest(form.class_name)]
    if form.schema is None:
        return digest_of_parts(START_ENUM, [*digests, key_digest(form.parts[0])])
    for name, part in zip(key_fields(cls)[1], form.parts, strict=True):
        try:
            digests.append(key_digest(part))
        except InvalidKeyError as error:
            raise error.inside(f".{name}") from None
    return digest_of_parts(START_DATACLASS, digests)


DIGEST_NONE = digest_of_lanes(START_NONE, (0,))

_DIGESTS: dict[type, Callable[[Any], int]] = {
    type(None): _none,
    bool: _number,
    int: _number,
    float: _number,
    Decimal: _number,
    str: _str,
    bytes: _bytes,
    date: _date,
    time: _time,
    datetime: _datetime,
    timedelta: _timedelta,
    UUID: _uuid,
    tuple: _tuple,
    list: _tuple,
    ListKey: _tuple,
}
