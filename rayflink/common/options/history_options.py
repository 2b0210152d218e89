"""The options of archives and of the history server; `registry` has them with all others."""

from __future__ import annotations

from .option_declaring import LONGER_THAN_ZERO as _LONGER_THAN_ZERO
from .option_declaring import NAME as _NAME
from .option_declaring import NOT_EMPTY as _NOT_EMPTY
from .option_declaring import declare as _option
from .option_declaring import millis as _ms
from .option_types import BOOLEAN, DURATION, INT, MEMORY, STRING, MemorySize

__all__ = [
    "ARCHIVE_FOLDER", "ARCHIVE_FOR_FLINK", "HISTORY_ADDRESS", "HISTORY_CLEAN", "HISTORY_FOLDERS", "HISTORY_JOBS",
    "HISTORY_PORT", "HISTORY_REFRESH", "HISTORY_SSL", "HISTORY_TIME", "HISTORY_WEB_REFRESH", "JOB_STORE_CACHE",
]  # fmt: skip

HISTORY = "History server"
"""The heading of these options."""
ARCHIVE_FOLDER = _option(HISTORY, "jobmanager.archive.fs.dir", STRING, None,
                         "Folder in which the dispatcher writes an archive of each job that has ended: a path, or a "
                         "URL such as s3://bucket/ended.", test=_NAME)
ARCHIVE_FOR_FLINK = _option(HISTORY, "rayflink.archive.for-flink", BOOLEAN, False,
                            "Write each archive a second time, in the layout that Flink's own history server reads.")
JOB_STORE_CACHE = _option(HISTORY, "jobstore.cache-size", MEMORY, MemorySize(50 << 20),
                          "Memory for archives that were read last.", test=_NOT_EMPTY)
HISTORY_FOLDERS = _option(HISTORY, "historyserver.archive.fs.dir", STRING, None,
                          "Folders whose archives the history server shows, with commas between. Default: "
                          "jobmanager.archive.fs.dir.", test=_NAME)
HISTORY_REFRESH = _option(HISTORY, "historyserver.archive.fs.refresh-interval", DURATION, _ms(10_000),
                          "Time between two looks for new archives.", test=_LONGER_THAN_ZERO)
HISTORY_JOBS = _option(HISTORY, "historyserver.archive.retained-jobs", INT, -1,
                       "Archives that stay in each folder, the newest; others are deleted from it. -1: all.",
                       test=(lambda value: value == -1 or value > 0, "a number above 0, or -1"))
HISTORY_TIME = _option(HISTORY, "historyserver.archive.retained-ttl", DURATION, None,
                       "Time after a job's end for which its archive stays; then it is deleted. Default: for ever.",
                       test=_LONGER_THAN_ZERO)
HISTORY_CLEAN = _option(HISTORY, "historyserver.archive.clean-expired-jobs", BOOLEAN, False,
                        "Show no job whose archive is gone.", unheeded="never shows them, as it copies no archive")
HISTORY_ADDRESS = _option(HISTORY, "historyserver.web.address", STRING, "127.0.0.1",
                          "Address on which the history server listens; with one that other machines reach, every "
                          "request needs a token.", test=_NAME)
HISTORY_PORT = _option(HISTORY, "historyserver.web.port", INT, 8082, "Its port; 0: a free one.",
                       test=(lambda value: 0 <= value <= 65535, "a port in [0, 65535]"))
HISTORY_WEB_REFRESH = _option(HISTORY, "historyserver.web.refresh-interval", DURATION, _ms(10_000),
                              "Time after which its pages ask again.", test=_LONGER_THAN_ZERO)
HISTORY_SSL = _option(HISTORY, "historyserver.web.ssl.enabled", BOOLEAN, False,
                      "Encrypt the connections to the history server, too.",
                      unheeded="encrypts them where security.ssl.rest.enabled says so for all servers")
