"""The options of who is answered by the servers of a cluster, and how; `registry` has them with all others."""

from __future__ import annotations

from .option_declaring import NAME as _NAME
from .option_declaring import NOT_EMPTY as _NOT_EMPTY
from .option_declaring import NOT_NEGATIVE as _NOT_NEGATIVE
from .option_declaring import POSITIVE as _POSITIVE
from .option_declaring import declare as _option
from .option_types import BOOLEAN, INT, LIST, MEMORY, STRING, MemorySize, enum_type
from .option_values import LoopbackRole, TlsVersion

__all__ = [
    "AUDIT_FILE", "AUDIT_FILES", "AUDIT_FILE_SIZE", "CORS_ORIGINS", "FAILED_TOKENS", "LOOPBACK_ROLE", "REST_HOSTS",
    "REST_REQUEST_SIZE", "SSL_CLIENT_CERTIFICATES", "SSL_ENABLED", "SSL_KEYSTORE", "SSL_KEY_PASSWORD", "SSL_PROTOCOL",
    "SSL_TRUSTSTORE", "TOKENS_FILE", "UPLOAD_FOLDER",
]  # fmt: skip

SECURITY = "Security of clusters"
"""The heading of these options."""
TOKENS_FILE = _option(SECURITY, "rest.auth.tokens-file", STRING, None,
                      "File with lines NAME ROLE TOKEN, of mode 600: who may READ, OPERATE or SUBMIT. TOKEN is the "
                      "token, or sha256: and its hash in hex. It is read again when it changes.", test=_NAME)
LOOPBACK_ROLE = _option(SECURITY, "rest.auth.loopback-role", enum_type(LoopbackRole), LoopbackRole.OPERATE,
                        "Role of those who bring no token, where only this machine reaches the server; elsewhere they "
                        "have none.")
FAILED_TOKENS = _option(SECURITY, "rest.auth.max-failed-tokens", INT, 10,
                        "Different wrong tokens of one address in a minute, after which it has to wait.",
                        test=_POSITIVE)
REST_HOSTS = _option(SECURITY, "rest.allowed-hosts", LIST, None,
                     "Names by which clients may reach the server, such as that of a proxy. Without this option, "
                     "requests with a token may use any name, and others those of this machine.")
CORS_ORIGINS = _option(SECURITY, "rest.cors.allowed-origins", LIST, None,
                       "Origins, as in https://example.org, whose pages browsers may let read answers, and send "
                       "requests with a token.")
REST_REQUEST_SIZE = _option(SECURITY, "rest.request.max-size", MEMORY, MemorySize(1 << 20),
                            "Size of a request's body that is no upload; a larger one is refused.", test=_NOT_EMPTY)
UPLOAD_FOLDER = _option(SECURITY, "web.upload.dir", STRING, None,
                        "Folder for uploads until they are read. Default: that for temporary files.", test=_NAME)
AUDIT_FILE = _option(SECURITY, "rest.audit.file", STRING, None,
                     "File that gets a line of JSON for each operation, beside the log rayflink.audit.", test=_NAME)
AUDIT_FILE_SIZE = _option(SECURITY, "rest.audit.max-size", MEMORY, MemorySize(64 << 20),
                          "Size of that file, after which another one begins.", test=_NOT_EMPTY)
AUDIT_FILES = _option(SECURITY, "rest.audit.max-files", INT, 10, "Number of older files that stay beside it.",
                      test=_NOT_NEGATIVE)
SSL_ENABLED = _option(SECURITY, "security.ssl.rest.enabled", BOOLEAN, False,
                      "Encrypt the connections to the servers of a cluster.")
SSL_KEYSTORE = _option(SECURITY, "security.ssl.rest.keystore", STRING, None,
                       "File in PEM with the server's certificate, those that signed it, and its key. A store of Java "
                       "is converted by `keytool -importkeystore` to PKCS12, and that by `openssl pkcs12 -out`.",
                       ("security.ssl.keystore",), test=_NAME)
SSL_KEY_PASSWORD = _option(SECURITY, "security.ssl.rest.key-password", STRING, None,
                           "Password of the key in that file.",
                           ("security.ssl.rest.keystore-password", "security.ssl.key-password"))
SSL_CLIENT_CERTIFICATES = _option(SECURITY, "security.ssl.rest.authentication-enabled", BOOLEAN, False,
                                  "Demand a certificate of every client, signed by one of "
                                  "security.ssl.rest.truststore.")
SSL_TRUSTSTORE = _option(SECURITY, "security.ssl.rest.truststore", STRING, None,
                         "File in PEM with the certificates of those who sign.", ("security.ssl.truststore",),
                         test=_NAME)
SSL_PROTOCOL = _option(SECURITY, "security.ssl.protocol", enum_type(TlsVersion), TlsVersion.TLS_1_2,
                       "Oldest version of TLS that is spoken.")
