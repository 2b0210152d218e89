"""Figures of the code's structure and language, and the limits that hold them: `python -m tests.house [--write]`.

`tests/house_limits.json` has a limit for each figure that may only fall. `--write` lowers the limits to today's
figures; it never raises one.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.source_files import EVERYTHING, PRODUCT, ROOT, SourceFile, source_files

LIMITS = Path(__file__).with_name("house_limits.json")
NAMES_OF_ANY = ("rayflink.user_types.", "rayflink.table.parsing.statements.Tree")
"""Documented aliases of `Any`: objects of the user's program, trees of sqlglot."""
GENERATED = {"configuration.md", "failures.md", "sql-functions.md", "flink-semantics.md"}
NAMED_TUPLE_METHODS = {"_asdict", "_field_defaults", "_fields", "_make", "_replace"}
MOST_PROSE = 100
"""Characters in a line of prose."""
MOST_NAME = 80
"""Characters in the name of a test."""
MOST_SHOWN = 10
"""Places that are printed of a figure above its limit."""
OPENINGS = ("What", "Whether", "Of", "As", "So", "By", "How", "Which", "Who", "Where", "When", "That", "From")
"""Words that open a docstring which is no sentence."""
VAGUE_NAMES = ("one", "at", "found", "made", "given", "held", "kept", "of")
"""Names of variables and arguments that do not say what the thing is: `column`, `index`, `result` do."""
REPLACEMENTS = {
    r"told|tells": "describe, report",
    r"dealt|deals? out|dealing": "partition, distribute",
    r"texts": "strings",
    r"so many": "the number of",
    r"what of": "which part of",
    r"nobody": "no process, no user, nothing",
    r"of before": "earlier",
    r"besides": "also",
    r"goes by": "uses, follows",
}
"""Pattern of a private word -> what the field says."""
OLD_NAMES = {
    "told": "describe, or a noun such as reason or statistics",
    "_told": "_describe, or a noun",
    "dealt": "partitioned",
    "_dealt": "_hash_partitioned",
    "dealt_by": "required_distribution",
    "dealt_width": "partition_width",
    "DealingFunction": "PartitioningFunction",
    "texts": "strings",
    "KindsAsTexts": "KindsToStrings",
    "lent": "services",
    "scattered": "partition",
    "those_with": "faults_overriding",
    "drawn_from": "iterate_results",
    "admit": "insert_clean",
    "nowhere": "missing",
    "weigh": "estimate_bytes",
    "beacons": "step_markers",
    "asked_savepoints": "requested_savepoints",
    "ROUGH_NETWORK": "UNRELIABLE_NETWORK",
    "stands_still": "is_quiescent",
    "held_writes": "write_overlay",
    "unwritten_rows": "dirty_rows",
    "_warmed": "_promote",
    "_owe": "_add_unannounced",
    "_beside": "_keep_parallelism_if_changelog",
    "_one_input": "add_operator",
    "_lay_out": "_adopt_graph",
    "_after_its_end": "_on_event_after_end",
    "_abandoned": "_unresolved_publications",
    "_quiesced": "a phase of TaskPhase",
    "_ending": "a phase of TaskPhase",
    "_result_lost": "a phase of TaskPhase",
    "_drained_by": "a phase of TaskPhase",
    "Acceptance": "DeploymentGuard",
    "Accumulated": "JobAccumulators",
    "Appointment": "SlotAssignment",
    "AwaitingOperator": "AsyncOperator",
    "ChainLife": "ChainLifecycle",
    "Conversations": "ExchangeEndpoint",
    "Facilities": "TaskServices",
    "HeldRows": "ResultBuffer",
    "JobPast": "JobHistory",
    "LastCheckpoint": "FinalCheckpoint",
    "OvertakenRecords": "InFlightCapture",
    "Patience": "HangDetector",
    "Premises": "SlotProcess",
    "Screen": "DriverOutput",
    "Stamper": "a class of timestamp_assignment",
    "SteppedTask": "ScheduledTask",
    "Surroundings": "PeerDirectory",
    "WorkedBuffer": "CurrentBuffer",
}
"""Former name of a class, function, argument or variable -> the name that took its place; none comes back."""


