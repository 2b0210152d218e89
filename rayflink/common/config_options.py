"""ConfigOption, the typed description of one option, and its builder with PyFlink's names."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from .errors import ConfigError, shorten
from .options import option_types
from .options.option_types import ValueType

__all__ = ["ConfigOption", "ConfigOptions"]

T = TypeVar("T")


@dataclass(frozen=True)
class ConfigOption(Generic[T]):
    """One option: its key, how values are read, what holds when it is absent.

    Args:
        key: dotted name, Flink's where Flink has the option.
        type: how values are read and written.
        default: value when neither the key nor a fallback key is set; None is no default.
        help: what the option does, one sentence with units and range.
        fallback_keys: older names, looked up in order when the key is absent.
        accepts: test of a read value; None takes all.
        wanted: what `accepts` wants, for the error message.
        refused: why the option cannot be set at all; empty when it can.
        unheeded: what this version does instead of heeding the option, to be read after "this version"; empty when it
            heeds it.
    """

    key: str
    type: ValueType[T]
    default: T | None = None
    help: str = ""
    fallback_keys: tuple[str, ...] = ()
    accepts: Callable[[T], bool] | None = None
    wanted: str = ""
    refused: str = ""
    unheeded: str = ""

    def read(self, raw: object, key: str = "") -> T:
        """Return the typed value of `raw` (text or a Python value), found under `key` (own key when empty).

        Raises: ConfigError: the value does not parse, is out of range, or the option is refused.
        """
        name = key or self.key
        if self.refused:
            raise ConfigError(name, shorten(raw), "no value at all", self.refused)
        try:
            value = self.type.read(raw)
        except (ValueError, TypeError):
            raise ConfigError(name, shorten(raw), self.type.name, self._remedy(raw)) from None
        if self.accepts is not None and not self.accepts(value):
            raise ConfigError(name, shorten(raw), self.wanted, f"leave it out to get {self.default_text()}")
        return value

    def _remedy(self, raw: object) -> str:
        spelt = {member.lower().replace("_", "-"): member for member in self.type.members}
        near = difflib.get_close_matches(str(raw).strip().lower().replace("_", "-"), spelt, 1)
        return f"did you mean {spelt[near[0]]}?" if near else f"write for example {self.key}: {self.type.example}"

    def default_text(self) -> str:
        """Return the default as text, "(none)" where there is none."""
        return "(none)" if self.default is None else self.type.write(self.default)

    def with_fallback_keys(self, *keys: str) -> ConfigOption[T]:
        """Return the same option that also answers to `keys`."""
        return replace(self, fallback_keys=keys)


class ConfigOptions:
    """Builds options in PyFlink's way.

    >>> ConfigOptions.key("tmp.dir").string_type().default_value("/tmp").default
    '/tmp'
    """

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        """Start an option of the given key."""
        return ConfigOptions.OptionBuilder(key)

    class OptionBuilder:
        """Knows the key; the next call gives the type."""

        def __init__(self, key: str) -> None:
            self._key = key

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            """Set the type: values are true or false."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, option_types.BOOLEAN)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """Set the type: values are whole numbers of 32 bits."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, option_types.INT)

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """Set the type: values are whole numbers of 64 bits."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, option_types.LONG)

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """Set the type: values are floats."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, option_types.FLOAT)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """Set the type: values are floats."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, option_types.DOUBLE)

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            """Set the type: values are strings."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, option_types.STRING)

    class TypedConfigOptionBuilder(Generic[T]):
        """Knows key and type; the next call makes the option."""

        def __init__(self, key: str, type: ValueType[T]) -> None:
            self._key, self._type = key, type

        def default_value(self, value: T) -> ConfigOption[T]:
            """Return the option with a default."""
            return ConfigOption(self._key, self._type, value)

        def no_default_value(self) -> ConfigOption[T]:
            """Return the option without a default."""
            return ConfigOption(self._key, self._type)
