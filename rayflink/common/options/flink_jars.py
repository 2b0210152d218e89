"""The jars that a program of PyFlink names for connectors, formats and file systems, which need none here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_NAMES: Final = re.compile(
    r"flink-(sql-)?(connector-.+|(avro|csv|json|orc|parquet|protobuf)([-_].+)?|(s3|azure|gs|oss)-fs.*)"
    r"|kafka-clients-.+|postgresql-.+|mysql-connector-.+|(delta|iceberg)-flink.*",
    re.IGNORECASE,
)


def are_jars_of_flink(jars: Iterable[str]) -> bool:
    """Return whether all jars are of connectors, formats, file systems or their drivers, by the names of the files.

    >>> are_jars_of_flink(["file:///lib/flink-sql-connector-kafka-3.4.0-1.20.jar", "/lib/flink-sql-avro-1.20.jar"])
    True
    >>> are_jars_of_flink(["file:///lib/functions.jar"])
    False
    """
    return all(_NAMES.fullmatch(jar.rstrip("/").rpartition("/")[2].removesuffix(".jar")) for jar in jars)


JARS_OF_FLINK: Final = (
    are_jars_of_flink,
    "jars of Flink's connectors, formats, file systems and their drivers alone, as there is no JVM for others",
)
"""A test of the values of an option, and what it wants."""

__all__ = ["JARS_OF_FLINK", "are_jars_of_flink"]
