"""The rules of the house, read off the code: storeys, Ray's places, sizes, names, words, and a light import."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.source_files import EVERYTHING, PRODUCT, ROOT, Import, SourceFile, imports_of, source_files

# Imports go down only: a part may import parts with a smaller number, and itself. ARCHITECTURE.md has the same table.
STOREYS = {
    "rayflink": 15,
    "rayflink.__main__": 14,
    "rayflink.cli": 13,
    "rayflink.testing": 13,
    "rayflink.cluster": 12,
    "rayflink.gateway": 12,
    "rayflink.notebooks": 11,
    "rayflink.shell": 11,
    "rayflink.spark": 11,
    "rayflink.dbapi": 10,
    "rayflink.launch": 10,
    "rayflink.table": 9,
    "rayflink.cep": 8,
    "rayflink.datastream": 7,
    "rayflink.actors": 7,
    "rayflink.state_processor": 6,
    "rayflink.graph": 5,
    "rayflink.connectors": 4,
    "rayflink.operators": 3,
    "rayflink.metrics": 3,
    "rayflink.serving": 3,
    "rayflink.common": 2,
    "rayflink.state": 1,
    "rayflink.version": 0,
    "rayflink.user_types": 0,
}
# Inside a part with rooms, the lowest room first; the part's own files may be imported by all of them.
ROOMS = {
    "rayflink.actors": "exchange messages task checkpoints job local on_ray",
    "rayflink.state": "classes keys schema rocksdb storage",
    "rayflink.operators": "event_time keyed windows async_io",
    "rayflink.common": "data_types text_output user_code options functions records metrics connector_base",
    "rayflink.connectors": "file_systems files formats avro frames lakes delta iceberg http kafka message_logs redis "
    "message_queues nats rabbitmq mqtt cdc postgres mysql jdbc",
    "rayflink.cep": "nfa runtime",
    "rayflink.cluster": "jobs registry archives runners dispatcher rest pages",
    "rayflink.table": (
        "types plan parsing conversion functions user_functions catalog runtime binding dsl connectors optimizer "
        "explaining physical compiled_plans display statements descriptors"
    ),
    "rayflink.table.runtime": (
        "aggregates keyed_state windows joins ranks groups upserts matching lookups over processing"
    ),
    "rayflink.table.functions": "casts times",
}
LATE_ROOMS = {("files", "formats"), ("plan", "functions")}
FRONT_ENDS = {"rayflink.datastream", "rayflink.table"}

MOST_LINES_A_FILE = 600
MOST_FILES_A_FOLDER = 30
MOST_LINES_A_FUNCTION = 60
LEAST_LINES_OF_A_ROOM = 5
"""Lines of the docstring of a folder's `__init__.py`, which says what is in it and what is not."""
MOST_PARAMETERS = 6
BANNED_NAMES = {"common", "helper", "helpers", "impl", "manager", "managers", "util", "utils"}
# Written so that no pattern matches itself.
BANNED_WORDS = re.compile(
    r"/wor[k]/|/roo[t]/|/tmp/helper[s]|\bTOD[O]\b|\bFIXM[E]\b|\bXX[X]\b|\bsimplifie[d]\b.*\bfor no[w]\b"
    r"|\bissu[e] #?\d|\bsub-?agen[t]|\bste[p] \d of\b",
)
HEAVY = {"ray", "pyarrow", "polars", "pandas", "sqlglot", "pyspark", "raydp", "rocksdict", "cloudpickle",
         "msgspec"}  # fmt: skip
IMPORT_SECONDS = 0.2


def part_of(module: str) -> str:
    """The part a module of ours belongs to: its first two names, or `rayflink` itself."""
    return ".".join(module.split(".")[:2])


def broken_storeys(module: str, imports: list[Import], known: set[str]) -> list[str]:
    """What a module imports against the rule of the storeys.

    Args:
        module: the importing module's name.
        imports: all its imports.
        known: names of all our modules; a name below one of them is not a module.
    """
    part, broken = part_of(module), []
    for found in imports:
        if found.module == "rayflink" or not found.module.startswith("rayflink."):
            continue
        exported = found.module not in known and found.module.count(".") == 1
        target = "rayflink" if exported else part_of(found.module)
        if target == part or (found.module not in known and not exported):
            continue
        late_launch = found.in_function and target == "rayflink.launch" and part in FRONT_ENDS
        fronts_meet_actors = part in FRONT_ENDS and target == "rayflink.actors"
        if fronts_meet_actors or not (late_launch or STOREYS[target] < STOREYS[part]):
            broken.append(f"{module}:{found.line} imports {found.module}; {part} may import only what lies below it")
    return broken


