"""Levels from which on the lines of a job's loggers are stored, and their form."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..configuration import Configuration
from ..errors import ConfigError
from ..text_output.logs import write_json
from . import registry as options
from .option_values import LOG_LEVELS, LogFormat

DEFAULT = "INFO"


@dataclass(frozen=True, slots=True)
class LogLevels:
    """The levels of all loggers of a process that runs tasks.

    Args:
        level: of all that have none of their own: DEBUG, INFO, WARNING, ERROR or CRITICAL.
        loggers: name -> level; a name stands for those below it too, as `logging` has it.
        format: of the lines.
    """

    level: str = DEFAULT
    loggers: tuple[tuple[str, str], ...] = ()
    format: LogFormat = LogFormat.TEXT

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> LogLevels:
        """Set levels and form as `rayflink.log.level`, `rayflink.log.loggers` and `rayflink.log.format` of a job say.

        Raises:
            ConfigError: one is no level.

        >>> LogLevels.of({"rayflink.log.loggers": "my_job:DEBUG,urllib3:error"})
        LogLevels(level='INFO', loggers=(('my_job', 'DEBUG'), ('urllib3', 'ERROR')), format=<LogFormat.TEXT: 'text'>)
        """
        get = Configuration.from_dict(config).get
        loggers = {name: level.upper() for name, level in (get(options.LOGGER_LEVELS) or {}).items()}
        for name, level in loggers.items():
            if level not in LOG_LEVELS:
                key = f"{options.LOGGER_LEVELS.key}.{name}"
                raise ConfigError(key, level, f"one of {', '.join(LOG_LEVELS)}", "give a level of Python's logging")
        level = (get(options.LOG_LEVEL) or DEFAULT).upper()
        return cls(level, tuple(loggers.items()), get(options.LOG_FORMAT))

    def apply(self) -> None:
        """Set the levels and the form in this process."""
        write_json(self.format is LogFormat.JSON)
        for logger in (logging.getLogger(), logging.getLogger("rayflink")):
            logger.setLevel(self.level)
        for name, level in self.loggers:
            logging.getLogger(name).setLevel(level)


__all__ = ["DEFAULT", "LogLevels"]
