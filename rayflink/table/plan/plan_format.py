"""Logical plans as text."""

from __future__ import annotations

from .logical import Relation, Scan


def plan_text(relation: Relation, indent: int = 0) -> str:
    """Return a plan as Flink prints it: what gives the result first."""
    lines: list[str] = []

    def add_lines(one: Relation, before: str, bar: str) -> None:
        is_shown = one.view and not (isinstance(one, Scan) and one.known_path == one.view)
        shown = f" of view {'.'.join(one.view)}" if is_shown else ""
        lines.append(f"{before}{one.explain_line()}{shown}")
        for at, below in enumerate(one.inputs):
            last = at == len(one.inputs) - 1
            add_lines(below, f"{bar}{'+- ' if last else ':- '}", f"{bar}{'   ' if last else ':  '}")

    add_lines(relation, "", "")
    return "\n".join(" " * indent + line for line in lines)


__all__ = ["plan_text"]