def docstrings(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a file, its own and those of its classes and functions, each with its line."""
    for node in file.nodes:
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text


def old_names(file: SourceFile) -> Iterable[str]:
    """Yield "line: former name -> new name" for each former name that a file defines, imports or uses."""
    for node in file.nodes:
        for name in _identifiers(node):
            if name in OLD_NAMES:
                yield f"{getattr(node, 'lineno', 0)}: {name} -> {OLD_NAMES[name]}"


def _identifiers(node: ast.AST) -> Iterable[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        names = [name for alias in node.names for name in (alias.name, alias.asname) if name]
        yield from (part for name in names for part in name.split("."))


def vague_names(file: SourceFile) -> Iterator[tuple[str, str]]:
    """Yield each vague name that a file gives a variable or an argument, with its place."""
    for node in file.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VAGUE_NAMES:
            yield node.id, f"{file.name}:{node.lineno}"
        elif isinstance(node, ast.arg) and node.arg in VAGUE_NAMES:
            yield node.arg, f"{file.name}:{node.lineno}"


def opening(docstring: str) -> str:
    """Return the first word of a docstring.

    >>> opening("What it is."), opening("`x`: a value.")
    ('What', 'x')
    """
    found = re.search(r"[A-Za-z']+", docstring)
    return found[0] if found else ""


def any_annotations(files: Iterable[SourceFile]) -> list[str]:
    """Return the places of annotations of arguments and variables that are `Any`, or an alias of it.

    The aliases in `NAMES_OF_ANY` are left out: they name objects of the user's program or of a library without types.
    Every other alias of `Any` counts like `Any` itself, where it is defined and where it is imported.
    """
    product = list(files)
    aliases = {
        f"{file.module}.{name}"
        for file in product
        for name in re.findall(r"^(\w+)(?:: \w+)? = Any$", file.text(), re.MULTILINE)
    }
    return [place for file in product for place in _any_annotations(file, aliases)]


def _any_annotations(file: SourceFile, aliases: set[str]) -> list[str]:
    """Return the places in a file of annotations that are `Any` or one of the aliases (full names) that it can use."""
    used = {found.module for found in file.imports} | {name for name in aliases if name.startswith(f"{file.module}.")}
    hidden = {name.rpartition(".")[2] for name in used & aliases if not name.startswith(NAMES_OF_ANY)}
    return _matches(file.name, file.text(), rf": (?:{'|'.join(['Any', *sorted(hidden)])})\b")


def _matches(name: str, text: str, pattern: str, flags: int = 0) -> list[str]:
    """Return "name:line" of each match of a pattern in the text of a file."""
    lines = enumerate(text.splitlines(), 1)
    return [f"{name}:{number}" for number, line in lines for _ in re.finditer(pattern, line, flags)]


def private_reaches(file: SourceFile) -> list[str]:
    """Return the places of private attributes that a file uses of objects whose class it does not define.

    The documented methods of named tuples, which begin with an underscore, are left out.
    """
    own = {
        node.attr
        for node in file.nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
    }
    own |= {node.name for node in file.nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    annotated = [node.target for node in file.nodes if isinstance(node, ast.AnnAssign)]
    own |= {target.id for target in annotated if isinstance(target, ast.Name)}
    return [
        f"{file.name}:{node.lineno}"
        for node in file.nodes
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and node.attr not in own | NAMED_TUPLE_METHODS
    ]


def late_imports(file: SourceFile, known: set[str]) -> list[str]:
    """Return the places of lines within functions that import modules of this package."""
    lines = {found.line for found in file.imports if found.in_function and found.module in known}
    return [f"{file.name}:{line}" for line in sorted(lines)]


def import_circles(files: Iterable[SourceFile]) -> list[list[str]]:
    """Return the groups of modules that import each other when they are loaded."""
    known = {file.module for file in files}
    arrows = {file.module: _loaded_with(file, known) for file in files}
    return [group for group in _strong_components(arrows) if len(group) > 1]


def _loaded_with(file: SourceFile, known: set[str]) -> set[str]:
    """Return what a file imports when it is loaded; of `from package import module` the module."""
    for_types = {
        line
        for node in file.nodes
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    loaded = {found.module for found in file.imports if not found.in_function and found.line not in for_types} & known
    return loaded - {name.rpartition(".")[0] for name in loaded}


def _strong_components(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of a graph, by two searches (Kosaraju)."""
    back: dict[str, set[str]] = {name: set() for name in arrows}
    for name, targets in arrows.items():
        for target in targets:
            back[target].add(name)
    order: list[str] = []
    seen: set[str] = set()
    for start in arrows:
        _search(start, arrows, seen, order)
    seen.clear()
    groups = []
    for start in reversed(order):
        group: list[str] = []
        _search(start, back, seen, group)
        if group:
            groups.append(group)
    return groups


def _search(start: str, arrows: Mapping[str, set[str]], seen: set[str], finished: list[str]) -> None:
    """Append all nodes that can be reached and were not seen, each after those that it leads to."""
    stack = [] if start in seen else [(start, iter(arrows[start]))]
    seen.add(start)
    while stack:
        name, targets = stack[-1]
        following = next((target for target in targets if target not in seen), None)
        if following is None:
            finished.append(name)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(arrows[following])))


