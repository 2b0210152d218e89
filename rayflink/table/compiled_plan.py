"""Plans that outlive the program: compiled once, and run as they are by later programs and versions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rayflink.common.options import registry as options

from .compiled_plans.plan_document import document_text, parse_document
from .errors import SqlError
from .explain_detail import ExplainDetail
from .explaining.plan_drawing import PlanDrawing, drawn_plan
from .plan.explain_steps import ShownPlan
from .plan_reference import FilePlanReference, JsonContentPlanReference, PlanReference
from .statements.compiled_inserts import compile_inserts, read_inserts
from .table_result import TableResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .plan.logical import Sink
    from .statements.query_runner import QueryRunner

__all__ = ["CompiledPlan", "compiled", "loaded"]


class CompiledPlan:
    """INSERTs with the plan by which they are run, whatever rules a later version has; see docs/sql-plans.md.

    `TableEnvironment.compile_plan_sql`, `TablePipeline.compile_plan` and `StatementSet.compile_plan` compile one,
    `TableEnvironment.load_plan` reads one. It has the ids of all operators, so that jobs of it restore each other's
    state.

    >>> from rayflink.table import EnvironmentSettings, TableEnvironment
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> _ = t_env.execute_sql("CREATE TABLE numbers (n INT) WITH ('connector' = 'datagen', 'number-of-rows' = '3')")
    >>> _ = t_env.execute_sql("CREATE TABLE twice (n INT) WITH ('connector' = 'blackhole')")
    >>> plan = t_env.compile_plan_sql("INSERT INTO twice SELECT n + n FROM numbers")
    >>> print(plan.explain())
    == Optimized Execution Plan ==
    Sink(table=[default_catalog.default_database.twice], fields=[n])
    +- Calc(select=[n + n AS n])
       +- TableSourceScan(table=[[default_catalog, default_database, numbers]], fields=[n])
    <BLANKLINE>

    Args:
        queries: run it.
        text: the plan as JSON.

    Raises:
        SqlError: this version or this environment cannot run it.
    """

    def __init__(self, queries: QueryRunner, text: str) -> None:
        document = parse_document(text)
        self._queries, self._text = queries, text
        self._planned = read_inserts(queries, document)
        self._flink_version = str(document.get("flinkVersion", ""))

    def as_json_string(self) -> str:
        """Return the plan as JSON."""
        return self._text

    def print_json_string(self) -> None:
        """Write that to the terminal."""
        print(self._text)

    def write_to_file(self, file: str | Path, ignore_if_exists: bool = False) -> None:
        """Write the plan to a file as JSON.

        Args:
            ignore_if_exists: a file that is there stays as it is.

        Raises:
            SqlError: there is a file and `ignore_if_exists` and `table.plan.force-recompile` are false, or it cannot be
                written.
        """
        path = Path(file)
        if path.exists():
            if ignore_if_exists:
                return
            if not self._queries.context.configuration.get(options.PLAN_FORCE_RECOMPILE):
                remedy = f"remove it, name another one, or for debugging set {options.PLAN_FORCE_RECOMPILE.key!r}"
                raise SqlError(f"there is a plan in {str(path)!r} already", remedy)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._text, encoding="utf-8")
        except OSError as error:
            raise SqlError(f"the plan cannot be written: {error}", "name a file that can be written") from error

    def get_flink_version(self) -> str:
        """Return the version of Flink whose meaning of statements the plan has."""
        return self._flink_version

    def execute(self) -> TableResult:
        """Run the INSERTs as one job."""
        return self._queries.run_planned(self._planned)

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Explain how they are run."""
        return self._queries.explain_planned(self._planned, extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Write that to the terminal."""
        print(self.explain(*extra_details))

    def draw_plan(self) -> PlanDrawing:
        """Draw how they are run; notebooks show the picture."""
        settings = self._planned.settings
        return drawn_plan(self._planned.sinks, ShownPlan(settings.two_phase, settings.reuses))

    def __str__(self) -> str:
        return self.explain()


def compiled(queries: QueryRunner, sinks: Sequence[Sink]) -> CompiledPlan:
    """Compile INSERTs.

    Raises:
        SqlError: they cannot be run, or part of the plan is bound to this program.
    """
    return CompiledPlan(queries, document_text(compile_inserts(queries, sinks)))


def loaded(queries: QueryRunner, reference: PlanReference) -> CompiledPlan:
    """Read a plan.

    Raises:
        SqlError: there is no such file, or this version or this environment cannot run the plan.
    """
    if isinstance(reference, JsonContentPlanReference):
        return CompiledPlan(queries, reference.get_content())
    if not isinstance(reference, FilePlanReference):
        remedy = "give PlanReference.from_file(path) or from_json_string(text)"
        raise SqlError(f"{type(reference).__name__} is no reference to a plan", remedy)
    try:
        text = reference.get_file().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SqlError(f"the plan cannot be read: {error}", "name a file that COMPILE PLAN has written") from error
    return CompiledPlan(queries, text)
