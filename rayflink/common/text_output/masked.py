"""Masks secrets in what people read: values of options, and lines of logs.

Source: apache/flink GlobalConfiguration.isSensitive.
"""

from __future__ import annotations

import re

__all__ = ["masked", "shown_value"]

MASK = "******"
_SECRETS = (
    "password", "secret", "fs.azure.account.key", "apikey", "api-key", "auth-params", "service-key", "token",
    "basic-auth", "jaas.config", "http-headers", "passphrase", "key.pem", "oauthbearer.config", "kinit.cmd",
)  # fmt: skip
_PASSWORD_IN_URL = re.compile(r"(://[^/@:\s]*:)[^/@\s]*@")
_SECRET_IN_QUERY = re.compile(r"(?i)([?&;][^=&;?\s]*(?:password|secret|token|passphrase)[^=&;\s]*=)[^&;\s]+")
_SECRET_IN_TEXT = re.compile(
    r"(?i)((?:password|passphrase|secret|token|api-?key)[\w.-]*(?:\s*=\s*|[\"']\s*:\s*)[\"']?)[^\s\"',;&)\]}]+"
)
_BEARER = re.compile(r"(?i)(\bbearer\s+)[\w.~+/=-]{8,}")


def shown_value(key: str, value: str) -> str:
    """Return the value of an option as people may see it: masked where its key says that it is a secret.

    The password within a URL is masked, too, and parameters of its query that are secrets.

    >>> shown_value("s3.secret-key", "abc"), shown_value("s3.region", "us-east-1")
    ('******', 'us-east-1')
    >>> shown_value("url", "http://me:abc@host:80")
    'http://me:******@host:80'
    >>> shown_value("url", "jdbc:postgresql://host/db?user=me&password=abc&ssl=true")
    'jdbc:postgresql://host/db?user=me&password=******&ssl=true'
    """
    if any(word in key.lower() for word in _SECRETS):
        return MASK
    if "=" in value:
        value = _SECRET_IN_QUERY.sub(rf"\1{MASK}", value)
    return _PASSWORD_IN_URL.sub(rf"\1{MASK}@", value) if "@" in value else value


def masked(line: str) -> str:
    """Return a line of a log without the secrets in it: passwords of URLs, and what follows the name of a secret.

    >>> masked("reading postgres://me:abc@db/flights with api-key=k1, sasl.password = 'p2'")
    "reading postgres://me:******@db/flights with api-key=******, sasl.password = '******'"
    >>> masked("Authorization: Bearer 0123456789abcdef"), masked("the token is missing; send token")
    ('Authorization: Bearer ******', 'the token is missing; send token')
    """
    if "@" in line:
        line = _PASSWORD_IN_URL.sub(rf"\1{MASK}@", line)
    if "=" in line or ":" in line:
        line = _SECRET_IN_TEXT.sub(rf"\1{MASK}", line)
    return _BEARER.sub(rf"\1{MASK}", line) if "earer" in line or "EARER" in line else line
