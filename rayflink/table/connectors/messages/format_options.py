"""The formats that the options of a table name, with the options of each, parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rayflink.common.configuration import shown_value

from ...errors import SqlError, nearest
from .contract import MessageFormat
from .known_formats import message_format


@dataclass(frozen=True)
class ChosenFormat:
    """A format of messages and its options.

    Args:
        format: the format.
        values: its options by their names without prefix; absent ones have their defaults.
    """

    format: MessageFormat
    values: tuple[tuple[str, object], ...] = ()

    @property
    def name(self) -> str:
        """Return the name of the format."""
        return self.format.name

    @property
    def options(self) -> dict[str, object]:
        """Return the options by name."""
        return dict(self.values)


def choose_format(table: str, name: str, raw_options: Mapping[str, str], part: str = "") -> ChosenFormat:
    """Return a format with those of a table's options that are its own.

    Args:
        table: full name, for errors.
        name: of the format.
        raw_options: all options of the table.
        part: "key." or "value." where the options of the format begin so.

    Raises:
        SqlError: there is no such format, or one of its options is unknown, missing or of another form.
    """
    form = message_format(name, table)
    prefix = f"{part}{name}."
    values: dict[str, object] = {option: known.default for option, known in form.options.items()}
    own = {key.removeprefix(prefix): string for key, string in raw_options.items() if key.startswith(prefix)}
    for option, string in own.items():
        if option not in form.options:
            problem = f"{table} has an option {prefix + option!r}, which the format {name!r} does not know"
            known = ", ".join(prefix + each for each in sorted(form.options)) or "none"
            raise SqlError(problem + nearest(option, form.options), f"its options are {known}")
        try:
            values[option] = form.options[option].parse(string)
        except ValueError as error:
            shown = shown_value(option, string)
            raise SqlError(f"option {prefix + option!r} of {table} is {shown!r}", f"expected {error}") from error
    missing = [option for option, known in form.options.items() if known.required and option not in own]
    if missing:
        raise SqlError(f"{table} has no option {prefix + missing[0]!r}", f"the format {name!r} needs it")
    form.check(values)
    return ChosenFormat(form, tuple(values.items()))


__all__ = ["ChosenFormat", "choose_format"]
