"""`rest-lookup`: rows that an HTTP service finds by key, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import numpy

from rayflink.common.functions.function_classes import RuntimeContext
from rayflink.common.options.option_types import DURATION
from rayflink.common.records.batches import ArrowBatch
from rayflink.common.time import Duration
from rayflink.connectors.http.http_client import HttpError, library
from rayflink.connectors.http.http_lookup import HttpQuestion, HttpQuestions

from ...errors import SqlError, nearest
from ...plan.logical import Attribute, Schema
from ...runtime.lookups.lookup_function import LookupFailed, LookupFunction, LookupRows, TableLookup
from ..contract import Connected, Connector, Option, OptionValues, TableSource
from ..formats import Json, column_named, refuse_maps
from ..messages.json_messages import JsonDecoder, JsonEncoder
from ..option_values import one_of, typed, whole_from
from .function_tables import only_looked_up
from .lookup_options import PARTIAL_OPTIONS, LookupOptions, check_lookup_options, lookup_options

if TYPE_CHECKING:
    import pyarrow

    from rayflink.common.watermarks import WatermarkStrategy
    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.datastream.streams.stream import DataStream

_HEADER, _JSON = "lookup.http-headers.", "json."


@dataclass(frozen=True)
class RestSettings:
    """The way in which a service is asked.

    Args:
        question: its address.
        is_batch: keys are the body of a POST; else each is in the URL of a GET.
        most_keys: of a body.
        requests: at once.
        json: options of the format, parsed.
    """

    question: HttpQuestion
    is_batch: bool
    most_keys: int
    requests: int
    json: tuple[tuple[str, object], ...]


class RestLookupFunction(LookupFunction):
    """Asks a service for rows as JSON objects.

    Args:
        settings: how it is asked.
        columns: of the rows that are asked for.
        keys: the key columns.
    """

    is_async = True

    def __init__(self, settings: RestSettings, columns: Schema, keys: Schema) -> None:
        self._settings, self._columns, self._keys = settings, columns, keys
        self._questions: HttpQuestions | None = None
        self._pool: ThreadPoolExecutor | None = None

    def open(self, context: RuntimeContext) -> None:
        requests = self._settings.requests
        self._questions = HttpQuestions(self._settings.question, requests)
        self._pool = ThreadPoolExecutor(requests, thread_name_prefix="rayflink-http-lookup")

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        if self._questions is not None:
            self._questions.close()

    def look_up(self, keys: pyarrow.RecordBatch) -> LookupRows:
        assert self._questions is not None and self._pool is not None, "the function was not opened"
        objects = JsonEncoder(Json().columns(self._keys, dict(self._settings.json))).messages_of(keys)
        if not self._settings.is_batch:
            strings = [column.cast("string").to_pylist() for column in keys.columns]
            asked = [dict(zip(keys.schema.names, values, strict=True)) for values in zip(*strings, strict=True)]
            return self._decoded(list(self._pool.map(self._questions.get, asked)), keys)
        size = self._settings.most_keys
        parts = [objects[first : first + size] for first in range(0, len(objects), size)]
        bodies = [b"[" + b",".join(part for part in listed if part is not None) + b"]" for listed in parts]
        return self._decoded(list(self._pool.map(self._questions.post, bodies)), None)

    def _decoded(self, answers: Sequence[bytes | None], keys: pyarrow.RecordBatch | None) -> LookupRows:
        """Return the rows of answers.

        Args:
            keys: one for each answer; None: the columns of the rows say whose they are.
        """
        import pyarrow.compute

        options = dict(self._settings.json)
        names = [column.name for column in self._columns]
        schema = (*self._columns, *(key for key in self._keys if key.name not in names))
        iso = options["timestamp-format.standard"] == "ISO-8601"
        settings = schema, iso, bool(options["fail-on-missing-field"]), bool(options["ignore-parse-errors"])
        messages = [None if (answer or b"").strip() in (b"", b"null") else answer for answer in answers]
        try:
            batch, numbers = JsonDecoder(*settings).deserialize_batch(cast("list[bytes]", messages))
        except ValueError as error:
            problem = f"{self._settings.question.place} answered what is no JSON of the table: {error}"
            raise LookupFailed(problem, "let it answer an object, an array of objects, or null") from error
        assert isinstance(batch, ArrowBatch)
        if keys is None:
            return LookupRows(batch.data)
        places = numpy.arange(len(batch)) if numbers is None else numpy.array(numbers, numpy.int64)
        is_of_key = numpy.ones(len(places), dtype=numpy.bool_)
        for name, column in zip(keys.schema.names, keys.columns, strict=True):  # a service may ignore a parameter
            equal = pyarrow.compute.equal(batch.data.column(name), column.take(pyarrow.array(places)))
            is_of_key &= equal.fill_null(True).to_numpy(zero_copy_only=False)
        return LookupRows(batch.data.filter(pyarrow.array(is_of_key)), places[is_of_key])


@dataclass(frozen=True)
class RestTable(TableSource):
    """A table of a service.

    Args:
        schema: all columns.
        names: those that are asked for.
        settings: how it is asked.
        lookups: cache and repetitions.
    """

    schema: Schema
    names: tuple[str, ...]
    settings: RestSettings = field(repr=False)
    lookups: LookupOptions = LookupOptions()

    def projected(self, names: Sequence[str]) -> TableSource:
        return replace(self, names=tuple(names))

    def pushed(self) -> tuple[str, ...]:
        whole = list(self.names) == [column.name for column in self.schema]
        return () if whole else (f"project=[{', '.join(self.names)}]",)

    def lookup(self, keys: Sequence[str]) -> TableLookup:
        missing = [name for name in self.settings.question.names if name not in keys]
        if missing:
            problem = f"the URL of {self.settings.question.place} has {{{missing[0]}}}, which is no key of the join"
            raise SqlError(problem, f"let the column {missing[0]!r} be equal to a value in ON")
        columns = tuple(column_named(self.schema, name) for name in self.names)
        # a key is given, so that the service may leave it out
        key_columns = tuple(_of_key(column_named(self.schema, name)) for name in keys)
        function = RestLookupFunction(self.settings, columns, key_columns)
        return TableLookup(function, self.lookups.limits, self.lookups.max_retries)

    def stream(self, env: StreamExecutionEnvironment, strategy: WatermarkStrategy | None, name: str) -> DataStream:
        raise only_looked_up(name)


def _of_key(column: Attribute) -> Attribute:
    if column.type.items or column.type.fields or column.type.is_bytes:
        problem = f"the key {column.name!r} of a lookup by HTTP is {column.type}"
        raise SqlError(problem, "take numbers, strings, dates or times")
    return column


class RestLookup(Connector):
    """Tables of HTTP services, which are looked up by key."""

    name = "rest-lookup"
    options: Mapping[str, Option] = {
        "url": Option(str, required=True, about="{column} stands for a value of the key"),
        "lookup-method": Option(one_of("GET", "POST"), "GET"),
        "format": Option(one_of("json"), "json"),
        "lookup.request.timeout": Option(typed(DURATION), Duration.of_seconds(30)),
        "lookup.request.max-keys": Option(whole_from(1), 1_000),
        "lookup.request.parallelism": Option(whole_from(1), 8),
        "lookup.cache": Option(one_of("NONE", "PARTIAL"), "NONE"),
        **PARTIAL_OPTIONS,
    }
    prefixes = (_HEADER, _JSON)

    def parsed(self, table: str, options: Mapping[str, str]) -> tuple[OptionValues, dict[str, str]]:
        values, passed = super().parsed(table, options)
        check_lookup_options(table, values)
        return values, passed

    def check(self, table: Connected) -> None:
        refuse_maps(table.schema)
        settings = _settings(table)
        names = [column.name for column in table.schema]
        for name in settings.question.names:
            if name not in names:
                problem = f"the URL of {table.table} has {{{name}}}, which is no column{nearest(name, names)}"
                raise SqlError(problem, f"the columns are {', '.join(names)}")

    def source(self, table: Connected) -> TableSource:
        names = tuple(column.name for column in table.schema)
        return RestTable(table.schema, names, _settings(table), lookup_options(table.options))


def _settings(table: Connected) -> RestSettings:
    """Return how the service of a table is asked.

    Raises:
        SqlError: its URL is none, or an option of the format is unknown.
    """
    options = table.options
    headers = {key.removeprefix(_HEADER): text for key, text in table.formats.items() if key.startswith(_HEADER)}
    json = {key: option.default for key, option in Json.options.items()}
    for key, text in table.formats.items():
        name = key.removeprefix(_JSON)
        if key.startswith(_JSON) and name not in json:
            problem = f"{table.table} has an option {key!r}, which 'json' does not know{nearest(name, json)}"
            raise SqlError(problem, f"its options are {', '.join(json)}")
        if key.startswith(_JSON):
            try:
                json[name] = Json.options[name].parse(text)
            except ValueError as error:
                raise SqlError(f"option {key!r} of {table.table} is {text!r}", f"expected {error}") from error
    try:
        library()
        timeout_s = options["lookup.request.timeout"].to_millis() / 1000
        question = HttpQuestion(options["url"], tuple(headers.items()), timeout_s)
    except HttpError as error:
        raise SqlError(f"{table.table}: {error.problem}", error.remedy) from error
    return RestSettings(
        question, options["lookup-method"] == "POST", options["lookup.request.max-keys"],
        options["lookup.request.parallelism"], tuple(json.items()),
    )  # fmt: skip


__all__ = ["RestLookup", "RestLookupFunction", "RestTable"]
