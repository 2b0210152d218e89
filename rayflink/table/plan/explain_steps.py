"""Plans as EXPLAIN shows them: filters and projections in one, and where rows change hands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .async_steps import awaits
from .groups import GroupAggregate
from .joins import BroadcastJoin
from .logical import Filter, Project, Relation, Sort, WindowAggregate, order_text
from .plan_nodes import node_of
from .ranks import Deduplicate, Rank
from .typed import Expr


@dataclass(frozen=True, eq=False)
class ShownStep:
    """A line of a plan, with those below it.

    Args:
        relation: whose rows it gives, or is about to.
    """

    text: str
    relation: Relation
    inputs: tuple[ShownStep, ...] = ()


@dataclass
class ShownPlan:
    """The steps of plans; what two of them have in common is one step.

    Args:
        two_phase: aggregates are made before rows are partitioned, too, where that is possible.
        reuses: whether a relation that is there twice is computed once.
    """

    two_phase: bool
    reuses: Callable[[Relation], bool]
    _known: dict[Relation, ShownStep] = field(default_factory=dict)

    def of(self, plan: Relation) -> ShownStep:
        """Return the last step of a plan."""
        step = self._known.get(plan)
        if step is None:
            step = self._step(plan)
            if self.reuses(plan):
                self._known[plan] = step
        return step

    def _step(self, plan: Relation) -> ShownStep:
        node = node_of(plan)
        match node:
            case Project() | Filter():
                text, below = calc_text(node)
                return ShownStep(text, node, (self.of(below),))
            case WindowAggregate() if node.has_local_phase and self.two_phase:
                return self._two_phases(node, node.input)
            case GroupAggregate() if node.has_local_phase or (node.is_whole and not node.is_one_phase):
                return self._two_phases(node, node.input, self._with_distinct_values(node))
            case GroupAggregate() if node.splits_distinct:
                rows = _exchanged(node, 0, self._with_distinct_values(node))
                return ShownStep(node.explain_line(), node, (rows,))
            case Rank() if node.last is not None and not isinstance(node, Deduplicate) and not node.is_top:
                return self._two_phases(node, node.input)
            case Sort() if node.limit is not None:
                local = ShownStep(_sort_text(node, is_global=False), node.input, (self.of(node.input),))
                return ShownStep(_sort_text(node, is_global=True), node, (_exchanged(node, 0, local),))
            case _:
                below_all = [self.of(below) for below in node.inputs]
                inputs = tuple(_exchanged(node, index, step) for index, step in enumerate(below_all))
                return ShownStep(node.explain_line(), node, inputs)

    def _with_distinct_values(self, node: GroupAggregate) -> ShownStep:
        """Return the input of groups, behind the steps that find values by group and value."""
        step, names = self.of(node.input), node.input.names
        for value in node.distinct_arguments if node.splits_distinct else ():
            hashed = ", ".join(names[key] for key in dict.fromkeys((*node.grouping, value)))
            exchange = ShownStep(f"Exchange(distribution=[hash[{hashed}]])", node.input, (step,))
            step = ShownStep(f"DistinctValues(value=[{names[value]}], split=[true])", node.input, (exchange,))
        return step

    def _two_phases(self, node: Relation, below: Relation, step: ShownStep | None = None) -> ShownStep:
        """Return a step that works rows before they are partitioned, too.

        Args:
            step: gives the rows of `below`; None: the step of that.
        """
        local = ShownStep(f"Local{node.explain_line()}", below, (step or self.of(below),))
        return ShownStep(f"Global{node.explain_line()}", node, (_exchanged(node, 0, local),))


def calc_text(plan: Relation) -> tuple[str, Relation]:
    """Return a projection, a filter, or the one on the other as one step, and what that is on."""
    below, where = plan, ""
    if isinstance(below, Project):
        shown, below = below.describe_columns(), below.input
    else:
        shown = plan.names
    if isinstance(below, Filter):
        where, below = f", where=[{below.condition}]", below.input
    name = "AsyncCalc" if any(map(awaits, _exprs_of(plan))) else "Calc"
    return f"{name}(select=[{', '.join(shown)}]{where})", below


def _exprs_of(plan: Relation) -> tuple[Expr, ...]:
    """Return the expressions of a projection, a filter, or the one on the other."""
    below = plan.inputs[0]
    on_filter = isinstance(plan, Project) and isinstance(below, Filter)
    return (*plan.exprs_of_rows, *(below.exprs_of_rows if on_filter else ()))


def _exchanged(plan: Relation, input_index: int, below: ShownStep) -> ShownStep:
    """Return the step, and how its rows are partitioned to the subtasks of the next."""
    if isinstance(plan, BroadcastJoin) and plan.small == input_index:
        return ShownStep("Exchange(distribution=[broadcast])", below.relation, (below,))
    distribution = plan.required_distribution(input_index)
    if distribution is None:
        return below
    names = plan.inputs[input_index].names
    how = f"hash[{', '.join(names[column] for column in distribution)}]" if distribution else "single"
    return ShownStep(f"Exchange(distribution=[{how}])", below.relation, (below,))


def _sort_text(plan: Sort, is_global: bool) -> str:
    assert plan.limit is not None
    order = f"orderBy=[{order_text(plan.names, plan.keys)}], " if plan.keys else ""
    offset, fetch = (plan.offset, plan.limit) if is_global else (0, plan.offset + plan.limit)
    name = "SortLimit" if plan.keys else "Limit"
    return f"{name}({order}offset=[{offset}], fetch=[{fetch}], global=[{str(is_global).lower()}])"


def tree_text(roots: Sequence[ShownStep], line: Callable[[ShownStep], str], reuse: bool) -> str:
    """Plans one below the other.

    Args:
        line: returns the line of a step.
        reuse: a step that has several consumers is shown once, and referred to by its number.
    """
    numbers = _reused(roots) if reuse else {}
    blocks: list[str] = []
    shown: set[int] = set()

    def add_lines(step: ShownStep, lines: list[str], before: str, bar: str) -> None:
        number = numbers.get(id(step))
        if number is not None and id(step) in shown:
            lines.append(f"{before}Reused(reference_id=[{number}])")
            return
        shown.add(id(step))
        lines.append(f"{before}{line(step)}{'' if number is None else f'(reuse_id=[{number}])'}")
        for index, below in enumerate(step.inputs):
            last = index == len(step.inputs) - 1
            add_lines(below, lines, f"{bar}{'+- ' if last else ':- '}", f"{bar}{'   ' if last else ':  '}")

    def block(root: ShownStep) -> None:
        lines: list[str] = []
        add_lines(root, lines, "", "")
        blocks.append("\n".join(lines))

    for step in _of_several(roots) if reuse else ():
        if id(step) not in shown:
            block(step)
    for root in roots:
        block(root)
    return "\n\n".join(blocks)


def _reused(roots: Sequence[ShownStep]) -> dict[int, int]:
    """Return numbers of the steps with several consumers, by their ids, in the order of the text."""
    uses: dict[int, int] = {}
    order: list[ShownStep] = []

    def visit(step: ShownStep) -> None:
        uses[id(step)] = uses.get(id(step), 0) + 1
        if uses[id(step)] == 1:
            order.append(step)
            for below in step.inputs:
                visit(below)

    for root in roots:
        visit(root)
    return {id(step): number for number, step in enumerate((step for step in order if uses[id(step)] > 1), 1)}


def _of_several(roots: Sequence[ShownStep]) -> list[ShownStep]:
    """Return the largest steps that several of the plans have in common."""
    owner: dict[int, int] = {}
    common_steps: dict[int, ShownStep] = {}

    def visit(step: ShownStep, root: int) -> None:
        if owner.setdefault(id(step), root) != root:
            common_steps.setdefault(id(step), step)
            return
        for below in step.inputs:
            visit(below, root)

    for index, root in enumerate(roots):
        visit(root, index)
    return list(common_steps.values())


__all__ = ["ShownPlan", "ShownStep", "calc_text", "tree_text"]
