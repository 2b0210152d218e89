"""Configuration: options by key, as text or typed, from code, a command line or a file."""

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
from .options.configuration_file import options_of_file
from .options.option_types import BOOLEAN, DOUBLE, LIST, LONG, STRING, MemorySize
from .options.registry import by_key, known_keys, takes_any_suffix
from .text_output.masked import shown_value as shown_value
from .time import Duration
from .user_code.call_sites import call_site

__all__ = ["Configuration"]

T = TypeVar("T")


class Configuration:
    """Options by key; values keep the type they were set with and are read back as any type they parse as.

    Args:
        other: a configuration to begin with a copy of; None: none is set.

    >>> config = Configuration().set_string("taskmanager.memory.segment-size", "64 kb")
    >>> from rayflink.common.options import registry as options
    >>> config.get(options.BATCH_MAX_BYTES).bytes, config.get(options.BUFFERS_PER_CHANNEL)
    (65536, 2)
    """

    def __init__(self, other: Configuration | None = None) -> None:
        self._values: dict[str, Any] = {} if other is None else dict(other._values)
        self._origins: dict[str, tuple[Any, str]] = {} if other is None else dict(other._origins)

    @classmethod
    def from_dict(cls, map: Mapping[str, Any]) -> Configuration:
        """Return a configuration that holds the entries of `map`."""
        config, line = cls(), _line_of_program()
        config._values = dict(map)
        config._origins = {key: (value, line) for key, value in map.items()}
        return config

    @classmethod
    def from_args(cls, args: Iterable[str], origin: str = "") -> tuple[Configuration, list[str]]:
        """Take every ``-D key=value`` and ``-Dkey=value`` out of a command line; return them and the rest, in order.

        Args:
            origin: where they come from, for messages.

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
            config._put(key.strip(), value.strip(), origin)
        return config, rest

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Configuration:
        """Read a YAML file of options, with nested keys as in Flink's config.yaml or with dotted ones.

        Raises:
            ConfigError: it is no such file; its line is named.
            OSError: it cannot be read.
        """

        config = cls()
        for key, value, line in options_of_file(path):
            config._put(key, value, f"{path}:{line}")
        return config

    @overload
    def get(self, option: ConfigOption[T], default: T) -> T: ...
    @overload
    def get(self, option: ConfigOption[T]) -> T: ...
    def get(self, option: ConfigOption[T], default: T | None = None) -> T | None:
        """Return the typed value of an option: its key, else its fallback keys, else `default`, else its own default.

        None stands for an option that is not set and has no default.
        Raises: ConfigError: the value does not parse.
        """
        for key in (option.key, *option.fallback_keys):
            if key in self._values:
                return self._read(option, key)
        return option.default if default is None else default

    def set(self, option: ConfigOption[T], value: object) -> Configuration:
        """Set an option to a value, which is checked now. Raises: ConfigError."""
        self._put(option.key, option.read(value), _line_of_program())
        return self

    def get_string(self, key: str, default_value: str | None = None) -> str | None:
        """Return the value as text, whatever it was set as; `default_value` where it is not set."""
        return STRING.read(self._values[key]) if key in self._values else default_value

    def set_string(self, key: str, value: str) -> Configuration:
        """Set text."""
        self._put(key, value, _line_of_program())
        return self

    def get_integer(self, key: str, default_value: int) -> int:
        """Return the value as a whole number of 64 bits. Raises: ConfigError."""
        return self.get(ConfigOption(key, LONG), default_value)

    def set_integer(self, key: str, value: int) -> Configuration:
        """Set a whole number."""
        return self.set(ConfigOption(key, LONG), value)

    def get_boolean(self, key: str, default_value: bool) -> bool:
        """Return the value as a bool. Raises: ConfigError."""
        return self.get(ConfigOption(key, BOOLEAN), default_value)

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Set a bool."""
        return self.set(ConfigOption(key, BOOLEAN), value)

    def get_float(self, key: str, default_value: float) -> float:
        """Return the value as a float. Raises: ConfigError."""
        return self.get(ConfigOption(key, DOUBLE), float(default_value))

    def set_float(self, key: str, value: float) -> Configuration:
        """Set a float."""
        return self.set(ConfigOption(key, DOUBLE), value)

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        """Return a copy of the bytes set under the key. Raises: ConfigError: the value was not set as bytes."""
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
        """Return the items of a list option: ``a;b``, or a list of YAML on one line or several.

        >>> Configuration.parse_list_value("a;b"), Configuration.parse_list_value("- a\\n- b")
        (['a', 'b'], ['a', 'b'])

        Args:
            standard_yaml: accepted for the sake of PyFlink 1.x; all forms are read.
        """
        return LIST.read(value) if value else []

    def key_set(self) -> builtins.set[str]:
        """Return all keys that are set."""
        return set(self._values)

    def contains_key(self, key: str) -> bool:
        """Return whether the key is set."""
        return key in self._values

    def remove_config(self, key: str) -> bool:
        """Remove a key and return whether it was set."""
        return self._values.pop(key, _ABSENT) is not _ABSENT

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Set all entries of `other`, their keys behind `prefix` where one is given."""
        self._values.update({(prefix or "") + key: value for key, value in other._values.items()})
        self._origins.update({(prefix or "") + key: origin for key, origin in other._origins.items()})
        return self

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Put all entries into a dict, each value as it was set; `to_dict` gives them as text."""
        target_dict.update(self._values)

    def to_dict(self) -> dict[str, str]:
        """Return all entries as text, in the order they were set."""
        return {key: STRING.read(value) for key, value in self._values.items()}

    def origin(self, key: str) -> str:
        """Return where the value of a key was set; "" where that is not known.

        It is "file:line" of a file of options or of the program, a variable of the environment, or "command line".
        """
        value, line = self._origins.get(key, (_ABSENT, ""))
        return line if self._values.get(key) is value else ""

    def unknown_options(self) -> dict[str, list[str]]:
        """Return the keys that no registered option bears, each with up to three known keys that are near it."""

        known = known_keys()
        return {key: _near(key, known) for key in self._values if key not in known and not takes_any_suffix(key)}

    @staticmethod
    def nearest(key: str) -> list[str]:
        """Return up to three known keys that are near one that no option bears, the nearest first."""

        return _near(key, known_keys())

    def check(self) -> None:
        """Read every registered option that is set.

        Raises: ConfigError: the first that does not parse, or holds an object no other process could read.
        """

        options = by_key()
        for key, value in self._values.items():
            if key in options:
                self._read(options[key], key)
            if not _is_plain(value):
                remedy = "the configuration could not be serialized with it: make the object in open() of a function"
                raise ConfigError(key, shorten(value), "a string, a number or other plain data", remedy)

    def _put(self, key: str, value: object, origin: str) -> None:
        self._values[key] = value
        self._origins[key] = value, origin

    def _read(self, option: ConfigOption[T], key: str) -> T:
        try:
            return option.read(self._values[key], key)
        except ConfigError as error:
            line = self.origin(key)
            raise ConfigError(error.key, error.value, error.wanted, error.remedy, line) from None

    def __deepcopy__(self, memo: dict[int, Any]) -> Configuration:
        return Configuration(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(frozenset(self.to_dict().items()))

    def __str__(self) -> str:
        """Return all entries in the order they were set, as Flink writes them: ``{k1=v1, k2=1}``; secrets hidden."""
        entries = (f"{key}={shown_value(key, value)}" for key, value in self.to_dict().items())
        return f"{{{', '.join(entries)}}}"

    def __repr__(self) -> str:
        return f"Configuration({self})"


def reading(values: Mapping[str, Any]) -> Configuration:
    """Return the options as a job carries them, to be read; quick, as the places where they were set are left out."""
    config = Configuration()
    config._values = dict(values)
    return config


def _line_of_program() -> str:
    """Return "file:line" of the program that is setting an option."""
    return call_site().partition(" in ")[0]


_ABSENT = object()
_NEAR = 0.75
"""Least similarity, in [0, 1], of two strings of which one may be meant for the other."""


def _near(key: str, known: Iterable[str]) -> list[str]:
    """Return up to three known keys that resemble `key`, or have as many parts on end that do; the nearest first."""
    matcher, width = difflib.SequenceMatcher(b=key), key.count(".") + 1

    def likeness(text: str) -> float:
        matcher.set_seq1(text)
        return matcher.ratio() if matcher.real_quick_ratio() >= _NEAR and matcher.quick_ratio() >= _NEAR else 0.0

    matches = []
    for name in known:
        parts = name.split(".")
        runs = {".".join(parts[start : start + width]) for start in range(len(parts) - width + 1)}
        best = max(map(likeness, {name, *runs}))
        if best >= _NEAR:
            matches.append((-best, len(name), name))
    return [name for *_, name in sorted(matches)[:3]]


def _is_plain(value: object) -> bool:
    """Return whether the value has a text form that means the same in another process."""
    if isinstance(value, Mapping):
        return all(_is_plain(part) for item in value.items() for part in item)
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(_is_plain, value))
    plain = (str, bytes, bytearray, bool, int, float, Enum, Duration, MemorySize, timedelta, PathLike, type(None))
    return isinstance(value, plain)
