"""Logical plans as text."""

from __future__ import annotations

from .logical import Relation, Scan


def plan_text(relation: Relation, indent: int = 0) -> str:
    """Return a plan as Flink prints it: what gives the result first."""
    lines: list[str] = []

    def add_lines(node: Relation, before: str, bar: str) -> None:
        is_shown = node.view and not (isinstance(node, Scan) and node.known_path == node.view)
        shown = f" of view {'.'.join(node.view)}" if is_shown else ""
        lines.append(f"{before}{node.explain_line()}{shown}")
        for index, below in enumerate(node.inputs):
            last = index == len(node.inputs) - 1
            add_lines(below, f"{bar}{'+- ' if last else ':- '}", f"{bar}{'   ' if last else ':  '}")

    add_lines(relation, "", "")
    return "\n".join(" " * indent + line for line in lines)


__all__ = ["plan_text"]
