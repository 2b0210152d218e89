"""The written form of an option's value, and how it is read: durations, memory sizes, enums, lists, maps."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any, Generic, TypeVar

from ..time import Duration

__all__ = [
    "BOOLEAN", "DOUBLE", "DURATION", "FLOAT", "INT", "LIST", "LONG", "MAP", "MEMORY", "STRING",
    "MemorySize", "ValueType", "enum_type",
]  # fmt: skip

T = TypeVar("T")

_UNIT_NANOS = {
    "ns": 1, "nano": 1, "nanosecond": 1,
    "us": 10**3, "µs": 10**3, "micro": 10**3, "microsecond": 10**3,
    "": 10**6, "ms": 10**6, "milli": 10**6, "millisecond": 10**6,
    "s": 10**9, "sec": 10**9, "second": 10**9,
    "m": 60 * 10**9, "min": 60 * 10**9, "minute": 60 * 10**9,
    "h": 3600 * 10**9, "hour": 3600 * 10**9,
    "d": 86400 * 10**9, "day": 86400 * 10**9,
}  # fmt: skip
_UNIT_BYTES = {
    "": 1, "b": 1, "byte": 1, "bytes": 1,
    "k": 2**10, "kb": 2**10, "kibibytes": 2**10,
    "m": 2**20, "mb": 2**20, "mebibytes": 2**20,
    "g": 2**30, "gb": 2**30, "gibibytes": 2**30,
    "t": 2**40, "tb": 2**40, "tebibytes": 2**40,
}  # fmt: skip
_AMOUNT = re.compile(r"(\d+)\s*([a-zµ]*)")
_SIGNED_AMOUNT = re.compile("(-?" + _AMOUNT.pattern[1:])
_ISO = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<d>[-+]?\d+)D)?"
    r"(?:T(?=[-+\d])(?:(?P<h>[-+]?\d+)H)?(?:(?P<m>[-+]?\d+)M)?(?:(?P<s>[-+]?\d+)(?:[.,](?P<f>\d{0,9}))?S)?)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, order=True)
class MemorySize:
    """A number of bytes, at least 0.

    >>> str(MemorySize.parse("32 kb")), MemorySize.parse("1 mb").bytes
    ('32 kb', 1048576)
    """

    bytes: int

    def __post_init__(self) -> None:
        if self.bytes < 0:
            raise ValueError(f"a memory size must be at least 0, found {self.bytes}")

    @staticmethod
    def parse(text: str) -> MemorySize:
        """Read "32 kb", "1mb", "512 bytes"; units are powers of 1024, no unit is bytes. Raises: ValueError."""
        match = _AMOUNT.fullmatch(text.strip().lower())
        if match is None or match[2] not in _UNIT_BYTES:
            raise ValueError(text)
        return MemorySize(int(match[1]) * _UNIT_BYTES[match[2]])

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """Return a size of whole MiB."""
        return MemorySize(mebi_bytes << 20)

    def get_bytes(self) -> int:
        """Return the number of bytes."""
        return self.bytes

    def get_kibi_bytes(self) -> int:
        """Return the number of whole KiB, rounded down."""
        return self.bytes >> 10

    def get_mebi_bytes(self) -> int:
        """Return the number of whole MiB, rounded down."""
        return self.bytes >> 20

    def get_gibi_bytes(self) -> int:
        """Return the number of whole GiB, rounded down."""
        return self.bytes >> 30

    def get_tebi_bytes(self) -> int:
        """Return the number of whole TiB, rounded down."""
        return self.bytes >> 40

    def __int__(self) -> int:
        return self.bytes

    def __str__(self) -> str:
        for unit in ("tb", "gb", "mb", "kb"):
            if self.bytes and self.bytes % _UNIT_BYTES[unit] == 0:
                return f"{self.bytes // _UNIT_BYTES[unit]} {unit}"
        return f"{self.bytes} bytes"


@dataclass(frozen=True)
class ValueType(Generic[T]):
    """One kind of option value.

    Args:
        name: as shown in the table of options.
        read: text or Python value -> value; raises ValueError or TypeError on anything else.
        write: value -> text that `read` takes back.
        example: text that `read` takes, for error messages.
        members: all strings that `read` takes, where they are few.
    """

    name: str
    read: Callable[[Any], T]
    write: Callable[[T], str]
    example: str
    members: tuple[str, ...] = ()


def _read_boolean(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.strip().lower() in ("true", "false"):
        return raw.strip().lower() == "true"
    raise ValueError(raw)


def _whole_number(bits: int) -> Callable[[Any], int]:
    def read(raw: object) -> int:
        if isinstance(raw, bool) or not isinstance(raw, (int, str)):
            raise ValueError(raw)
        value = int(raw)
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise ValueError(raw)
        return value

    return read


def _read_float(raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
        raise ValueError(raw)
    return float(raw)


def _read_string(raw: object) -> str:
    if isinstance(raw, (list, tuple)):
        return LIST.write([str(item) for item in raw])
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, Enum):
        return str(raw.value)
    if isinstance(raw, timedelta):
        return _write_duration(Duration.of_timedelta(raw))
    if isinstance(raw, Duration):
        return _write_duration(raw)
    if isinstance(raw, Mapping):
        return MAP.write({str(key): str(value) for key, value in raw.items()})
    return str(raw)


def _read_duration(raw: object) -> Duration:
    if isinstance(raw, Duration):
        return raw
    if isinstance(raw, timedelta):
        return Duration.of_timedelta(raw)
    if isinstance(raw, int) and not isinstance(raw, bool):
        return Duration.of_millis(raw)
    if not isinstance(raw, str):
        raise ValueError(raw)
    text = raw.strip()
    iso = _ISO.fullmatch(text)
    if iso is not None and text.upper().lstrip("+-") != "P":
        return _from_iso(iso)
    match = _SIGNED_AMOUNT.fullmatch(text.lower())
    unit = "" if match is None else match[2]
    if unit not in _UNIT_NANOS and unit.endswith("s"):
        unit = unit[:-1]
    if match is None or unit not in _UNIT_NANOS:
        raise ValueError(raw)
    return Duration(int(match[1]) * _UNIT_NANOS[unit])


def _from_iso(match: re.Match[str]) -> Duration:
    nanos = sum(int(match[part] or 0) * _UNIT_NANOS[part] for part in ("d", "h", "m", "s"))
    fraction = int((match["f"] or "").ljust(9, "0"))
    nanos += -fraction if (match["s"] or "").startswith("-") else fraction
    return Duration(-nanos if match["sign"] == "-" else nanos)


def _write_duration(value: Duration) -> str:
    nanos = value.to_nanos()
    for unit in ("d", "h", "min", "s", "ms", "us"):
        if nanos and nanos % _UNIT_NANOS[unit] == 0:
            return f"{nanos // _UNIT_NANOS[unit]} {unit}"
    return f"{nanos} ns" if nanos else "0 ms"


def _read_memory(raw: object) -> MemorySize:
    if isinstance(raw, MemorySize):
        return raw
    if isinstance(raw, int) and not isinstance(raw, bool):
        return MemorySize(raw)
    if isinstance(raw, str):
        return MemorySize.parse(raw)
    raise ValueError(raw)


def _read_list(raw: object) -> list[str]:
    if isinstance(raw, (list, tuple)):
        return [str(item) for item in raw]
    if not isinstance(raw, str):
        raise ValueError(raw)
    text = raw.strip()
    if text.startswith(("[", "- ")):
        items = _items_of_yaml(text)
        if items is not None:
            return items
    if text.startswith("[") and text.endswith("]"):
        return [item.strip().strip("'\"") for item in text[1:-1].split(",") if item.strip()]
    return [item.strip().strip("'\"") for item in text.split(";") if item.strip()]


def _items_of_yaml(text: str) -> list[str] | None:
    """Read the items of a YAML list of strings, on one line or several; None where it is none."""
    import yaml

    try:
        items = yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError:
        return None
    if isinstance(items, list) and all(isinstance(item, str) for item in items):
        return [item for item in items if item]
    return None


def _write_list(items: list[str]) -> str:
    broken = [item for item in items if ";" in item]
    if broken:
        raise ValueError(f"an item of a list cannot hold ';': {broken[0]!r}")
    return ";".join(items)


def _read_map(raw: object) -> dict[str, str]:
    if isinstance(raw, Mapping):
        return {str(key): str(value) for key, value in raw.items()}
    if not isinstance(raw, str):
        raise ValueError(raw)
    pairs = [item.partition(":") for item in raw.split(",") if item.strip()]
    if not all(colon for _, colon, _ in pairs):
        raise ValueError(raw)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _write_map(pairs: dict[str, str]) -> str:
    for key, value in pairs.items():
        if "," in key + value or ":" in key:
            raise ValueError(f"a map cannot hold ',' nor ':' in a key: {key!r}: {value!r}")
    return ",".join(f"{key}:{value}" for key, value in pairs.items())


E_ = TypeVar("E_", bound=Enum)


def enum_type(kind: type[E_]) -> ValueType[E_]:
    """Return the type of an option that takes a member of an enum, by name or value; case, '-', '_' do not count."""

    def fold(text: str) -> str:
        return text.strip().lower().replace("_", "").replace("-", "")

    spellings = {fold(text): member for member in kind for text in (member.name, str(member.value))}

    def read(raw: object) -> E_:
        if isinstance(raw, kind):
            return raw
        if isinstance(raw, str) and fold(raw) in spellings:
            return spellings[fold(raw)]
        raise ValueError(raw)

    members = [str(member.value) for member in kind]
    return ValueType("one of " + ", ".join(members), read, lambda value: str(value.value), members[0], tuple(members))


BOOLEAN = ValueType(
    "true or false", _read_boolean, lambda value: "true" if value else "false", "true", ("true", "false")
)
INT = ValueType("int", _whole_number(32), str, "4")
LONG = ValueType("long", _whole_number(64), str, "4")
FLOAT = ValueType("float", _read_float, repr, "0.5")
DOUBLE = ValueType("double", _read_float, repr, "0.5")
STRING = ValueType("string", _read_string, str, "text")
DURATION = ValueType("duration", _read_duration, _write_duration, "10 ms, 1 min or PT10S")
MEMORY = ValueType("memory size", _read_memory, str, "32 kb or 1 mb")
LIST = ValueType("list", _read_list, _write_list, "a;b")
MAP = ValueType("map", _read_map, _write_map, "k1:v1,k2:v2")