def room_of(module: str, package: str, packages: set[str]) -> str:
    """Return the room of a package that a module lies in: a folder directly below it, or "" for its root.

    >>> room_of("rayflink.state.keys.key_hash", "rayflink.state", {"rayflink.state.keys"})
    'keys'
    """
    first = module[len(package) + 1 :].split(".")[0]
    return first if f"{package}.{first}" in packages else ""


def broken_rooms(package: str, rooms: str, files: list[SourceFile]) -> list[str]:
    """Return the imports between rooms of a package that do not go down.

    Args:
        package: a package with rooms.
        rooms: their names, the lowest first.
        files: the product's files.
    """
    known = {file.module for file in files}
    packages = {file.module for file in files if file.path.stem == "__init__"}
    rank = {room: number for number, room in enumerate(rooms.split())}
    broken = []
    for file in files:
        own = room_of(file.module, package, packages) if file.module.startswith(f"{package}.") else ""
        for found in file.imports if own else ():
            target = found.module if found.module in known else found.module.rpartition(".")[0]
            other = room_of(target, package, packages) if target.startswith(f"{package}.") else ""
            is_late_in_table = found.in_function and (own, other) in LATE_ROOMS
            if other and rank[other] > rank[own] and not is_late_in_table:
                broken.append(f"{file.name}:{found.line} imports {target}; {own} may import only rooms below it")
    return broken


def may_import_ray(module: str) -> bool:
    """Ray's runner does, and the session of Spark, which RayDP starts as actors of Ray."""
    return module.startswith("rayflink.actors.on_ray.") or module == "rayflink.spark.ray_session"


def is_ray(name: str) -> bool:
    return name.split(".")[0] == "ray"


def product_imports() -> Iterator[tuple[SourceFile, list[Import]]]:
    for file in source_files(PRODUCT):
        yield file, list(file.imports)


