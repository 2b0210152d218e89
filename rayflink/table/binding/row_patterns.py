"""The pattern of MATCH_RECOGNIZE: its variables, quantifiers and skip strategy."""

from __future__ import annotations

from sqlglot import exp

from rayflink.cep.nfa.row_patterns import (
    RowChoice,
    RowPattern,
    RowRepetition,
    RowSequence,
    RowVariable,
    greedy_end,
    matches_nothing,
)
from rayflink.cep.skip_strategies import AfterMatchSkipStrategy

from ..errors import SqlError, nearest
from ..parsing.match_clauses import MatchClause, PatternChoice, PatternRepetition, PatternSequence, PatternVariable
from ..parsing.places import place_of
from ..parsing.statements import Tree
from ..plan.typed import Place

_MOST_TIMES = 1_000
"""Of a quantifier: each time is a state of the automaton."""
_MOST_VARIABLES = 60


def bind_pattern(clause: MatchClause) -> tuple[RowPattern, tuple[str, ...]]:
    """Return the pattern, and the names of its variables.

    Raises:
        SqlError: it may match no row, ends with a greedy quantifier, or has a quantifier without meaning.
    """
    names: dict[str, int] = {}
    for variable in clause.args["pattern"].find_all(PatternVariable, bfs=False):
        names.setdefault(variable.this.name, len(names))
    pattern = _bound(clause.args["pattern"], names)
    place = place_of(clause.args["pattern"])
    if len(names) > _MOST_VARIABLES:
        problem = f"PATTERN has {len(names)} variables"
        raise SqlError(problem, f"write {_MOST_VARIABLES} at most, or give equal rows one variable", "", place)
    if matches_nothing(pattern):
        remedy = "let one of its variables be needed, as in (A B*)"
        raise SqlError("PATTERN may match no row at all", remedy, "", place)
    greedy = greedy_end(pattern)
    if greedy is not None:
        problem = f"PATTERN may end with {greedy}, which is greedy: its end is known only by the row behind it"
        remedy = f"end it with a variable for that row, or with the reluctant {greedy}?"
        raise SqlError(problem, remedy, "", place)
    return pattern, tuple(names)


def _bound(tree: Tree, names: dict[str, int]) -> RowPattern:
    if isinstance(tree, PatternVariable):
        return RowVariable(names[tree.this.name], tree.this.name)
    if isinstance(tree, PatternSequence):
        return RowSequence(tuple(_bound(part, names) for part in tree.expressions))
    if isinstance(tree, PatternChoice):
        return RowChoice(tuple(_bound(part, names) for part in tree.expressions))
    assert isinstance(tree, PatternRepetition), tree
    return _repetition(tree, names)


def _repetition(tree: Tree, names: dict[str, int]) -> RowRepetition:
    place = place_of(tree)
    part = _bound(tree.this, names)
    least, most = int(tree.args["least"]), int(tree.args["most"]) if tree.args["most"] else None
    is_reluctant = bool(tree.args["reluctant"])
    if most is not None and (most < least or most == 0):
        written = f"{{{least}}}" if least == most else f"{{{least},{most}}}"
        raise SqlError(
            f"the quantifier {written} is for no row", "write the smaller number first, from 1 on", "", place
        )
    if max(least, most or 0) > _MOST_TIMES:
        problem = f"a quantifier of {max(least, most or 0)} times"
        raise SqlError(problem, f"write {_MOST_TIMES} at most, or compare COUNT(A.x) in DEFINE", "", place)
    if is_reluctant and (least, most) == (0, 1):
        remedy = f"write {part}?: matches with and without the row are tried, and the one that is over first is given"
        raise SqlError(f"{part}?? is a reluctant optional pattern, which is not supported", remedy, "", place)
    if matches_nothing(part):
        remedy = "let a part of what is repeated be needed, as in (A B*)+"
        raise SqlError(f"({part}) is repeated, and may match no row", remedy, "", place)
    return RowRepetition(part, least, most, not is_reluctant)


def bind_skip(
    clause: MatchClause, names: tuple[str, ...], subsets: dict[str, tuple[int, ...]]
) -> AfterMatchSkipStrategy:
    """Return where matching goes on after a match.

    Raises:
        SqlError: that is the row of a variable that the pattern does not have.
    """
    after = clause.args["after"]
    if after == "PAST LAST ROW":
        return AfterMatchSkipStrategy.skip_past_last_event()
    if after == "TO NEXT ROW":
        return AfterMatchSkipStrategy.skip_to_next()
    variable = clause.args["after_variable"]
    if variable.name in subsets:
        problem = f"AFTER MATCH SKIP {after} {variable.name} names a subset"
        raise SqlError(problem, "name one of its variables", "", place_of(variable))
    if variable.name not in names:
        raise unknown_variable(variable.name, names, "AFTER MATCH SKIP", place_of(variable))
    make = AfterMatchSkipStrategy.skip_to_first if after == "TO FIRST" else AfterMatchSkipStrategy.skip_to_last
    return make(variable.name).throw_exception_on_miss()


def bind_subsets(clause: MatchClause, names: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Return the indexes of the variables of each SUBSET, by its name.

    Raises:
        SqlError: one has the name of another or of a variable, or a variable that the pattern does not have.
    """
    subsets: dict[str, tuple[int, ...]] = {}
    for subset in clause.args.get("subsets") or ():
        name = subset.this.name
        if name in names or name in subsets:
            what = "a variable of PATTERN" if name in names else "another subset"
            raise SqlError(
                f"SUBSET {name} has the name of {what}", "give it a name of its own", "", place_of(subset.this)
            )
        for variable in subset.expressions:
            if variable.name not in names:
                raise unknown_variable(variable.name, names, f"SUBSET {name}", place_of(variable))
        subsets[name] = tuple(sorted({names.index(variable.name) for variable in subset.expressions}))
    return subsets


def define_trees(clause: MatchClause, names: tuple[str, ...]) -> dict[str, Tree]:
    """Return the conditions of DEFINE by their variables.

    Raises:
        SqlError: a variable is defined twice, or is none of the pattern.
    """
    trees: dict[str, Tree] = {}
    for definition in clause.args["define"]:
        variable: exp.Expression = definition.args["alias"]
        if variable.name in trees:
            problem = f"DEFINE has two conditions of {variable.name}"
            raise SqlError(problem, "join them by AND or OR", "", place_of(variable))
        if variable.name not in names:
            raise unknown_variable(variable.name, names, "DEFINE", place_of(variable))
        trees[variable.name] = definition.this
    return trees


def unknown_variable(name: str, names: tuple[str, ...], where: str, place: Place | None) -> SqlError:
    """Return the error for a variable that the pattern does not have."""
    problem = f"{where} names the variable {name}, which PATTERN does not have{nearest(name, names)}"
    return SqlError(problem, f"its variables are {', '.join(names)}", "", place)


__all__ = ["bind_pattern", "bind_skip", "bind_subsets", "define_trees", "unknown_variable"]
