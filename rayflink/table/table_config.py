"""Options of a `TableEnvironment`."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.common.options import registry as options
from rayflink.common.user_code.python_executable import check_executable

from .statements.time_zones import system_zone

if TYPE_CHECKING:
    from .optimizer.planner_config import PlannerConfig


class SqlDialect:
    """The dialects of SQL: `TableConfig.set_sql_dialect` takes DEFAULT, and refuses HIVE."""

    DEFAULT = 0
    HIVE = 1


class TableConfig(Configuration):
    """The options by which queries are run; what is set holds for those that are run afterwards.

    >>> config = TableConfig().set("table.local-time-zone", "Europe/Berlin")
    >>> config.get_local_timezone(), config.get("no.such.option", "nothing")
    ('Europe/Berlin', 'nothing')

    Args:
        configuration: whose options these are, also those set later; None: ones of its own.
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        super().__init__()
        if configuration is not None:
            self._values, self._origins = configuration._values, configuration._origins
        self._planner_config: PlannerConfig | None = None

    def get(self, key: Any, default_value: Any = None) -> Any:
        """Return the value of an option as a string, or of its type for a `ConfigOption`; else `default_value`."""
        return self.get_string(key, default_value) if isinstance(key, str) else super().get(key, default_value)

    def set(self, key: Any, value: Any) -> TableConfig:
        """Set an option."""
        if isinstance(key, str):
            self.set_string(key, value)
        else:
            super().set(key, value)
        return self

    def get_local_timezone(self) -> str:
        """Return the time zone in which TIMESTAMP_LTZ is shown and its windows begin, a name of the IANA database."""

        zone = super().get(options.LOCAL_TIME_ZONE)
        return system_zone() if zone == "default" else zone

    def set_local_timezone(self, timezone_id: str) -> None:
        """Set that zone.

        Raises:
            ConfigError: there is none of the name.
        """
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

        try:
            ZoneInfo(timezone_id)
        except (ZoneInfoNotFoundError, ValueError) as error:
            remedy = "give it as in Europe/Berlin or UTC"
            raise ConfigError(options.LOCAL_TIME_ZONE.key, timezone_id, "a time zone", remedy) from error
        self.set_string(options.LOCAL_TIME_ZONE.key, timezone_id)

    def get_idle_state_retention(self) -> timedelta:
        """Return how long unused state of a query is retained, the option `table.exec.state.ttl`; 0: for ever."""
        return super().get(options.STATE_TTL).to_timedelta()

    def set_idle_state_retention(self, duration: timedelta) -> None:
        """Set how long unused state of a query is retained, the option `table.exec.state.ttl`; 0: for ever.

        Raises:
            ConfigError: it is negative.

        >>> config = TableConfig()
        >>> config.set_idle_state_retention(timedelta(days=1))
        >>> config.get("table.exec.state.ttl"), config.get_idle_state_retention()
        ('1 d', datetime.timedelta(days=1))
        """
        super().set(options.STATE_TTL, duration)

    def get_python_executable(self) -> str:
        """Return the interpreter that runs functions on Ray; that of this process where none is set."""
        return super().get(options.PYTHON_EXECUTABLE) or sys.executable

    def set_python_executable(self, python_exec: str) -> None:
        """Run functions on Ray by another interpreter, on every node or in an archive; local runs have their own.

        Raises:
            ConfigError: it is not there, has another version of Python or Ray, or no rayflink.
        """
        check_executable(python_exec)
        super().set(options.PYTHON_EXECUTABLE, python_exec)

    def get_planner_config(self) -> PlannerConfig:
        """Return the rules by which queries are rewritten before they are run."""
        from .optimizer.planner_config import PlannerConfig  # slow: it loads pyarrow

        return self._planner_config or PlannerConfig()

    def set_planner_config(self, planner_config: PlannerConfig) -> None:
        """Rewrite queries that are run afterwards by these rules. See docs/planner-rules.md."""
        self._planner_config = planner_config

    def get_sql_dialect(self) -> int:
        """Return the dialect of statements, `SqlDialect.DEFAULT`."""
        return SqlDialect.DEFAULT

    def set_sql_dialect(self, sql_dialect: int) -> None:
        """Set the dialect of statements.

        Raises:
            ConfigError: it is not `SqlDialect.DEFAULT`.
        """
        if sql_dialect != SqlDialect.DEFAULT:
            remedy = "statements are Flink's own SQL: write SqlDialect.DEFAULT, or leave the call out"
            raise ConfigError("table.sql-dialect", str(sql_dialect), "SqlDialect.DEFAULT", remedy)

    def get_configuration(self) -> Configuration:
        """Return the same options."""
        return self

    def add_configuration(self, configuration: Configuration) -> None:
        """Set all options of another one."""
        self.add_all(configuration)

    def to_map(self) -> dict[str, str]:
        """Return all options that are set, as text."""
        return self.to_dict()

    @staticmethod
    def get_default() -> TableConfig:
        """Return a configuration without any option set."""
        return TableConfig()


__all__ = ["SqlDialect", "TableConfig"]
