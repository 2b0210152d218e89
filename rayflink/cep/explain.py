"""Draws the automaton of a pattern, as text and as a picture."""

from __future__ import annotations

from html import escape

from rayflink.common.errors import assert_never

from .nfa.automaton import Action, Automaton, Edge, StateKind
from .nfa.logic import Bit, Both, Either, Inverse, Logic, MatchTest, Truth

_LABELS = {Action.TAKE: "take", Action.IGNORE: "ignore", Action.PROCEED: "proceed"}
_COLOURS = {Action.TAKE: "#1a7f37", Action.IGNORE: "#6e7781", Action.PROCEED: "#0969da"}
_FILLS = {
    StateKind.START: "#ddf4ff",
    StateKind.NORMAL: "#ffffff",
    StateKind.PENDING: "#fff8c5",
    StateKind.FINAL: "#dafbe1",
    StateKind.STOP: "#ffebe9",
}


def explain_text(automaton: Automaton) -> str:
    """Return the states of an automaton with their edges, the start first.

    >>> from rayflink.cep.nfa.compiler import compile_pattern
    >>> from rayflink.cep.pattern import Pattern
    >>> def is_big(n): return n > 9
    >>> print(explain_text(compile_pattern(Pattern.begin("a").where(is_big).next("b").within(1000))))
    pattern a -> b within 1000 ms
      a (start)
        take a if is_big -> b
      b
        take b -> end
      end (final)
    """
    window = "" if automaton.window_ms is None else f" within {automaton.window_ms} ms"
    lines = [f"pattern {' -> '.join(automaton.steps)}{window}"]
    if automaton.skip_strategy.is_skip_strategy:
        lines.append(f"  after a match: {automaton.skip_strategy.skip_to.value} {automaton.skip_strategy.pattern_name}")
    for index in reversed(range(len(automaton.states))):
        state = automaton.states[index]
        kind = "" if state.kind is StateKind.NORMAL else f" ({state.kind.value})"
        between = "" if state.window_ms is None else f", at most {state.window_ms} ms after the event before"
        lines.append(f"  {_name(automaton, index)}{kind}{between}")
        if state.kind is not StateKind.STOP:
            lines += [f"    {_edge(automaton, index, edge)}" for edge in state.edges]
    return "\n".join(line.rstrip() for line in lines)


def explain_svg(automaton: Automaton) -> str:
    """Return a picture of an automaton in SVG: states as boxes from left to right, edges as arcs between them."""
    order = list(reversed(range(len(automaton.states))))
    order.sort(key=lambda index: automaton.states[index].kind is StateKind.STOP)
    place = {index: number for number, index in enumerate(order)}
    step, box, middle = 190, 110, 60 + 34 * _longest(automaton, place)
    width, height = step * len(order) + 20, 2 * middle
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        "<title>" + escape(f"automaton of the pattern {' -> '.join(automaton.steps)}") + "</title>",
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#57606a"/></marker></defs>',
    ]
    for index in order:
        parts += _drawn_edges(automaton, index, place, (step, box, middle))
    for index in order:
        left = 20 + step * place[index]
        parts.append(
            f'<rect x="{left}" y="{middle - 18}" width="{box}" height="36" rx="8" stroke="#57606a" '
            f'fill="{_FILLS[automaton.states[index].kind]}"/>'
            f'<text x="{left + box / 2}" y="{middle + 4}" text-anchor="middle">{escape(_name(automaton, index))}</text>'
        )
    return "\n".join([*parts, "</svg>"])


def _drawn_edges(automaton: Automaton, index: int, place: dict[int, int], layout: tuple[int, int, int]) -> list[str]:
    step, box, middle = layout
    drawn: list[str] = []
    if automaton.states[index].kind is StateKind.STOP:
        return drawn
    begin = 20 + step * place[index] + box / 2
    for number, edge in enumerate(automaton.states[index].edges):
        end = 20 + step * place[edge.target] + box / 2
        above = edge.action is not Action.IGNORE
        side = -1 if above else 1
        rise = 30 + 34 * abs(place[edge.target] - place[index])
        top = middle + side * (18 + rise)
        shift = 8 * number
        if edge.target == index:
            path = (
                f"M{begin - 20 + shift},{middle + side * 18} C{begin - 40},{top} {begin + 40},{top} "
                f"{begin + 20 - shift},{middle + side * 18}"
            )
        else:
            path = (
                f"M{begin + shift},{middle + side * 18} C{begin + shift},{top} {end - shift},{top} "
                f"{end - shift},{middle + side * 18}"
            )
        label = _condition(automaton, edge)
        text = f"{_LABELS[edge.action]}{f' if {label}' if label else ''}"
        colour = _COLOURS[edge.action]
        drawn.append(
            f'<path d="{path}" fill="none" stroke="{colour}" marker-end="url(#tip)">'
            f"<title>{escape(text)}</title></path>"
            f'<text x="{(begin + end) / 2}" y="{middle + side * (18 + 0.72 * rise) + (-4 if above else 12)}" '
            f'text-anchor="middle" fill="{colour}">{escape(text if len(text) < 30 else text[:27] + "...")}</text>'
        )
    return drawn


def _longest(automaton: Automaton, place: dict[int, int]) -> int:
    """Return the number of places that the longest edge spans."""
    return max(
        (
            abs(place[edge.target] - place[index])
            for index, state in enumerate(automaton.states)
            if state.kind is not StateKind.STOP
            for edge in state.edges
        ),
        default=1,
    )


def _edge(automaton: Automaton, index: int, edge: Edge) -> str:
    condition = _condition(automaton, edge)
    step = automaton.steps[automaton.states[index].step] if automaton.states[index].step >= 0 else ""
    action = f"take {step}" if edge.action is Action.TAKE else _LABELS[edge.action]
    target = "itself" if edge.target == index else _name(automaton, edge.target)
    return f"{action}{f' if {condition}' if condition else ''} -> {target}"


def _name(automaton: Automaton, index: int) -> str:
    state = automaton.states[index]
    return (
        "end" if state.kind is StateKind.FINAL else f"no {state.name}" if state.kind is StateKind.STOP else state.name
    )


def _condition(automaton: Automaton, edge: Edge) -> str:
    text = condition_text(edge.logic, automaton)
    return "" if text == "true" else text


def condition_text(logic: Logic, automaton: Automaton) -> str:
    """Return the condition of an edge for people."""
    match logic:
        case Truth():
            return "true"
        case Bit():
            return str(automaton.units[logic.index].condition)
        case MatchTest():
            return str(automaton.tests[logic.index])
        case Inverse():
            inner = condition_text(logic.logic, automaton)
            return "never" if inner == "true" else f"not {_bracketed(inner)}"
        case Both():
            parts = [condition_text(part, automaton) for part in (logic.first, logic.second)]
            return " and ".join(dict.fromkeys(part for part in parts if part != "true")) or "true"
        case Either():
            parts = [condition_text(part, automaton) for part in (logic.first, logic.second)]
            return "true" if "true" in parts else f"({' or '.join(parts)})"
        case _:
            assert_never(logic)


def _bracketed(text: str) -> str:
    return f"({text})" if " and " in text or " or " in text and not text.startswith("(") else text


__all__ = ["condition_text", "explain_svg", "explain_text"]
