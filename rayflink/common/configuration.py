"""Configuration: options by key, as text or typed, from code, a command line or Flink's configuration file."""

from __future__ import annotations

import builtins
import difflib
from collections.abc import Iterable, Mapping
from datetime import timedelta
from enum import Enum
from os import PathLike
from typing import Any, TypeVar, overload

from .config_options import ConfigOption
from .errors import ConfigError, shorten
from .option_types import BOOLEAN, DOUBLE, LIST, LONG, STRING, MemorySize
from .time import Duration

__all__ = ["Configuration"]

T = TypeVar("T")


class Configuration:
    """Options by key; values keep the type they were set with and are read back as any type they parse as.

    >>> config = Configuration().set_string("taskmanager.memory.segment-size", "64 kb")
    >>> from rayflink.common import options
    >>> config.get(options.BATCH_MAX_BYTES).bytes, config.get(options.BUFFERS_PER_CHANNEL)
    (65536, 2)
    """

    def __init__(self, other: Configuration | None = None) -> None:
        self._values: dict[str, Any] = {} if other is None else dict(other._values)
        self._origins: dict[str, tuple[Any, str]] = {} if other is None else dict(other._origins)

    @classmethod
    def from_dict(cls, map: Mapping[str, Any]) -> Configuration:
        """A configuration that holds the entries of `map`."""
        config = cls()
        config._values.update(map)
        return config

    @classmethod
    def from_args(cls, args: Iterable[str]) -> tuple[Configuration, list[str]]:
        """Take every ``-D key=value`` and ``-Dkey=value`` out of a command line; return them and the rest, in order.

        Raises: ConfigError: a ``-D`` without ``key=value``.
        """
        config = cls()
        rest: list[str] = []
        remaining = iter(args)
        for arg in remaining:
            if arg == "--":
                return config, [*rest, arg, *remaining]
            if not arg.startswith("-D"):
                rest.append(arg)
                continue
            pair = arg[2:] or next(remaining, "")
            key, equals, value = pair.partition("=")
            if not equals or not key.strip():
                raise ConfigError("-D", shorten(pair), "key=value", "write for example -D parallelism.default=4")
            config._values[key.strip()] = value.strip()
        return config, rest

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Configuration:
        """Read Flink's flat configuration file: one ``key: value`` a line, ``#`` begins a comment.

        Raises: ConfigError: a line is indented, has no ``key: value``, or repeats a key.
        """
        config = cls()
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                content = _strip_comment(line).rstrip()
                if not content or content == "---":
                    continue
                key, colon, value = content.partition(":")
                problem = ""
                if content[0] in " \t-" or not colon or (value and value[0] not in " \t"):
                    problem = f"line {number}: {shorten(content)}"
                elif not value.strip():
                    problem = f"line {number}: {key!r} without a value"
                elif key.strip() in config._values:
                    problem = f"line {number}: {key.strip()!r} a second time"
                if problem:
                    remedy = "write nested keys as one dotted key, for example execution.checkpointing.interval: 10 s"
                    raise ConfigError(str(path), problem, "one flat `key: value` a line", remedy)
                given = _unquote(value.strip())
                config._values[key.strip()] = given
                config._origins[key.strip()] = given, f"{path}:{number}"
        return config

    @overload
    def get(self, option: ConfigOption[T], default: T) -> T: ...
    @overload
    def get(self, option: ConfigOption[T]) -> T: ...
    def get(self, option: ConfigOption[T], default: T | None = None) -> T | None:
        """The typed value of an option: its key, else its fallback keys, else `default`, else its own default.

        None stands for an option that is not set and has no default.
        Raises: ConfigError: the value does not parse.
        """
        for key in (option.key, *option.fallback_keys):
            if key in self._values:
                return option.read(self._values[key], key)
        return option.default if default is None else default

    def set(self, option: ConfigOption[T], value: Any) -> Configuration:
        """Set an option to a value, which is checked now. Raises: ConfigError."""
        self._values[option.key] = option.read(value)
        return self

    def get_string(self, key: str, default_value: str | None = None) -> str | None:
        """The value as text, whatever it was set as."""
        return STRING.read(self._values[key]) if key in self._values else default_value

    def set_string(self, key: str, value: str) -> Configuration:
        """Set text."""
        self._values[key] = value
        return self

    def get_integer(self, key: str, default_value: int) -> int:
        """The value as a whole number of 64 bits. Raises: ConfigError."""
        return self.get(ConfigOption(key, LONG), default_value)

    def set_integer(self, key: str, value: int) -> Configuration:
        """Set a whole number."""
        return self.set(ConfigOption(key, LONG), value)

    def get_boolean(self, key: str, default_value: bool) -> bool:
        """The value as a bool. Raises: ConfigError."""
        return self.get(ConfigOption(key, BOOLEAN), default_value)

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Set a bool."""
        return self.set(ConfigOption(key, BOOLEAN), value)

    def get_float(self, key: str, default_value: float) -> float:
        """The value as a float. Raises: ConfigError."""
        return self.get(ConfigOption(key, DOUBLE), float(default_value))

    def set_float(self, key: str, value: float) -> Configuration:
        """Set a float."""
        return self.set(ConfigOption(key, DOUBLE), value)

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        """A copy of the bytes set under the key. Raises: ConfigError: the value was not set as bytes."""
        value = self._values.get(key, default_value)
        if not isinstance(value, (bytes, bytearray)):
            raise ConfigError(key, shorten(value), "bytes", "set it with set_bytearray()")
        return bytearray(value)

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        """Set bytes; a copy is kept."""
        self._values[key] = bytes(value)
        return self

    @staticmethod
    def parse_list_value(value: str, standard_yaml: bool = True) -> list[str]:
        """The items of a list option: ``a;b`` or ``[a, b]``.

        Args:
            standard_yaml: accepted for the sake of PyFlink 1.x; both forms are read.
        """
        return LIST.read(value) if value else []

    def key_set(self) -> builtins.set[str]:
        """All keys that are set."""
        return set(self._values)

    def contains_key(self, key: str) -> bool:
        """Whether the key is set."""
        return key in self._values

    def remove_config(self, key: str) -> bool:
        """Remove a key; whether it was set."""
        return self._values.pop(key, _ABSENT) is not _ABSENT

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Set all entries of `other`, their keys behind `prefix` where one is given."""
        self._values.update({(prefix or "") + key: value for key, value in other._values.items()})
        self._origins.update({(prefix or "") + key: origin for key, origin in other._origins.items()})
        return self

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Put all entries, as text, into a dict."""
        target_dict.update(self.to_dict())

    def to_dict(self) -> dict[str, str]:
        """All entries as text, in the order they were set."""
        return {key: STRING.read(value) for key, value in self._values.items()}

    def origin(self, key: str) -> str:
        """ "file:line" where the value of the key stands in a configuration file, "" where it is not from one."""
        value, line = self._origins.get(key, (_ABSENT, ""))
        return line if self._values.get(key) is value else ""

    def unknown_options(self) -> dict[str, list[str]]:
        """Keys that no registered option bears, each with up to three known keys that are near it."""
        from .options import known_keys, takes_any_suffix

        known = known_keys()
        return {key: _near(key, known) for key in self._values if key not in known and not takes_any_suffix(key)}

    def check(self) -> None:
        """Read every registered option that is set.

        Raises: ConfigError: the first that does not parse, or holds an object no other process could read.
        """
        from .options import by_key

        options = by_key()
        for key, value in self._values.items():
            if key in options:
                options[key].read(value, key)
            if not _is_plain(value):
                remedy = "the configuration could not be serialized with it: make the object in open() of a function"
                raise ConfigError(key, shorten(value), "text, a number or other plain data", remedy)

    def __deepcopy__(self, memo: dict[int, Any]) -> Configuration:
        return Configuration(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(frozenset(self.to_dict().items()))

    def __str__(self) -> str:
        return str(self.to_dict())

    def __repr__(self) -> str:
        return f"Configuration({self.to_dict()})"


_ABSENT = object()
_NEAR = 0.75
"""How much alike two texts are that may be meant for each other, in [0, 1]."""


def _near(key: str, known: Iterable[str]) -> list[str]:
    """Up to three known keys that are much like `key`, or have as many parts on end that are; the nearest first."""
    matcher, width = difflib.SequenceMatcher(b=key), key.count(".") + 1

    def likeness(text: str) -> float:
        matcher.set_seq1(text)
        return matcher.ratio() if matcher.real_quick_ratio() >= _NEAR and matcher.quick_ratio() >= _NEAR else 0.0

    found = []
    for name in known:
        parts = name.split(".")
        runs = {".".join(parts[at : at + width]) for at in range(len(parts) - width + 1)}
        best = max(map(likeness, {name, *runs}))
        if best >= _NEAR:
            found.append((-best, len(name), name))
    return [name for *_, name in sorted(found)[:3]]


def _is_plain(value: Any) -> bool:
    """Whether the value has a text form that means the same in another process."""
    if isinstance(value, Mapping):
        return all(_is_plain(part) for item in value.items() for part in item)
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(_is_plain, value))
    plain = (str, bytes, bytearray, bool, int, float, Enum, Duration, MemorySize, timedelta, PathLike, type(None))
    return isinstance(value, plain)


def _strip_comment(line: str) -> str:
    """The line without ``# ...``; a ``#`` within quotes or inside a word is not a comment."""
    quote = ""
    for position, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"" and line[:position].rstrip()[-1:] in (":", ""):
            quote = char
        elif char == "#" and (position == 0 or line[position - 1] in " \t"):
            return line[:position]
    return line


def _unquote(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text
