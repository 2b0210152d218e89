"""The options that a command of `rayflink` was given, and how it shows options."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rayflink.common.config_options import ConfigOption
from rayflink.common.configuration import Configuration, shown_value
from rayflink.common.errors import ConfigError
from rayflink.common.options import registry as options
from rayflink.common.options.option_sources import COMMAND_LINE, FILE_VARIABLE, given_options
from rayflink.common.options.option_values import LogFormat
from rayflink.common.text_output.logs import show_logs, write_json

from .script import FAILED, OK


def configuration_of(chosen: argparse.Namespace) -> Configuration:
    """Return the options of the file, over them those of the environment, over them those of the command line.

    Raises:
        ConfigError: one does not parse, or one of the command line is not known; the file cannot be read.
    """
    configuration = given_options()
    configuration.check()
    return configuration.add_all(of_command_line(chosen))


def of_command_line(chosen: argparse.Namespace) -> Configuration:
    """Return the options given by -D.

    Raises:
        ConfigError: one does not parse, or is not known.
    """
    configuration, _ = Configuration.from_args([f"-D{pair}" for pair in chosen.options], COMMAND_LINE)
    for key, near in configuration.unknown_options().items():
        raise _unknown(key, near)
    configuration.check()
    return configuration


def show_logs_as_chosen(chosen: argparse.Namespace) -> None:
    """Show the log lines of a command that takes options as JSON, where they say so.

    Raises:
        ConfigError: as `configuration_of` does.
    """
    if "options" in vars(chosen) and configuration_of(chosen).get(options.LOG_FORMAT) is LogFormat.JSON:
        write_json(True)
        show_logs()


@contextmanager
def options_file(path: Path | None) -> Iterator[None]:
    """Let programs and commands find the file of options that the command line names."""
    before = os.environ.get(FILE_VARIABLE)
    if path is not None:
        os.environ[FILE_VARIABLE] = str(path.absolute())
    try:
        yield
    finally:
        if before is not None:
            os.environ[FILE_VARIABLE] = before
        else:
            os.environ.pop(FILE_VARIABLE, None)


def show_options(chosen: argparse.Namespace) -> int:
    """Show all options, one, or those set from outside, for `rayflink config`, and return the exit code."""
    configuration = configuration_of(chosen)
    if chosen.set:
        return _show_set(configuration, chosen.json)
    selection = options.all_options()
    if chosen.name:
        known = options.by_key()
        if chosen.name not in known:
            print(f"rayflink: {_unknown(chosen.name, Configuration.nearest(chosen.name))}", file=sys.stderr)
            return FAILED
        selection = [known[chosen.name]]
    if chosen.json:
        described = [_described(option, configuration) for option in selection]
        print(json.dumps(described[0] if chosen.name else described, indent=2, ensure_ascii=False))
        return OK
    print("\n\n".join(_text(_described(option, configuration)) for option in selection))
    return OK


def _show_set(configuration: Configuration, as_json: bool) -> int:
    shown = {key: shown_value(key, value) for key, value in configuration.to_dict().items()}
    if as_json:
        rows = [{"key": key, "value": value, "origin": configuration.origin(key)} for key, value in shown.items()]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return OK
    unknown = configuration.unknown_options()
    for key, value in shown.items():
        problem = ""
        if key in unknown:
            problem = "  no option" + (f"; did you mean {unknown[key][0]}?" if unknown[key] else "")
        print(f"{key}: {value}  ({configuration.origin(key)}){problem}")
    if not shown:
        print("no option is set from outside")
    return OK


def _described(option: ConfigOption[Any], configuration: Configuration) -> dict[str, Any]:
    keys = [key for key in (option.key, *option.fallback_keys) if configuration.contains_key(key)]
    described: dict[str, Any] = {
        "key": option.key,
        "type": option.type.name,
        "default": None if option.default is None else option.type.write(option.default),
        "help": option.help.replace("`", ""),
        "also": list(option.fallback_keys),
        "refused": option.refused,
        "not_heeded": f"this version {option.unheeded}" if option.unheeded else "",
    }
    if keys:
        described["value"] = shown_value(keys[0], configuration.get_string(keys[0], "") or "")
        described["origin"] = configuration.origin(keys[0])
    return described


def _text(described: dict[str, Any]) -> str:
    default = "refused" if described["refused"] else described["default"] or "(none)"
    lines = [described["key"], f"  {described['type']}, default {default}", f"  {described['help']}"]
    if described["also"]:
        lines.append(f"  Also read: {', '.join(described['also'])}")
    if described["not_heeded"]:
        lines.append(f"  Not supported yet: {described['not_heeded']}")
    if "value" in described:
        lines.append(f"  Set to {described['value']} ({described['origin']})")
    return "\n".join(lines)


def _unknown(key: str, near: list[str]) -> ConfigError:
    remedy = f"did you mean {near[0]}?" if near else "`rayflink config` lists all options"
    return ConfigError(key, "an option that nothing reads", "one that rayflink knows", remedy)


__all__ = ["configuration_of", "of_command_line", "options_file", "show_options"]
