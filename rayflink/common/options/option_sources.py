"""Options that a program is given from outside: by a file, by the environment, by the command line; later ones win.

A file is named by $RAYFLINK_CONF or `rayflink run --config`, or is rayflink.yaml, else config.yaml, in the folder
$RAYFLINK_CONF_DIR. $RAYFLINK_OPTIONS holds `key=value` words as a shell reads them. What `rayflink run` was given by
-D, -p and --local comes in $RAYFLINK_COMMAND_LINE, in the same form. The program itself has the last word.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping

from ..configuration import Configuration
from ..errors import ConfigError, shorten
from ..user_code.call_sites import warn_user

__all__ = [
    "COMMAND_LINE", "COMMAND_LINE_VARIABLE", "FILE_VARIABLE", "OPTIONS_VARIABLE", "as_words", "file_of_options",
    "given_options", "under_program",
]  # fmt: skip

FILE_VARIABLE = "RAYFLINK_CONF"
"""Names the file of options."""
FOLDER_VARIABLE = "RAYFLINK_CONF_DIR"
"""Names the folder of the file of options, where no file is named."""
FILE_NAMES = ("rayflink.yaml", "config.yaml")
"""Names of the file in that folder; the first that is there is read."""
OPTIONS_VARIABLE = "RAYFLINK_OPTIONS"
"""Options of the environment."""
COMMAND_LINE_VARIABLE = "RAYFLINK_COMMAND_LINE"
"""The variable in which `rayflink run` leaves the options of its command line for the program."""
COMMAND_LINE = "command line"
"""The origin of an option that the command line gives."""


def given_options(environment: Mapping[str, str] | None = None) -> Configuration:
    """Return the options of the file, over them those of the environment, over them those of the command line.

    Args:
        environment: variables; None for those of this process.

    Raises:
        ConfigError: the file is named and cannot be read, or a variable holds no `key=value` words.
    """
    variables = os.environ if environment is None else environment
    path = file_of_options(variables)
    whole = Configuration()
    if path:
        try:
            whole = Configuration.from_file(path)
        except OSError as error:
            remedy = "name a file of `key: value` lines, see docs/configuration.md"
            raise ConfigError("--config", f"{path}: {error.strerror}", "a file of options", remedy) from None
    whole.add_all(_of_words(variables, OPTIONS_VARIABLE, f"${OPTIONS_VARIABLE}"))
    return whole.add_all(_of_words(variables, COMMAND_LINE_VARIABLE, COMMAND_LINE))


def under_program(base: Configuration, program: Configuration) -> Configuration:
    """Return `base` with the options of the program over it; warns of what the command line wanted otherwise."""
    lost = []
    for key in sorted(program.key_set() & base.key_set()):
        wanted, has = base.get_string(key), program.get_string(key)
        if base.origin(key) == COMMAND_LINE and wanted != has:
            origin = program.origin(key)
            lost.append(f"{key!r} is {has}, as the program sets{f' ({origin})' if origin else ''}, not {wanted}")
    if lost:
        warn_user(f"configuration: {'; '.join(lost)}: the program wins over the command line")
    return Configuration(base).add_all(program)


def file_of_options(variables: Mapping[str, str]) -> str:
    """Return the path of the file of options, "" where none is named.

    Raises:
        ConfigError: a folder is named in which there is none.
    """
    named, folder = variables.get(FILE_VARIABLE, ""), variables.get(FOLDER_VARIABLE, "")
    if named or not folder:
        return named
    for name in FILE_NAMES:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    remedy = f"put a file of options there, or unset {FOLDER_VARIABLE}"
    raise ConfigError(FOLDER_VARIABLE, f"{folder}, which has no such file", " or ".join(FILE_NAMES), remedy)


def as_words(options: Mapping[str, str]) -> str:
    """Return the options as the value of such a variable.

    >>> as_words({"parallelism.default": "2", "execution.buffer-timeout.interval": "10 ms"})
    "parallelism.default=2 'execution.buffer-timeout.interval=10 ms'"
    """
    return shlex.join(f"{key}={value}" for key, value in options.items())


def _of_words(variables: Mapping[str, str], variable: str, origin: str) -> Configuration:
    text = variables.get(variable, "")
    remedy = f"write for example {variable}=\"parallelism.default=4 'execution.buffer-timeout.interval=10 ms'\""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigError(variable, f"{shorten(text)}: {error}", "key=value words", remedy) from None
    for word in words:
        if not word.partition("=")[0].strip() or "=" not in word:
            raise ConfigError(variable, shorten(word), "key=value words", remedy)
    return Configuration.from_args([f"-D{word}" for word in words], origin)[0]
