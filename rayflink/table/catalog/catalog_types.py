"""The types of catalogs that CREATE CATALOG and `create_catalog` open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..errors import nearest
from .catalog_api import Catalog
from .exceptions import CatalogException
from .jdbc_catalog import JdbcCatalog
from .lake_catalogs import DeltaCatalog, IcebergCatalog
from .memory_catalog import GenericInMemoryCatalog
from .sql_catalog import SqlCatalog

__all__ = ["open_catalog"]

DEFAULT_DATABASE = "default-database"


@dataclass(frozen=True)
class _CatalogType:
    """A type of catalogs.

    Args:
        open: makes a catalog of its name and its options.
        required: options without which there is none.
        optional: further ones; None: any.
    """

    open: Callable[[str, Mapping[str, str]], Catalog]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] | None = ()


def open_catalog(name: str, options: Mapping[str, str]) -> Catalog:
    """Return a catalog, opened by its options.

    >>> open_catalog("scratch", {"type": "generic_in_memory"}).get_default_database()
    'default'

    Args:
        name: of the catalog.
        options: 'type' is generic_in_memory, sql, jdbc, iceberg or delta; the others are those of the type.

    Raises:
        CatalogException: the type or an option is unknown, an option is missing, or the catalog cannot be reached.
    """
    kind = options.get("type")
    if kind is None:
        problem = f"catalog {name!r} has no option 'type'"
        raise CatalogException(problem, f"write WITH ('type' = ...), one of {', '.join(_TYPES)}")
    if kind not in _TYPES:
        instead = _INSTEAD.get(kind, f"the types are {', '.join(_TYPES)}")
        raise CatalogException(f"catalog {name!r} has the unknown type {kind!r}{nearest(kind, _TYPES)}", instead)
    catalog_type = _TYPES[kind]
    if missing := [key for key in catalog_type.required if not options.get(key)]:
        problem = f"catalog {name!r} of type {kind!r} has no option {missing[0]!r}"
        raise CatalogException(problem, f"it needs {', '.join(catalog_type.required)}")
    known = ("type", DEFAULT_DATABASE, *catalog_type.required, *(catalog_type.optional or ()))
    if catalog_type.optional is not None and (unknown := [key for key in options if key not in known]):
        problem = f"catalog {name!r} of type {kind!r} has the unknown option {unknown[0]!r}{nearest(unknown[0], known)}"
        raise CatalogException(problem, f"its options are {', '.join(known)}")
    return catalog_type.open(name, options)


def _database(options: Mapping[str, str], otherwise: str = "default") -> str:
    return options.get(DEFAULT_DATABASE) or otherwise


def _sql(name: str, options: Mapping[str, str]) -> Catalog:
    return SqlCatalog(name, options["url"], _database(options))


def _jdbc(name: str, options: Mapping[str, str]) -> Catalog:
    user, password = options.get("username", ""), options.get("password", "")
    catalog = JdbcCatalog(name, _database(options, "postgres"), user, password, options["base-url"])
    catalog.open()
    return catalog


def _iceberg(name: str, options: Mapping[str, str]) -> Catalog:
    properties = {key: value for key, value in options.items() if key not in ("type", DEFAULT_DATABASE)}
    return IcebergCatalog(name, properties, _database(options))


def _delta(name: str, options: Mapping[str, str]) -> Catalog:
    storage = {key: value for key, value in options.items() if key.startswith(("s3.", "storage."))}
    return DeltaCatalog(name, options["warehouse"], _database(options), storage)


_TYPES = {
    "generic_in_memory": _CatalogType(lambda name, options: GenericInMemoryCatalog(name, _database(options))),
    "sql": _CatalogType(_sql, ("url",)),
    "jdbc": _CatalogType(_jdbc, ("base-url",), ("username", "password")),
    "iceberg": _CatalogType(_iceberg, (), None),
    "delta": _CatalogType(_delta, ("warehouse",), None),
}
_INSTEAD = {
    "hive": "there is no Hive catalog of its own: an Iceberg catalog has 'catalog-type' = 'hive'",
    "paimon": "Paimon's tables are not supported; the lakes are Iceberg and Delta",
}
