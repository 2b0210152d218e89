"""The operators that number rows, and what is said of numbers that are never final."""

from __future__ import annotations

from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..errors import SqlError
from ..plan.lineage import all_of, rows_of
from ..plan.logical import Relation
from ..plan.ranks import Rank, WindowRank
from ..runtime.aggregates.window_spec import WindowSpec
from ..runtime.ranks.bounded_rank import BoundedRank
from ..runtime.ranks.ranking import Ranking
from ..runtime.ranks.window_rank import WindowRankOperator
from ..types import DataType, DataTypes


def row_of(relation: Relation) -> DataType:
    """Return the type of its rows, whose columns have names of their own."""
    return DataTypes.ROW([DataTypes.FIELD(f"f{at}", one.type) for at, one in enumerate(relation.schema)])


def first_rows(plan: Rank) -> tuple[Ranking, Factory]:
    """Return the ranking of whole tables, and the factory of the operator."""
    assert plan.last is not None
    ranking = Ranking(row_of(plan.input), plan.partition, plan.keys, plan.first, plan.last)
    return ranking, Factory(BoundedRank, ranking, arrow_schema(plan.schema))


def first_rows_of_windows(plan: WindowRank, window: WindowSpec) -> tuple[Ranking, Factory]:
    """Return the same of rows that are in windows.

    Raises:
        SqlError: windows go by the clock.
    """
    assert plan.last is not None
    if not window.is_event_time:
        remedy = "use windows of a column with a WATERMARK: by the clock it is not known when all rows are there"
        raise SqlError("ROW_NUMBER() in windows of processing time", remedy, "", plan.place)
    ranking = Ranking(
        row_of(plan.input),
        plan.others,
        plan.keys,
        plan.first,
        plan.last,
        window,
        plan.newest_first,
        rank_identity(plan),
    )
    return ranking, Factory(WindowRankOperator, ranking, window, arrow_schema(plan.schema))


def rank_identity(plan: WindowRank) -> str:
    """Return the state identity of the operator."""
    order = all_of(plan.input, (at for at, _, _ in plan.keys))
    return f"{rows_of(plan.input, plan.partition)}, ordered by {order}"


def refused(plan: Rank) -> SqlError:
    """Return the error for row numbers in a stream that are never final."""
    if plan.last is not None:
        remedy = (
            "add window_start and window_end to PARTITION BY, over a window function or a windowed aggregate; or take "
            "the first row of each key by a time attribute, with ORDER BY ts ASC and = 1; or run it in batch mode"
        )
        return SqlError("ROW_NUMBER() over a stream without a window", remedy, "", plan.place)
    remedy = "say how many rows are wanted, as in WHERE rn <= 3 around the query, or run it in batch mode"
    return SqlError("ROW_NUMBER() of all rows of a stream", remedy, "", plan.place)


__all__ = ["first_rows", "first_rows_of_windows", "rank_identity", "refused", "row_of"]
