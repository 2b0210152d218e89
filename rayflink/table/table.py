"""A table: the plan of a query, not yet run."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from .errors import SqlError
from .explain_detail import ExplainDetail
from .inserts import Insertion
from .logical import Relation, plan_text
from .table_result import TableResult

if TYPE_CHECKING:
    import polars
    import pyarrow

    from .table_environment import TableEnvironment


class Table:
    """Rows that a query gives when it is run; made by a `TableEnvironment`.

    Args:
        env: in which it is run.
        plan: what gives its rows.
    """

    def __init__(self, env: TableEnvironment, plan: Relation) -> None:
        self._env, self._plan = env, plan

    def execute(self) -> TableResult:
        """Run the query; its rows come while it runs."""
        return self._env._drawn(self._plan)

    def execute_insert(self, table_path: str, overwrite: bool = False) -> TableResult:
        """Run the query and write its rows to a table of the catalog.

        Args:
            overwrite: in the place of what is there.
        """
        return self._env._insert([Insertion(tuple(table_path.split(".")), self._plan, overwrites=overwrite)])

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plan as it was written and as it is run.

        Args:
            extra_details: what to tell besides.
        """
        return self._env._explained([self._plan], extra_details)

    def print_schema(self) -> None:
        """Write names and types of the columns to the terminal."""
        print("(")
        print(",\n".join(f"  `{one.name}` {one}" for one in self._plan.schema))
        print(")")

    def to_arrow(self) -> pyarrow.Table:
        """Run the query to its end; all rows as a pyarrow Table.

        Raises:
            SqlError: the query has no end.
        """
        return self._env._whole(self._plan)

    def to_pandas(self) -> Any:
        """Run the query to its end; all rows as a pandas DataFrame.

        Raises:
            SqlError: pandas is not installed, or the query has no end.
        """
        if importlib.util.find_spec("pandas") is None:
            raise SqlError(
                "to_pandas() wants pandas, which is not installed", "run `pip install pandas`, or to_arrow()"
            )
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Run the query to its end; all rows as a polars DataFrame."""
        import polars

        found = polars.from_arrow(self.to_arrow())
        assert isinstance(found, polars.DataFrame)
        return found

    def __str__(self) -> str:
        return plan_text(self._plan)
