"""How a `TableEnvironment` runs queries."""

from __future__ import annotations

from rayflink.common.configuration import Configuration


class EnvironmentSettings:
    """Streaming or batch, and the configuration.

    >>> EnvironmentSettings.in_batch_mode().is_streaming_mode()
    False
    """

    def __init__(self, is_streaming: bool, configuration: Configuration | None = None, catalog: str = "",
                 database: str = "") -> None:  # fmt: skip
        self._is_streaming = is_streaming
        self._configuration = configuration or Configuration()
        self._catalog, self._database = catalog or "default_catalog", database or "default_database"

    @staticmethod
    def in_streaming_mode() -> EnvironmentSettings:
        """Rows come and queries go on."""
        return EnvironmentSettings(True)

    @staticmethod
    def in_batch_mode() -> EnvironmentSettings:
        """Tables end; a query sees all of their rows."""
        return EnvironmentSettings(False)

    @staticmethod
    def new_instance() -> Builder:
        """A builder of settings."""
        return Builder()

    def is_streaming_mode(self) -> bool:
        """Whether queries go on."""
        return self._is_streaming

    def get_configuration(self) -> Configuration:
        """The configuration."""
        return self._configuration

    def get_built_in_catalog_name(self) -> str:
        """Name of the first catalog."""
        return self._catalog

    def get_built_in_database_name(self) -> str:
        """Name of its first database."""
        return self._database


class Builder:
    """Builds `EnvironmentSettings`."""

    def __init__(self) -> None:
        self._is_streaming = True
        self._configuration: Configuration | None = None
        self._catalog = self._database = ""

    def in_streaming_mode(self) -> Builder:
        """Rows come and queries go on."""
        self._is_streaming = True
        return self

    def in_batch_mode(self) -> Builder:
        """Tables end; a query sees all of their rows."""
        self._is_streaming = False
        return self

    def with_configuration(self, config: Configuration) -> Builder:
        """The configuration."""
        self._configuration = config
        return self

    def with_built_in_catalog_name(self, built_in_catalog_name: str) -> Builder:
        """Name of the first catalog."""
        self._catalog = built_in_catalog_name
        return self

    def with_built_in_database_name(self, built_in_database_name: str) -> Builder:
        """Name of its first database."""
        self._database = built_in_database_name
        return self

    def build(self) -> EnvironmentSettings:
        """The settings."""
        return EnvironmentSettings(self._is_streaming, self._configuration, self._catalog, self._database)


EnvironmentSettings.Builder = Builder  # type: ignore[attr-defined]
