"""Plans as EXPLAIN shows them: filters and projections in one, and where rows change hands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .groups import GroupAggregate
from .joins import BroadcastJoin
from .logical import Filter, Project, Relation, Sort, WindowAggregate, order_text
from .ranks import Deduplicate, Rank


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
        found = self._known.get(plan)
        if found is None:
            found = self._made(plan)
            if self.reuses(plan):
                self._known[plan] = found
        return found

    def _made(self, plan: Relation) -> ShownStep:
        if isinstance(plan, (Project, Filter)):
            return self._calc(plan)
        below = tuple(self.of(one) for one in plan.inputs)
        if isinstance(plan, WindowAggregate) and plan.has_local_phase and self.two_phase:
            local = ShownStep(f"Local{plan.explain_line()}", plan.input, below)
            return ShownStep(f"Global{plan.explain_line()}", plan, (_exchanged(plan, 0, local),))
        if isinstance(plan, GroupAggregate) and plan.is_whole and not plan.is_one_phase:
            local = ShownStep(f"Local{plan.explain_line()}", plan.input, below)
            return ShownStep(f"Global{plan.explain_line()}", plan, (_exchanged(plan, 0, local),))
        if isinstance(plan, Rank) and plan.last is not None and not isinstance(plan, Deduplicate):
            local = ShownStep(f"Local{plan.explain_line()}", plan.input, below)
            return ShownStep(f"Global{plan.explain_line()}", plan, (_exchanged(plan, 0, local),))
        if isinstance(plan, Sort) and plan.limit is not None:
            local = ShownStep(_sort_text(plan, is_global=False), plan.input, below)
            return ShownStep(_sort_text(plan, is_global=True), plan, (_exchanged(plan, 0, local),))
        return ShownStep(plan.explain_line(), plan, tuple(_exchanged(plan, at, one) for at, one in enumerate(below)))

    def _calc(self, plan: Relation) -> ShownStep:
        text, below = calc_text(plan)
        return ShownStep(text, plan, (self.of(below),))


def calc_text(plan: Relation) -> tuple[str, Relation]:
    """Return a projection, a filter, or the one on the other as one step, and what that is on."""
    below, where = plan, ""
    if isinstance(below, Project):
        shown, below = below.describe_columns(), below.input
    else:
        shown = plan.names
    if isinstance(below, Filter):
        where, below = f", where=[{below.condition}]", below.input
    return f"Calc(select=[{', '.join(shown)}]{where})", below


def _exchanged(plan: Relation, at: int, below: ShownStep) -> ShownStep:
    """Return the step, and how its rows are partitioned to the subtasks of the next."""
    if isinstance(plan, BroadcastJoin) and plan.small == at:
        return ShownStep("Exchange(distribution=[broadcast])", below.relation, (below,))
    distribution = plan.required_distribution(at)
    if distribution is None:
        return below
    names = plan.inputs[at].names
    how = f"hash[{', '.join(names[one] for one in distribution)}]" if distribution else "single"
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

    def add_lines(one: ShownStep, lines: list[str], before: str, bar: str) -> None:
        number = numbers.get(id(one))
        if number is not None and id(one) in shown:
            lines.append(f"{before}Reused(reference_id=[{number}])")
            return
        shown.add(id(one))
        lines.append(f"{before}{line(one)}{'' if number is None else f'(reuse_id=[{number}])'}")
        for at, below in enumerate(one.inputs):
            last = at == len(one.inputs) - 1
            add_lines(below, lines, f"{bar}{'+- ' if last else ':- '}", f"{bar}{'   ' if last else ':  '}")

    def block(root: ShownStep) -> None:
        lines: list[str] = []
        add_lines(root, lines, "", "")
        blocks.append("\n".join(lines))

    for one in _of_several(roots) if reuse else ():
        if id(one) not in shown:
            block(one)
    for root in roots:
        block(root)
    return "\n\n".join(blocks)


def _reused(roots: Sequence[ShownStep]) -> dict[int, int]:
    """Return numbers of the steps with several consumers, by their ids, in the order of the text."""
    uses: dict[int, int] = {}
    order: list[ShownStep] = []

    def visit(one: ShownStep) -> None:
        uses[id(one)] = uses.get(id(one), 0) + 1
        if uses[id(one)] == 1:
            order.append(one)
            for below in one.inputs:
                visit(below)

    for root in roots:
        visit(root)
    return {id(one): number for number, one in enumerate((one for one in order if uses[id(one)] > 1), 1)}


def _of_several(roots: Sequence[ShownStep]) -> list[ShownStep]:
    """Return the largest steps that several of the plans have in common."""
    owner: dict[int, int] = {}
    found: dict[int, ShownStep] = {}

    def visit(one: ShownStep, root: int) -> None:
        if owner.setdefault(id(one), root) != root:
            found.setdefault(id(one), one)
            return
        for below in one.inputs:
            visit(below, root)

    for at, root in enumerate(roots):
        visit(root, at)
    return list(found.values())


__all__ = ["ShownPlan", "ShownStep", "calc_text", "tree_text"]
