"""What the site adds to the pages in docs/: navigation, the pages at the root, the examples, and the API reference.

The navigation is the end of docs/README.md: its headings are the sections, its links the pages. docs/site/api.yaml has
the pages of the API reference. Links that leave docs/ lead to pages made here.
"""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path

from api_pages import api_pages, overview
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
BESIDE = {"ARCHITECTURE.md": "architecture.md", "CHANGELOG.md": "changelog.md", "benchmarks/README.md": "benchmarks.md"}
"""Pages outside docs/, and what they are called on the site."""
CLUSTER = "cluster.yaml"
DECISIONS = "architecture/decisions/"
"""The folder of pages that their index leads to, not the navigation."""
NAVIGATION = "<!-- The navigation of the site"
"""Begins the comment in docs/README.md behind which its sections and pages stand."""
NAMES = "../tests/golden/public_api.txt"
"""The list of public names; on the site the API reference stands for it."""
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```", re.M | re.S)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Read the navigation from docs/README.md."""
    index = Path(config.docs_dir, "README.md").read_text(encoding="utf-8")
    config.nav = [{"rayflink": "README.md"}]
    navigation = index.partition(NAVIGATION)[2]
    for section in re.split(r"^## ", navigation, flags=re.M)[1:]:
        title, _, body = section.partition("\n")
        pages = []
        for name, target in _LINK.findall(body):
            if target == "../examples":
                pages += [{"Overview": "examples/index.md"}]
                pages += [{path.stem.replace("_", " "): f"examples/{path.stem}.md"} for path in examples()]
            elif target == NAMES:
                pages += [{"Overview": "api/index.md"}]
                pages += [{page.title: f"api/{page.name}.md"} for page in api_pages()]
            else:
                pages.append({name: BESIDE.get(target.removeprefix("../"), target)})
        config.nav.append({title.strip(): pages})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/, and leave single decisions to their index."""
    for file in files:
        if file.src_uri.startswith(DECISIONS) and file.src_uri != f"{DECISIONS}README.md":
            file.inclusion = InclusionLevel.NOT_IN_NAV
    for source, target in BESIDE.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text(encoding="utf-8")))
    for path in examples():
        code = path.read_text(encoding="utf-8")
        drawing = f"pictures/{path.stem}.svg"
        picture = f"![The job graph of {path.stem}](../{drawing})\n\n" if files.get_file_from_path(drawing) else ""
        content = f"# {path.stem.replace('_', ' ')}\n\n{picture}`examples/{path.name}`\n\n```python\n{code}```\n"
        files.append(File.generated(config, f"examples/{path.stem}.md", content=content))
    reference = {page.name: page.markdown() for page in api_pages()}
    for name, content in {"index": overview(api_pages()), **reference}.items():
        files.append(File.generated(config, f"api/{name}.md", content=content))
    cluster = f"# cluster.yaml\n\n[How do I deploy](deploy.md) uses it.\n\n```yaml\n{(ROOT / CLUSTER).read_text()}```\n"
    files.append(File.generated(config, "cluster.md", content=cluster, inclusion=InclusionLevel.NOT_IN_NAV))
    index = "".join(
        f"- [{path.stem.replace('_', ' ')}](../../examples/{path.name}): {purpose(path)}\n" for path in examples()
    )
    content = (
        f"# Examples\n\nEach runs as it is, says what it prints, and is run by a test that compares it.\n\n{index}"
    )
    files.append(File.generated(config, "examples/index.md", content=content))
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

    if page.file.src_uri == "api/index.md":  # made here, of references to names
        return _LINK.sub(led, markdown)
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
        return "examples/index.md"
    if path == CLUSTER:
        return "cluster.md"
    if path == NAMES.removeprefix("../"):
        return "api/index.md"
    if path.startswith("examples/") and path.endswith(".py"):
        return path.removesuffix(".py") + ".md"
    if path in {f"docs/api/{page.name}.md" for page in api_pages()}:
        return path.removeprefix("docs/")
    return path.removeprefix("docs/") if path.startswith("docs/") and (ROOT / path).exists() else None


def examples() -> list[Path]:
    """The examples, the first one to read first."""
    return sorted((ROOT / "examples").glob("*.py"), key=lambda path: (path.stem != "word_count", path.stem))


def purpose(example: Path) -> str:
    """What an example shows: the first line of its docstring."""
    return str(ast.get_docstring(ast.parse(example.read_text(encoding="utf-8")))).partition("\n")[0]