def functions(file: SourceFile) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in file.nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from the first statement after the docstring to the last."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Parameters a caller may pass one by one, `self` and `cls` not counted."""
    arguments = function.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def bears_a_pyflink_signature(file: SourceFile, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Public functions and constructors of the front ends have PyFlink's parameters, or RayDP's, however many."""
    is_public = function.name == "__init__" or not function.name.startswith("_")
    return is_public and part_of(file.module) in {*FRONT_ENDS, "rayflink.spark"}


def test_every_part_has_a_storey():
    parts = {part_of(file.module) for file in source_files(PRODUCT)}
    assert parts == set(STOREYS), "every part needs a storey in STOREYS, and every storey a part"


def test_imports_go_down_only():
    known = {file.module for file in source_files(PRODUCT)}
    broken = [
        line
        for file, imports in product_imports()
        if file.module != "rayflink"
        for line in broken_storeys(file.module, imports, known)
    ]
    assert not broken, "\n".join(broken)


def test_one_place_at_most_imports_launch_late():
    late = [
        f"{file.name}:{found.line}"
        for file, imports in product_imports()
        for found in imports
        if part_of(file.module) in FRONT_ENDS and found.module == "rayflink.launch"
    ]
    assert len(late) <= 1, late


@pytest.mark.parametrize("package", ROOMS)
def test_imports_between_rooms_go_down_only(package):
    broken = broken_rooms(package, ROOMS[package], list(source_files(PRODUCT)))
    assert not broken, "\n".join(broken)


def test_every_room_has_its_place():
    packages = {file.module for file in source_files(PRODUCT) if file.path.stem == "__init__"}
    for package, rooms in ROOMS.items():
        assert {name for name in packages if name.rpartition(".")[0] == package} == {
            f"{package}.{room}" for room in rooms.split()
        }


def test_folders_are_small():
    counts = Counter(file.path.parent.relative_to(ROOT).as_posix() for file in source_files(EVERYTHING))
    full = {folder: count for folder, count in counts.items() if count > MOST_FILES_A_FOLDER}
    assert not full, (
        f"at most {MOST_FILES_A_FOLDER} files a folder: move those of one topic into a folder below it, whose "
        f"__init__.py says what is in it, or move what does not belong there: {full}"
    )


def test_every_folder_says_what_it_holds():
    silent = [
        file.name
        for file in source_files((*PRODUCT, "benchmarks"))
        if file.path.stem == "__init__"
        and len((ast.get_docstring(file.tree) or "").splitlines()) < LEAST_LINES_OF_A_ROOM
    ]
    assert not silent, (
        f"at least {LEAST_LINES_OF_A_ROOM} lines in the docstring of an __init__.py: say what is in the folder, "
        f"what enters and leaves, and what does not belong there: {silent}"
    )


def test_only_one_folder_imports_ray():
    broken = [
        f"{file.name}:{found.line} imports {found.module}"
        for file, imports in product_imports()
        for found in imports
        if is_ray(found.module) and not may_import_ray(file.module)
    ]
    assert not broken, "only actors/on_ray/ imports ray:\n" + "\n".join(broken)


def test_benchmarks_import_nothing_of_the_tests():
    """A benchmark ships what it imports to Ray, with all that lies beside it."""
    for file in source_files(("benchmarks",)):
        found = [f"{file.name}:{each.line}" for each in file.imports if each.module.partition(".")[0] == "tests"]
        assert not found, f"what both need belongs in benchmarks/servers: {found}"


def test_the_folders_at_the_root_are_imported_through_rayflink_only():
    broken = [
        f"{file.name}:{node.lineno}"
        for file in source_files(EVERYTHING)
        if re.search(r"^\s*(?:from\s+|import\s+(?:.*,\s*)?)(?:actors|state)\b", file.text(), re.M)
        for node in file.nodes
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
        if name.split(".")[0] in {"actors", "state"}
    ]
    assert not broken, f"import rayflink.actors and rayflink.state instead: {broken}"


def test_imports_are_relative_inside_a_root_folder_and_absolute_across():
    broken = []
    for file in source_files(PRODUCT):
        folder = file.name.split("/")[0]
        for node in file.nodes:
            if not isinstance(node, ast.ImportFrom) or not node.level:
                continue
            depth = len(file.package.split(".")) - (2 if folder != "rayflink" else 1)
            if node.level - 1 > depth:
                broken.append(f"{file.name}:{node.lineno} leaves {folder}/ by dots; write rayflink.<part>")
            target = (node.module or "").split(".")[0]
            if folder == "rayflink" and node.level - 1 == depth and target in {"actors", "state"}:
                broken.append(f"{file.name}:{node.lineno} enters {target}/ by dots; write rayflink.{target}")
    assert not broken, "\n".join(broken)


def test_files_are_short():
    long = [
        f"{file.name}: {lines} lines"
        for file in source_files(EVERYTHING)
        if (lines := len(file.text().splitlines())) > MOST_LINES_A_FILE
    ]
    assert not long, f"at most {MOST_LINES_A_FILE} lines a file:\n" + "\n".join(long)


@pytest.mark.slow  # reads the whole tree
def test_functions_are_short():
    long = [
        f"{file.name}:{function.lineno} {function.name}: {lines} lines"
        for file in source_files(EVERYTHING)
        for function in functions(file)
        if (lines := body_lines(function)) > MOST_LINES_A_FUNCTION
    ]
    assert not long, f"at most {MOST_LINES_A_FUNCTION} lines a function:\n" + "\n".join(long)


def test_functions_take_few_parameters():
    wide = [
        f"{file.name}:{function.lineno} {function.name}: {count} parameters"
        for file in source_files(PRODUCT)
        for function in functions(file)
        if (count := parameters(function)) > MOST_PARAMETERS and not bears_a_pyflink_signature(file, function)
    ]
    assert not wide, f"more than {MOST_PARAMETERS} parameters want a frozen options value:\n" + "\n".join(wide)


def test_files_are_named_after_what_they_hold():
    vague = [file.name for file in source_files(EVERYTHING) if file.path.stem.split("_")[-1] in BANNED_NAMES]
    assert not vague, vague


@pytest.mark.slow
def test_the_project_speaks_of_itself_alone():
    texts = [file.path for file in source_files(EVERYTHING)]
    texts += [*ROOT.glob("*.md"), *ROOT.glob("*.toml"), *ROOT.glob("*.yaml"), ROOT / "Makefile"]
    texts += [*(ROOT / ".ci").iterdir(), *(ROOT / "docs").rglob("*.md")]
    found = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
        for path in texts
        for text in [path.read_text(encoding="utf-8")]
        for match in BANNED_WORDS.finditer(text)
    ]
    assert not found, "\n".join(found)


def test_no_exception_is_swallowed_whole():
    broken = [
        f"{file.name}:{node.lineno}"
        for file in source_files(EVERYTHING)
        if re.search(r"^\s*pass$", file.text(), re.M) and "except" in file.text()
        for node in file.nodes
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}))
        and all(isinstance(statement, ast.Pass) for statement in node.body)
    ]
    assert not broken, broken


def run_python(code: str) -> str:
    finished = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return finished.stdout


def test_importing_rayflink_loads_nothing_heavy():
    loaded = run_python("import sys, rayflink; print(*{name.split('.')[0] for name in sys.modules})").split()
    assert "rayflink" in loaded
    assert not HEAVY & set(loaded)


@pytest.mark.slow
def test_importing_rayflink_is_quick():
    code = "import time; start = time.perf_counter(); import rayflink; print(time.perf_counter() - start)"
    run_python(code)  # compiles
    assert statistics.median(float(run_python(code)) for _ in range(5)) < IMPORT_SECONDS


# The checks themselves.

KNOWN = {
    "rayflink",
    "rayflink.actors.task.task",
    "rayflink.common.time",
    "rayflink.datastream",
    "rayflink.datastream.streams.stream",
    "rayflink.launch",
    "rayflink.state",
    "rayflink.state.errors",
    "rayflink.table.environment",
}


@pytest.mark.parametrize(
    ("module", "code", "allowed"),
    [
        ("rayflink.common.time", "from rayflink.state.errors import StateError", True),
        ("rayflink.state.errors", "from rayflink.common.time import Time", False),
        ("rayflink.state.errors", "def f():\n    import rayflink.common.time", False),
        ("rayflink.datastream.streams.stream", "from rayflink.actors import task", False),
        ("rayflink.datastream.x", "import importlib\nimportlib.import_module('rayflink.actors.task.task')", False),
        ("rayflink.datastream.streams.stream", "def f():\n    from rayflink.launch import launch", True),
        ("rayflink.datastream.streams.stream", "from rayflink.launch import launch", False),
        ("rayflink.actors.task.task", "def f():\n    from rayflink.launch import launch", False),
        ("rayflink.actors.task.task", "from rayflink.datastream.streams.stream import DataStream", False),
        ("rayflink.table.environment", "from ..datastream.streams import DataStream", True),
        ("rayflink.datastream.streams.stream", "from ...table.environment import TableEnvironment", False),
        ("rayflink.common.time", "from rayflink import state", True),
        ("rayflink.common.time", "from rayflink import Types", False),
        ("rayflink.launch", "from rayflink.actors.task.task import StreamTask\nfrom .datastream import streams", True),
    ],
)
def test_the_storey_rule_sees(module, code, allowed):
    found = list(imports_of(ast.parse(code), module.rpartition(".")[0]))
    assert (broken_storeys(module, found, KNOWN) == []) is allowed


@pytest.mark.parametrize(
    "code", ["import ray", "def f():\n    import ray.util", "from ray import remote", "__import__('ray.actor')"]
)
def test_every_way_to_import_ray_is_seen(code):
    assert any(is_ray(found.module) for found in imports_of(ast.parse(code), "rayflink.actors"))


def test_function_length_counts_no_docstring_and_parameters_no_self():
    tree = ast.parse('class A:\n  def f(self, a, *, b=1):\n    """Doc.\n\n    More."""\n    x = 1\n    return x\n')
    function = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    assert (body_lines(function), parameters(function)) == (2, 2)


@pytest.mark.parametrize(
    "line", ["see /wor" + "k/main", "TOD" + "O: later", "simplified, for n" + "ow", "as issu" + "e 2 says"]
)
def test_banned_words_are_seen(line):
    assert BANNED_WORDS.search(line)
