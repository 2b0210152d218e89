"""The files of the dashboard: what is served, with which headers, and what is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rayflink.cluster.pages.static_pages import FILES, StaticPages
from rayflink.serving.json_requests import FileAnswer, JsonRequest, Refusal, Role


def ask(name: str, headers: dict[str, str] | None = None) -> FileAnswer:
    route = next(route for route in StaticPages().routes() if route.pattern == "/ui/{name}")
    answer = route.answer(JsonRequest(f"/ui/{name}", {"name": name}, {}, b"", headers or {}))
    assert isinstance(answer, FileAnswer)
    return answer


def test_files_have_their_type_and_a_tag_and_need_no_token() -> None:
    script = ask("main.js")
    assert script.media_type == "text/javascript; charset=utf-8" and script.headers["cache-control"] == "no-cache"
    assert all(route.role is Role.NONE and route.method == "GET" for route in StaticPages().routes())
    again = ask("main.js", {"if-none-match": f'"other", W/{script.headers["etag"]}'})
    assert (again.status, again.content) == (304, b"")


@pytest.mark.parametrize("name", ["../static_pages.py", "..", "", "/etc/passwd", "%2e%2e", "static_pages.py", "a\0b"])
def test_no_name_leads_to_another_file(name: str) -> None:
    with pytest.raises(Refusal, match="404"):
        ask(name)


def test_pages_load_nothing_from_elsewhere_and_write_no_markup() -> None:
    for path in Path(FILES).iterdir():
        text = path.read_text()
        links = set(re.findall(r"https?://[^\s\"'`)]+", text)) - {"http://www.w3.org/2000/svg"}
        assert not links, f"{path.name} names {links}"
        for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert forbidden not in text, f"{path.name} has {forbidden}"
        for module in re.findall(r'from "\./([\w.]+)"', text):
            assert (FILES / module).is_file(), f"{path.name} imports {module}"
    index = (FILES / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|style=", index), "the policy lets nothing in the page run"
