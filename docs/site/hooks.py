"""What the site adds to the pages in docs/: navigation, the pages at the root, the examples, and the API reference.

The navigation is docs/README.md: its headings are the sections, its links the pages. The API reference has a page for
each package of tests/golden/public_api.txt, and one for rayflink.testing. Links that leave docs/ lead to pages made
here.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
BESIDE = {"ARCHITECTURE.md": "architecture.md", "CHANGELOG.md": "changelog.md", "benchmarks/README.md": "benchmarks.md"}
"""Pages outside docs/, and what they are called on the site."""
NAMES = "../tests/golden/public_api.txt"
"""The list of public names; on the site the API reference stands for it."""
FIRST = ("StreamExecutionEnvironment", "DataStream", "KeyedStream", "WindowedStream", "ConnectedStreams")
"""Names that come first on the page of their package."""
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```", re.M | re.S)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Read the navigation from docs/README.md."""
    index = Path(config.docs_dir, "README.md").read_text(encoding="utf-8")
    config.nav = [{"rayflink": "README.md"}]
    for section in re.split(r"^## ", index, flags=re.M)[1:]:
        title, _, body = section.partition("\n")
        pages = []
        for name, target in _LINK.findall(body):
            if target == "../examples":
                pages += [{path.stem.replace("_", " "): f"examples/{path.stem}.md"} for path in examples()]
            elif target == NAMES:
                pages += [{package: f"api/{package}.md"} for package in public_names()]
            else:
                pages.append({name: BESIDE.get(target.removeprefix("../"), target)})
        config.nav.append({title.strip(): pages})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    for source, target in BESIDE.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text(encoding="utf-8")))
    for path in examples():
        code = path.read_text(encoding="utf-8")
        drawing = f"pictures/{path.stem}.svg"
        picture = f"![The job graph of {path.stem}](../{drawing})\n\n" if files.get_file_from_path(drawing) else ""
        content = f"# {path.stem.replace('_', ' ')}\n\n{picture}`examples/{path.name}`\n\n```python\n{code}```\n"
        files.append(File.generated(config, f"examples/{path.stem}.md", content=content))
    for package, names in public_names().items():
        members = "\n\n".join(f"::: {package}.{name}" for name in names)
        files.append(File.generated(config, f"api/{package}.md", content=f"# {package}\n\n{members}\n"))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to files of the repository into links to pages; what has no page is named by its path."""
    origin = {name: source for source, name in BESIDE.items()}.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def led(link: re.Match[str]) -> str:
        name, target = link.groups()
        path, _, anchor = target.partition("#")
        if not path or "://" in path or path.startswith("mailto:"):
            return link[0]
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
        found = page_of(wanted)
        if found is None:
            if not (ROOT / wanted).exists():
                raise PluginError(f"{origin}: the link to {target} leads nowhere")
            return name if wanted in name else f"{name} (`{wanted}`)"
        here = posixpath.relpath(found, posixpath.dirname(page.file.src_uri) or ".")
        return f"[{name}]({here}{'#' + anchor if anchor else ''})"

    pieces = []
    end = 0
    for code in _CODE.finditer(markdown):
        pieces += [_LINK.sub(led, plain(markdown[end : code.start()])), code[0]]
        end = code.end()
    return "".join([*pieces, _LINK.sub(led, plain(markdown[end:]))])


def plain(markdown: str) -> str:
    """Text with `][` in it, which is no reference to another page here."""
    return markdown.replace("][", "]\\[")


def page_of(path: str) -> str | None:
    """The page of the site for a path from the root of the repository."""
    if path in BESIDE:
        return BESIDE[path]
    if path == "README.md":
        return "README.md"
    if path == "examples":
        return "examples/word_count.md"
    if path == NAMES.removeprefix("../"):
        return "api/rayflink.datastream.md"
    if path.startswith("examples/") and path.endswith(".py"):
        return path.removesuffix(".py") + ".md"
    return path.removeprefix("docs/") if path.startswith("docs/") and (ROOT / path).exists() else None


def examples() -> list[Path]:
    """The examples, the first one to read first."""
    return sorted((ROOT / "examples").glob("*.py"), key=lambda path: (path.stem != "word_count", path.stem))


def public_names() -> dict[str, list[str]]:
    """The names of each package that are described on its page; a name of several packages is on the first page."""
    found: dict[str, list[str]] = {}
    for package, name in _listed():
        found.setdefault(package, []).append(name)
    first = ("rayflink.datastream.functions", "rayflink.datastream.state", "rayflink.datastream.window")
    seen: set[str] = set()
    described = {}
    for package in [*first, *sorted(set(found) - set(first))]:
        names = [name for name in found[package] if name not in seen]
        names.sort(key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))
        seen.update(names)
        if names:
            described[package] = names
    return dict(sorted(described.items()))


def _listed() -> Iterator[tuple[str, str]]:
    lines = (ROOT / "docs" / NAMES).read_text(encoding="utf-8").splitlines()
    for line in lines:
        package, _, name = line.partition("(")[0].rpartition(".")
        if package != "rayflink" and package.rpartition(".")[2][:1].islower():  # not a method, not a second name
            yield package, name
    kit = ast.parse((ROOT / "rayflink" / "testing" / "__init__.py").read_text(encoding="utf-8")).body[-1]
    assert isinstance(kit, ast.Assign) and ast.unparse(kit.targets[0]) == "__all__"
    yield from (("rayflink.testing", name) for name in ast.literal_eval(kit.value))
