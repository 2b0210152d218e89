"""rayflink: Apache Flink's model in Python on Ray. The public names are PyFlink's; each is loaded on first use.

Programs import from `common`, `datastream`, `table` and `metrics`; tests from `testing`; PySpark's session is in
`spark`. Below them lie `graph`, `connectors`, `operators`, `actors` and `state`, which no program needs to import.
ARCHITECTURE.md has the order in which they may import each other. Importing this package loads neither Ray nor a
library of columns, and nothing but names of other packages belongs here.
"""

from __future__ import annotations

import sys

if not (3, 10) <= sys.version_info < (3, 15):
    raise ImportError(
        f"rayflink runs on Python 3.10 to 3.14, found {sys.version.split()[0]}; "
        "make an environment with one of them, for example: python3.12 -m venv .venv"
    )

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports
from rayflink.version import __version__ as __version__

if TYPE_CHECKING:
    from rayflink.common import Configuration as Configuration
    from rayflink.common import Duration as Duration
    from rayflink.common import OutputTag as OutputTag
    from rayflink.common import RayflinkError as RayflinkError
    from rayflink.common import Row as Row
    from rayflink.common import Types as Types
    from rayflink.common import WatermarkStrategy as WatermarkStrategy
    from rayflink.datastream import StreamExecutionEnvironment as StreamExecutionEnvironment
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.common": "Configuration Duration OutputTag RayflinkError Row Types WatermarkStrategy",
            "rayflink.datastream": "StreamExecutionEnvironment",
        },
    )
