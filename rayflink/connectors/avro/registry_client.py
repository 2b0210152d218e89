"""A client of a schema registry that speaks Confluent's HTTP API.

Source: https://docs.confluent.io/platform/current/schema-registry/develop/api.html
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit, urlunsplit

from rayflink.common.connector_base.malformed_records import DecoderUnavailable
from rayflink.common.errors import ConnectorError, described, shorten

from .avro_schema import AvroSchema, BadAvroSchema, Json
from .schema_references import with_references

if TYPE_CHECKING:
    from types import ModuleType

_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_RETRIED = frozenset((408, 429, 500, 502, 503, 504))
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0
_UNKNOWN_FOR_S = 5.0
"""For how long an id that the registry does not have is not asked for again."""


class RegistryError(ConnectorError):
    """A schema registry refuses a request."""


class RegistryUnavailable(RegistryError, DecoderUnavailable):
    """A schema registry does not answer, or not to this client."""


class IncompatibleSchema(RegistryError):
    """A schema cannot be registered, as readers of the versions before could not read what it writes, or vice versa."""


class UnknownSchema(RegistryError, ValueError):
    """The registry does not have a schema, or it is none of Avro."""


@dataclass(frozen=True)
class RegistryOptions:
    """The address of a registry, and the way to it; secrets are in no repr.

    >>> RegistryOptions(("https://me:secret@registry:8081",))
    RegistryOptions(places=('https://registry:8081',))

    Args:
        urls: of one registry; the next one is asked where one does not answer. User and password may be in them.
        user_info: user and password, "user:password"; "": those in the URL.
        bearer_token: a token instead of these.
        ca_file: certificates of authorities in PEM that may sign the registry's; "": those of the system.
        certificate_file: this client's certificate in PEM.
        key_file: its key in PEM; "": it is in the file of the certificate.
        key_password: of the key.
        connect_timeout_s: for a connection.
        read_timeout_s: for an answer.
        retries: of a request that no URL answered.
        registers: a schema that is written is registered; False: it must be registered already.

    Raises:
        RegistryError: there is no URL, one is none, or a file is in a format of Java's.
    """

    urls: tuple[str, ...] = field(repr=False)
    user_info: str = field(default="", repr=False)
    bearer_token: str = field(default="", repr=False)
    ca_file: str = field(default="", repr=False)
    certificate_file: str = field(default="", repr=False)
    key_file: str = field(default="", repr=False)
    key_password: str = field(default="", repr=False)
    connect_timeout_s: float = field(default=5.0, repr=False)
    read_timeout_s: float = field(default=10.0, repr=False)
    retries: int = field(default=3, repr=False)
    registers: bool = field(default=True, repr=False)
    places: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        if not self.urls:
            raise RegistryError("there is no URL of a schema registry", "give one, such as http://registry:8081")
        for url in self.urls:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                problem = f"{_without_secrets(url)!r} is no URL of a schema registry"
                raise RegistryError(problem, "write it as http://host:port or https://host:port")
        for path in (self.ca_file, self.certificate_file):
            if path.lower().endswith((".jks", ".p12", ".pfx")):
                remedy = "convert it to PEM, for example with: openssl pkcs12 -in store.p12 -out store.pem"
                raise RegistryError(f"{path!r} is a key store of Java's, a file in PEM is wanted", remedy)
        object.__setattr__(self, "places", tuple(map(_without_secrets, self.urls)))


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


class SchemaRegistry:
    """A client; schemas are fetched once. It is pickled without its connections.

    Args:
        options: where the registry is.
        sleep: waits some seconds; tests pass another one.
    """

    def __init__(self, options: RegistryOptions, sleep: Callable[[float], None] = time.sleep) -> None:
        self.options = options
        self._sleep = sleep
        self._schemas: dict[int, AvroSchema] = {}
        self._ids: dict[tuple[str, str], int] = {}
        self._unknown: dict[int, tuple[float, UnknownSchema]] = {}
        self._pool: Json = None

    def __reduce__(self) -> tuple[object, ...]:
        return SchemaRegistry, (self.options,)

    def schema_of(self, schema_id: int) -> AvroSchema:
        """Return the schema of an id.

        Raises:
            UnknownSchema: there is none, or it is none of Avro.
            RegistryUnavailable: the registry does not answer.
        """
        if schema_id not in self._schemas:
            until, error = self._unknown.get(schema_id, (0.0, None))
            if error is not None and time.monotonic() < until:
                raise error
            try:
                self._schemas[schema_id] = self._fetched(schema_id)
            except UnknownSchema as unknown:
                self._unknown[schema_id] = time.monotonic() + _UNKNOWN_FOR_S, unknown
                raise
        return self._schemas[schema_id]

    def id_to_write(self, subject: str, schema: AvroSchema) -> int:
        """Return the id under which a schema is registered for a subject; it is registered where that is allowed.

        Raises:
            IncompatibleSchema: it is not compatible with the versions that are registered.
            UnknownSchema: it is not registered, and must not be.
            RegistryUnavailable: the registry does not answer.
        """
        key = subject, str(schema)
        if key not in self._ids:
            path = f"/subjects/{quote(subject, safe='')}" + ("/versions" if self.options.registers else "")
            try:
                self._ids[key] = int(self._request("POST", path, {"schema": str(schema)})["id"])
            except _Refused as refusal:
                raise self._refused_write(subject, refusal) from None
        return self._ids[key]

    def latest(self, subject: str) -> tuple[int, AvroSchema]:
        """Return the id of the last version of a subject, and its schema.

        Raises:
            UnknownSchema: there is no such subject, or its schema is none of Avro.
            RegistryUnavailable: the registry does not answer.
        """
        try:
            answer = self._request("GET", f"/subjects/{quote(subject, safe='')}/versions/latest")
        except _Refused as refusal:
            problem = f"{self._place} has no subject {subject!r} ({refusal})"
            raise UnknownSchema(problem, "register a schema, or correct the name of the subject") from None
        return int(answer["id"]), self._parsed(answer, f"the last version of {subject!r}")

    def _refused_write(self, subject: str, refusal: _Refused) -> RegistryError:
        if refusal.status == 409:
            remedy = "give new fields a default, or change the compatibility of the subject"
            return IncompatibleSchema(f"{self._place} refuses the schema of {subject!r}: {refusal}", remedy)
        if refusal.status == 404:
            problem = f"the schema of {subject!r} is not registered at {self._place} ({refusal})"
            return UnknownSchema(problem, "register it, or allow it to be registered with auto.register.schemas")
        return RegistryError(f"{self._place} refuses the schema of {subject!r}: {refusal}", "correct the schema")

    def _fetched(self, schema_id: int) -> AvroSchema:
        try:
            answer = self._request("GET", f"/schemas/ids/{schema_id}")
        except _Refused as refusal:
            remedy = "check that the URL is that of the registry with which the message was written"
            raise UnknownSchema(f"{self._place} has no schema with id {schema_id} ({refusal})", remedy) from None
        return self._parsed(answer, f"schema {schema_id}")

    def _parsed(self, answer: Mapping[str, Json], name: str) -> AvroSchema:
        kind = answer.get("schemaType") or "AVRO"
        if kind != "AVRO":
            remedy = f"read it with a format for {kind}"
            raise UnknownSchema(f"{name} of {self._place} is of type {kind}, one of Avro is wanted", remedy)
        try:
            return AvroSchema(with_references(answer, self._referenced))
        except BadAvroSchema as error:
            raise UnknownSchema(f"{name} of {self._place}: {error.problem}", error.remedy) from error

    def _referenced(self, subject: str, version: int) -> Mapping[str, Json]:
        try:
            answer: Mapping[str, Json] = self._request("GET", f"/subjects/{quote(subject, safe='')}/versions/{version}")
        except _Refused as refusal:
            problem = f"a schema refers to version {version} of {subject!r}, which {self._place} does not have"
            raise UnknownSchema(f"{problem} ({refusal})", "register it again") from None
        return answer

    @property
    def _place(self) -> str:
        return f"the schema registry at {', '.join(self.options.places)}"

    def _request(self, method: str, path: str, body: Json = None) -> Mapping[str, Json]:
        """Return the answer to a request.

        Raises:
            _Refused: the registry refuses it.
            RegistryUnavailable: it does not answer, or not to this client.
        """
        failure = ""
        for number in range(self.options.retries + 1):
            if number:
                self._sleep(min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (number - 1)))
            for url in self.options.urls:
                answer, failure = self._try(method, url, path, body)
                if answer is not None:
                    return answer
        remedy = "start it, or correct its URL; the job goes on from its last checkpoint"
        tries = f"in {self.options.retries + 1} tries"
        raise RegistryUnavailable(f"{self._place} does not answer {tries} ({failure})", remedy)

    def _try(self, method: str, url: str, path: str, body: Json) -> tuple[Mapping[str, Json] | None, str]:
        """Return an answer, or None with the reason why there is none."""
        options = self.options
        urllib3 = _urllib3()
        if self._pool is None:
            self._pool = _pool(urllib3, options)
        timeout = urllib3.Timeout(connect=options.connect_timeout_s, read=options.read_timeout_s)
        try:
            response = self._pool.request(
                method, _without_secrets(url) + path, body=None if body is None else json.dumps(body).encode(),
                headers=_headers(urllib3, options, url), timeout=timeout, retries=False, redirect=False,
            )  # fmt: skip
        except (urllib3.exceptions.HTTPError, OSError) as error:
            return None, f"{_without_secrets(url)}: {described(error)}"
        if response.status in (401, 403):
            remedy = "check the user, the password or the token, and what the user may do"
            raise RegistryUnavailable(f"{_without_secrets(url)} answers HTTP {response.status}, no access", remedy)
        if response.status in _RETRIED:
            return None, f"{_without_secrets(url)}: HTTP {response.status}"
        try:
            answer = json.loads(response.data)
            if not isinstance(answer, dict):
                raise ValueError("no object")
        except ValueError:
            shown = shorten(response.data.decode("utf-8", "replace"), 120)
            remedy = "check that the URL is that of a schema registry"
            raise RegistryUnavailable(
                f"{_without_secrets(url)} answers HTTP {response.status} with {shown}, JSON is wanted", remedy
            ) from None
        if response.status >= 300:
            raise _Refused(response.status, f"{answer.get('error_code', response.status)}: {answer.get('message', '')}")
        return answer, ""


class _Refused(Exception):
    """An answer of the registry that says no."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def _urllib3() -> ModuleType:
    try:
        import urllib3
    except ImportError as error:
        remedy = "pip install 'rayflink[schema-registry]' on every node"
        raise RegistryUnavailable("a schema registry needs urllib3, which is not installed", remedy) from error
    return urllib3


def _pool(urllib3: ModuleType, options: RegistryOptions) -> Json:
    settings: dict[str, Json] = {"maxsize": 2}
    if any(url.startswith("https:") for url in options.urls):
        settings |= {
            "cert_reqs": "CERT_REQUIRED", "ca_certs": options.ca_file or None,
            "cert_file": options.certificate_file or None, "key_file": options.key_file or None,
            "key_password": options.key_password or None,
        }  # fmt: skip
    return urllib3.PoolManager(**settings)


def _headers(urllib3: ModuleType, options: RegistryOptions, url: str) -> dict[str, str]:
    headers = {"Accept": f"{_MEDIA_TYPE}, application/json", "Content-Type": _MEDIA_TYPE}
    user_info = options.user_info or urlsplit(url).netloc.rpartition("@")[0]
    if options.bearer_token:
        headers["Authorization"] = f"Bearer {options.bearer_token}"
    elif user_info:
        headers |= urllib3.make_headers(basic_auth=user_info)
    return headers


__all__ = [
    "IncompatibleSchema", "RegistryError", "RegistryOptions", "RegistryUnavailable", "SchemaRegistry", "UnknownSchema",
]  # fmt: skip
