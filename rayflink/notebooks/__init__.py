"""Jupyter notebooks: SQL in cells, tables that show themselves, and tables that are drawn anew while their query runs.

- `magics`: `%load_ext rayflink.notebooks`, then `%%rayflink_sql`.
- `notebook_session`: the environment in which the statements of cells run, and the names of the notebook they use.
- `live_view`: a table that follows its query. `job_view`: the progress of a job. `canvases`: where they are drawn.

A `Table` shows its columns and first rows without this part (`rayflink.table.display`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.notebooks.job_view import JobView as JobView
    from rayflink.notebooks.job_view import follow as follow
    from rayflink.notebooks.live_view import LiveView as LiveView
    from rayflink.notebooks.live_view import live as live
    from rayflink.notebooks.magics import load_ipython_extension as load_ipython_extension
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.notebooks.job_view": "JobView follow",
            "rayflink.notebooks.live_view": "LiveView live",
            "rayflink.notebooks.magics": "load_ipython_extension",
        },
    )
