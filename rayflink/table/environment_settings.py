"""The settings of a `TableEnvironment`."""

from __future__ import annotations

from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.common.options import registry as options


class EnvironmentSettings:
    """Streaming or batch, and the configuration.

    >>> EnvironmentSettings.in_batch_mode().is_streaming_mode()
    False

    Args:
        configuration: the options; `execution.runtime-mode` among them is the mode. None: no option is set, which is
            streaming mode.
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = configuration or Configuration()

    @staticmethod
    def in_streaming_mode() -> EnvironmentSettings:
        """Return settings of streaming mode: rows come and queries go on."""
        return Builder().in_streaming_mode().build()

    @staticmethod
    def in_batch_mode() -> EnvironmentSettings:
        """Tables end; a query sees all of their rows."""
        return Builder().in_batch_mode().build()

    @staticmethod
    def new_instance() -> Builder:
        """Return a builder of settings."""
        return Builder()

    @staticmethod
    def from_configuration(config: Configuration) -> EnvironmentSettings:
        """Return settings with the options of a configuration; `with_configuration` of the builder does it now."""
        return Builder().with_configuration(config).build()

    def to_configuration(self) -> Configuration:
        """Return the configuration; `get_configuration` does it now."""
        return self._configuration

    def is_streaming_mode(self) -> bool:
        """Return whether queries go on: `execution.runtime-mode` is STREAMING, which is its default.

        Raises:
            ConfigError: it is AUTOMATIC, or no mode.
        """
        return not is_batch(self._configuration)

    def get_configuration(self) -> Configuration:
        """Return the configuration."""
        return self._configuration

    def get_built_in_catalog_name(self) -> str:
        """Name of the first catalog."""
        return self._configuration.get(options.BUILT_IN_CATALOG)

    def get_built_in_database_name(self) -> str:
        """Name of its first database."""
        return self._configuration.get(options.BUILT_IN_DATABASE)


class Builder:
    """Builds `EnvironmentSettings`; of several calls that say the same option the last one counts."""

    def __init__(self) -> None:
        self._configuration = Configuration()

    def in_streaming_mode(self) -> Builder:
        """Choose streaming mode: rows come and queries go on."""
        self._configuration.set(options.RUNTIME_MODE, options.RuntimeMode.STREAMING)
        return self

    def in_batch_mode(self) -> Builder:
        """Tables end; a query sees all of their rows."""
        self._configuration.set(options.RUNTIME_MODE, options.RuntimeMode.BATCH)
        return self

    def with_configuration(self, config: Configuration) -> Builder:
        """Set all options of a configuration, also the mode where it has one."""
        self._configuration.add_all(config)
        return self

    def with_built_in_catalog_name(self, built_in_catalog_name: str) -> Builder:
        """Name of the first catalog; without it `default_catalog`."""
        self._configuration.set(options.BUILT_IN_CATALOG, built_in_catalog_name)
        return self

    def with_built_in_database_name(self, built_in_database_name: str) -> Builder:
        """Name of its first database; without it `default_database`."""
        self._configuration.set(options.BUILT_IN_DATABASE, built_in_database_name)
        return self

    def build(self) -> EnvironmentSettings:
        """Return the settings."""
        return EnvironmentSettings(Configuration(self._configuration))


def is_batch(configuration: Configuration) -> bool:
    """Return whether `execution.runtime-mode` is BATCH.

    Raises:
        ConfigError: it is AUTOMATIC, or no mode.
    """
    mode = configuration.get(options.RUNTIME_MODE)
    if mode is options.RuntimeMode.AUTOMATIC:
        key = options.RUNTIME_MODE.key
        remedy = "tables are of one mode from the beginning; set it before the TableEnvironment is created"
        raise ConfigError(key, mode.name, "STREAMING or BATCH", remedy, configuration.origin(key))
    return mode is options.RuntimeMode.BATCH


def ensure_mode(configuration: Configuration, wanted_batch: bool) -> None:
    """Raise ConfigError where `execution.runtime-mode` is another one than that of the `TableEnvironment`."""
    mode = configuration.get(options.RUNTIME_MODE)
    wanted = options.RuntimeMode.BATCH if wanted_batch else options.RuntimeMode.STREAMING
    if mode is not wanted:
        key = options.RUNTIME_MODE.key
        remedy = "the mode of a TableEnvironment cannot change; set it before, or create another TableEnvironment"
        raise ConfigError(key, mode.name, wanted.name, remedy, configuration.origin(key))


EnvironmentSettings.Builder = Builder  # type: ignore[attr-defined]
