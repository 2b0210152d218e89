"""The options of `JdbcSink`, with PyFlink's names."""

from __future__ import annotations


class JdbcConnectionOptions:
    """The place of a database; made by `JdbcConnectionOptions.JdbcConnectionOptionsBuilder()`.

    Args:
        url: `jdbc:postgresql://host:port/database`.
        driver_name: ignored, as the URL names the database.
    """

    def __init__(self, url: str, driver_name: str = "", user_name: str = "", password: str = "") -> None:
        self._url, self._driver_name, self._user_name, self._password = url, driver_name, user_name, password

    def get_db_url(self) -> str:
        """Return the URL."""
        return self._url

    def get_driver_name(self) -> str:
        """Return the name of Java's driver, or an empty string."""
        return self._driver_name

    def get_user_name(self) -> str:
        """Return the user, or an empty string."""
        return self._user_name

    def get_password(self) -> str:
        """Return the password, or an empty string."""
        return self._password

    class JdbcConnectionOptionsBuilder:
        """Collects the options of a connection; the URL is required."""

        def __init__(self) -> None:
            self._url = self._driver_name = self._user_name = self._password = ""

        def with_url(self, url: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the URL, `jdbc:postgresql://host:port/database`."""
            self._url = url
            return self

        def with_driver_name(self, driver_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the name of Java's driver, which is ignored: there is no Java."""
            self._driver_name = driver_name
            return self

        def with_user_name(self, user_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the user."""
            self._user_name = user_name
            return self

        def with_password(self, password: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the password of the user."""
            self._password = password
            return self

        def build(self) -> JdbcConnectionOptions:
            """Return the options.

            Raises:
                ValueError: the URL is missing.
            """
            if not self._url:
                raise ValueError("the URL is missing; call with_url('jdbc:postgresql://host:port/database')")
            return JdbcConnectionOptions(self._url, self._driver_name, self._user_name, self._password)


class JdbcExecutionOptions:
    """The size of batches and the number of retries; made by `JdbcExecutionOptions.builder()`.

    >>> JdbcExecutionOptions.defaults().get_batch_size()
    5000

    Args:
        batch_interval_ms: milliseconds after which a batch is written that has fewer records; 0: none is until then.
        batch_size: records of a batch.
        max_retries: of a batch, when the connection is lost or after a deadlock.

    Raises:
        ValueError: a number is too small.
    """

    def __init__(self, batch_interval_ms: int = 0, batch_size: int = 5000, max_retries: int = 3) -> None:
        if batch_interval_ms < 0 or batch_size < 1 or max_retries < 0:
            settings = f"interval {batch_interval_ms} ms, size {batch_size}, retries {max_retries}"
            raise ValueError(f"options of batches are {settings}; expected at least 0, 1 and 0")
        self._batch_interval_ms, self._batch_size, self._max_retries = batch_interval_ms, batch_size, max_retries

    def get_batch_interval_ms(self) -> int:
        """Return the interval in milliseconds."""
        return self._batch_interval_ms

    def get_batch_size(self) -> int:
        """Return the number of records of a batch."""
        return self._batch_size

    def get_max_retries(self) -> int:
        """Return the number of retries."""
        return self._max_retries

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        """Return batches of 5,000 records without an interval, tried again three times."""
        return JdbcExecutionOptions()

    @staticmethod
    def builder() -> JdbcExecutionOptions.Builder:
        """Return a builder with the defaults."""
        return JdbcExecutionOptions.Builder()

    class Builder:
        """Collects the options of batches."""

        def __init__(self) -> None:
            self._batch_interval_ms, self._batch_size, self._max_retries = 0, 5000, 3

        def with_batch_size(self, size: int) -> JdbcExecutionOptions.Builder:
            """Set the number of records of a batch."""
            self._batch_size = size
            return self

        def with_batch_interval_ms(self, interval_ms: int) -> JdbcExecutionOptions.Builder:
            """Set the milliseconds after which a batch is written; 0: when it is full, or before a checkpoint."""
            self._batch_interval_ms = interval_ms
            return self

        def with_max_retries(self, max_retries: int) -> JdbcExecutionOptions.Builder:
            """Set how often a batch is tried again."""
            self._max_retries = max_retries
            return self

        def build(self) -> JdbcExecutionOptions:
            """Return the options.

            Raises:
                ValueError: a number is too small.
            """
            return JdbcExecutionOptions(self._batch_interval_ms, self._batch_size, self._max_retries)


__all__ = ["JdbcConnectionOptions", "JdbcExecutionOptions"]
