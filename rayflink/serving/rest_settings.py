"""The settings of the servers of a cluster, from the options that they share."""

from __future__ import annotations

from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.common.options import registry as options

from .audit_log import AuditSettings
from .json_requests import Role
from .server_settings import AccessSettings, ServerSettings, TlsSettings

__all__ = ["rest_settings"]


def rest_settings(configuration: Configuration, host: str, port: int, token: str | None) -> ServerSettings:
    """Return the settings of a server of a cluster.

    >>> rest_settings(Configuration(), "127.0.0.1", 8081, "abc").guest_role.name
    'OPERATE'

    Args:
        configuration: with all options.
        host: the address to listen on.
        port: 0: a free one.
        token: of the role SUBMIT, beside those of rest.auth.tokens-file; None: none.

    Raises:
        ConfigError: an option is wrong, or they do not fit each other.
    """
    get = configuration.get
    hosts, origins = get(options.REST_HOSTS) or [], get(options.CORS_ORIGINS) or []
    role = Role[get(options.LOOPBACK_ROLE).name]
    access = AccessSettings(get(options.TOKENS_FILE), role, hosts, origins, get(options.FAILED_TOKENS))
    audit = AuditSettings(get(options.AUDIT_FILE), get(options.AUDIT_FILE_SIZE).bytes, get(options.AUDIT_FILES))
    return ServerSettings(
        host, port, token, tls_settings(configuration), get(options.REST_REQUEST_SIZE).bytes,
        most_upload_bytes=get(options.REST_UPLOAD_SIZE).bytes, upload_folder=get(options.UPLOAD_FOLDER),
        access=access, audit=audit,
    )  # fmt: skip


def tls_settings(configuration: Configuration) -> TlsSettings | None:
    """Return the encryption that the options say; None: none.

    Raises:
        ConfigError: they do not fit each other.
    """
    get = configuration.get
    certificate, key = get(options.REST_CERTIFICATE), get(options.REST_KEY)
    demanded, authorities = get(options.SSL_CLIENT_CERTIFICATES), get(options.SSL_TRUSTSTORE)
    if demanded and authorities is None:
        remedy = "name the file with the certificates of those who sign"
        raise ConfigError(options.SSL_TRUSTSTORE.key, "nothing", "a file, with client certificates", remedy)
    if get(options.SSL_ENABLED):
        certificate = certificate or get(options.SSL_KEYSTORE)
        key = key or certificate
        if certificate is None or key is None:
            remedy = "name the file with the certificate and the key"
            raise ConfigError(options.SSL_KEYSTORE.key, "nothing", f"a file, with {options.SSL_ENABLED.key}", remedy)
    elif demanded:
        remedy = f"set {options.SSL_ENABLED.key}: true"
        raise ConfigError(options.SSL_CLIENT_CERTIFICATES.key, "true", "TLS with client certificates", remedy)
    elif (certificate is None) != (key is None):
        missing = options.REST_KEY.key if key is None else options.REST_CERTIFICATE.key
        raise ConfigError(missing, "nothing", "a file beside the other of the two", "set both, or none")
    if certificate is None or key is None:
        return None
    least, password = get(options.SSL_PROTOCOL).value, get(options.SSL_KEY_PASSWORD)
    return TlsSettings(certificate, key, password, authorities if demanded else None, least)
