"""The options of session clusters; `registry` has them with all others."""

from __future__ import annotations

from .option_declaring import LONGER_THAN_ZERO as _LONGER_THAN_ZERO
from .option_declaring import NAME as _NAME
from .option_declaring import NOT_EMPTY as _NOT_EMPTY
from .option_declaring import NOT_NEGATIVE as _NOT_NEGATIVE
from .option_declaring import POSITIVE as _POSITIVE
from .option_declaring import declare as _option
from .option_declaring import millis as _ms
from .option_types import DURATION, INT, MEMORY, STRING, MemorySize

__all__ = [
    "CLIENT_TIMEOUT", "CLUSTER_ID", "JOB_STORE_CAPACITY", "JOB_STORE_TIME", "REST_ADDRESS", "REST_ATTEMPTS",
    "REST_BIND_ADDRESS", "REST_CERTIFICATE", "REST_CONNECTIONS", "REST_CONNECT_TIMEOUT", "REST_KEY", "REST_PORT",
    "REST_RETRY_DELAY", "REST_TOKEN", "REST_UPLOAD_SIZE", "RESCALE_HISTORY",
    "WEB_REFRESH_INTERVAL",
]  # fmt: skip

CLUSTER = "Session cluster"
"""The heading of these options."""
_PORT = (lambda value: 0 <= value <= 65535, "a port in [0, 65535]")
REST_ADDRESS = _option(CLUSTER, "rest.address", STRING, None,
                       "Host of the dispatcher to which clients send jobs, with rest.port; or its URL, such as "
                       "https://flink.example.org. Default: the cluster that was started on this machine.", test=_NAME)
REST_PORT = _option(CLUSTER, "rest.port", INT, 8081, "Port of the dispatcher; 0: a free one.", test=_PORT)
REST_BIND_ADDRESS = _option(CLUSTER, "rest.bind-address", STRING, "127.0.0.1",
                            "Address on which the dispatcher listens; with one that other machines reach, every "
                            "request needs a token.", test=_NAME)
REST_TOKEN = _option(CLUSTER, "rest.token", STRING, None,
                     "Token that clients send. Default: that of the cluster that was started on this machine.",
                     test=_NAME)
REST_CERTIFICATE = _option(CLUSTER, "rest.tls.certificate", STRING, None,
                           "File of the dispatcher's TLS certificate, in PEM; with rest.tls.key. Clients trust it, "
                           "too.")
REST_KEY = _option(CLUSTER, "rest.tls.key", STRING, None, "File of the key of that certificate, in PEM.")
REST_UPLOAD_SIZE = _option(CLUSTER, "rest.server.max-content-length", MEMORY, MemorySize(256 << 20),
                           "Size of a request's body, such as a program with its modules; a larger one is refused.",
                           test=_NOT_EMPTY)
REST_CONNECTIONS = _option(CLUSTER, "rest.server.max-connections", INT, 512,
                           "Connections and requests at a time; the next one is refused.", test=_POSITIVE)
RESCALE_HISTORY = _option(CLUSTER, "web.adaptive-scheduler.rescale-history.size", INT, 10,
                          "Number of changes of a job's parallelism that are remembered, the newest; 0: none.",
                          test=_NOT_NEGATIVE)
WEB_REFRESH_INTERVAL = _option(CLUSTER, "web.refresh-interval", DURATION, _ms(3_000),
                               "Time between two looks of pages at the cluster.", test=_LONGER_THAN_ZERO)
CLUSTER_ID = _option(CLUSTER, "high-availability.cluster-id", STRING, "default",
                     "Folder of the cluster in high-availability.storageDir, which holds its registry of jobs.",
                     test=_NAME)
JOB_STORE_TIME = _option(CLUSTER, "jobstore.expiration-time", DURATION, _ms(3_600_000),
                         "Time for which an ended job stays in the list of jobs.", test=_LONGER_THAN_ZERO)
JOB_STORE_CAPACITY = _option(CLUSTER, "jobstore.max-capacity", INT, 1_000,
                             "Number of ended jobs in the list of jobs, the newest.", test=_POSITIVE)
REST_CONNECT_TIMEOUT = _option(CLUSTER, "rest.connection-timeout", DURATION, _ms(15_000),
                               "Longest time in which a client connects to the dispatcher.", test=_LONGER_THAN_ZERO)
REST_ATTEMPTS = _option(CLUSTER, "rest.retry.max-attempts", INT, 20,
                        "Attempts of a client at a request while the dispatcher does not answer, as it begins anew.",
                        test=_POSITIVE)
REST_RETRY_DELAY = _option(CLUSTER, "rest.retry.delay", DURATION, _ms(3_000),
                           "Longest time between two of these attempts; the first ones come sooner.",
                           test=_LONGER_THAN_ZERO)
CLIENT_TIMEOUT = _option(CLUSTER, "client.heartbeat.timeout", DURATION, _ms(180_000),
                         "Time without a request of its client after which a job with execution.attached and "
                         "execution.shutdown-on-attached-exit is cancelled.", test=_LONGER_THAN_ZERO)
