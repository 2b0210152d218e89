"""The options of the SQL gateway; `registry` has them with all others."""

from __future__ import annotations

from .option_declaring import LONGER_THAN_ZERO as _LONGER_THAN_ZERO
from .option_declaring import NAME as _NAME
from .option_declaring import NO_NEGATIVE_TIME as _NO_NEGATIVE_TIME
from .option_declaring import NOT_EMPTY as _NOT_EMPTY
from .option_declaring import POSITIVE as _POSITIVE
from .option_declaring import declare as _option
from .option_declaring import millis as _ms
from .option_types import DURATION, INT, MEMORY, STRING, MemorySize

GATEWAY = "SQL gateway"
"""The heading of these options."""
GATEWAY_ADDRESS = _option(GATEWAY, "sql-gateway.endpoint.rest.address", STRING, "127.0.0.1",
                          "Address on which the SQL gateway listens; one that other machines reach needs "
                          "sql-gateway.token.", ("sql-gateway.endpoint.rest.bind-address",), test=_NAME)
GATEWAY_PORT = _option(GATEWAY, "sql-gateway.endpoint.rest.port", INT, 8083, "Its port; 0: a free one.",
                       test=(lambda value: 0 <= value <= 65535, "a port in [0, 65535]"))
GATEWAY_TOKEN = _option(GATEWAY, "sql-gateway.token", STRING, None,
                        "Token that requests have to bring as `Authorization: Bearer ...`.", test=_NAME)
GATEWAY_CERTIFICATE = _option(GATEWAY, "sql-gateway.tls.certificate", STRING, None,
                              "File of its TLS certificate with those that signed it, in PEM; with "
                              "sql-gateway.tls.key.")
GATEWAY_KEY = _option(GATEWAY, "sql-gateway.tls.key", STRING, None, "File of the key of that certificate, in PEM.")
GATEWAY_SESSIONS = _option(GATEWAY, "sql-gateway.session.max-num", INT, 128,
                           "Sessions at a time; the next one is refused.", test=_POSITIVE)
GATEWAY_IDLE_TIMEOUT = _option(GATEWAY, "sql-gateway.session.idle-timeout", DURATION, _ms(600_000),
                               "Time without a request or heartbeat after which a session is closed; 0: never.",
                               test=_NO_NEGATIVE_TIME)
GATEWAY_CHECK_INTERVAL = _option(GATEWAY, "sql-gateway.session.check-interval", DURATION, _ms(60_000),
                                 "Time between two looks for such sessions.", test=_LONGER_THAN_ZERO)
GATEWAY_OPERATIONS = _option(GATEWAY, "sql-gateway.session.max-operations", INT, 256,
                             "Statements of a session that are remembered until they are closed; beyond that the "
                             "oldest whose rows were all fetched is forgotten, or the next statement is refused.",
                             test=_POSITIVE)
GATEWAY_RESULT_ROWS = _option(GATEWAY, "sql-gateway.result.max-rows", INT, 5_000,
                              "Rows of a query that wait to be fetched; its job waits while there are more.",
                              test=_POSITIVE)
GATEWAY_ANSWER_SIZE = _option(GATEWAY, "sql-gateway.result.max-size", MEMORY, MemorySize(8 << 20),
                              "Size of the rows in an answer, from which on the others come with the next one.",
                              test=_NOT_EMPTY)
GATEWAY_REQUEST_SIZE = _option(GATEWAY, "sql-gateway.request.max-size", MEMORY, MemorySize(1 << 20),
                               "Size of a request's body; a larger one is refused.", test=_NOT_EMPTY)
GATEWAY_CONNECTIONS = _option(GATEWAY, "sql-gateway.connections.max-num", INT, 512,
                              "Connections and requests at a time; the next one is refused.", test=_POSITIVE)