def prose_lines(page: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a Markdown page outside code blocks and tables; lines of one word do not count."""
    in_code = False
    for number, line in enumerate(page.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and not line.startswith(("    ", "|")) and " " in line.strip():
            yield number, line


def private_words(page: str) -> Iterator[int]:
    """Yield the number of the line of each private word in a Markdown page; names of code do not count."""
    pattern = rf"\b(?:{'|'.join(REPLACEMENTS)})\b"
    in_code = False
    for number, line in enumerate(page.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code:
            yield from (number for _ in re.finditer(pattern, re.sub(r"`[^`]*`", "", line), re.I))


def pages() -> list[Path]:
    """Return the Markdown pages that people write."""
    docs = [page for page in (ROOT / "docs").rglob("*.md") if page.name not in GENERATED]
    return sorted([*ROOT.glob("*.md"), *docs, ROOT / "benchmarks" / "README.md"])


def classes(files: Iterable[SourceFile]) -> list[tuple[int, int, int, str]]:
    """Return lines, methods, attributes and name of each class, the longest first."""
    found = []
    for file in files:
        for node in file.nodes:
            if isinstance(node, ast.ClassDef):
                methods = sum(isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)) for part in node.body)
                attributes = {
                    part.attr
                    for part in ast.walk(node)
                    if isinstance(part, ast.Attribute)
                    and isinstance(part.ctx, ast.Store)
                    and isinstance(part.value, ast.Name)
                    and part.value.id == "self"
                }
                lines = (node.end_lineno or 0) - node.lineno + 1
                found.append((lines, methods, len(attributes), f"{file.module}.{node.name}"))
    return sorted(found, reverse=True)


def offenders() -> dict[str, list[str]]:
    """Return the places that each figure counts, as "file:line"; those of import circles are modules."""
    product = source_files(PRODUCT)
    known = {file.module for file in product}
    opened: dict[str, list[str]] = {word: [] for word in OPENINGS}
    for file in product:
        for line, text in docstrings(file):
            opened.setdefault(opening(text), []).append(f"{file.name}:{line}")
    vague: dict[str, list[str]] = {name: [] for name in VAGUE_NAMES}
    for file in product:
        for name, place in vague_names(file):
            vague[name].append(place)
    private = [
        f"{page.relative_to(ROOT).as_posix()}:{number}"
        for page in pages()
        for number in private_words(page.read_text(encoding="utf-8"))
    ]
    long_prose = [
        f"{page.relative_to(ROOT).as_posix()}:{number}"
        for page in pages()
        for number, line in prose_lines(page.read_text(encoding="utf-8"))
        if len(line) > MOST_PROSE
    ]
    long_names = [
        f"{file.name}:{node.lineno}"
        for file in source_files(("tests",))
        for node in file.nodes
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and len(node.name) > MOST_NAME
    ]
    return {
        "annotations that are Any": any_annotations(product),
        "private members of other modules": [place for file in product for place in private_reaches(file)],
        "late imports of own modules": [place for file in product for place in late_imports(file, known)],
        "modules in import circles": [module for circle in import_circles(product) for module in circle],
        **{f"docstrings that begin with {word}": opened[word] for word in OPENINGS},
        **{
            f"'{pattern}' instead of {better}": [
                place for file in product for place in _matches(file.name, file.text(), rf"\b(?:{pattern})\b", re.I)
            ]
            for pattern, better in REPLACEMENTS.items()
        },
        **{f"variables and arguments named {name}": vague[name] for name in VAGUE_NAMES},
        "private words in prose": private,
        f"prose lines over {MOST_PROSE} characters": long_prose,
        f"names of tests over {MOST_NAME} characters": long_names,
    }


def shown(places: Iterable[str]) -> list[str]:
    """Return the first places, those in the files that were changed last before the others."""
    return sorted(places, key=_age)[:MOST_SHOWN]


def _age(place: str) -> float:
    path = ROOT / place.partition(":")[0]
    return -path.stat().st_mtime if path.exists() else 0.0


def limits() -> dict[str, int]:
    """Return the limits of the figures."""
    loaded: dict[str, int] = json.loads(LIMITS.read_text(encoding="utf-8")) if LIMITS.exists() else {}
    return loaded


def main(arguments: list[str]) -> None:
    """Print the figures beside their limits, and places of those above them; `--write` lowers the limits."""
    places, allowed = offenders(), limits()
    found = {name: len(where) for name, where in places.items()}
    for name, value in found.items():
        print(f"{value:6} (limit {allowed.get(name, '-')})  {name}")
        if value > allowed.get(name, value):
            print("".join(f"         {place}\n" for place in shown(places[name])), end="")
    product = source_files(PRODUCT)
    folders = Counter(file.path.parent.relative_to(ROOT).as_posix() for file in product)
    print(f"{len(product)} files, the largest folders: {dict(folders.most_common(6))}")
    for lines, methods, attributes, name in classes(source_files(PRODUCT))[:8]:
        print(f"{lines:6} lines, {methods} methods, {attributes} attributes: {name}")
    print(f"{len(source_files(EVERYTHING))} files with tests, benchmarks and examples")
    if "--write" in arguments:
        lowered = {name: min(value, allowed.get(name, value)) for name, value in found.items()}
        LIMITS.write_text(json.dumps(lowered, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
