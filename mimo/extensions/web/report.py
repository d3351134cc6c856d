"""`mind report`: the viewer and the memories in one HTML file, which needs no server.

The same memories give the same bytes. The file has no address of anything else, and its policy
permits only its own script and style, by their digests.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from mimo.api import (
    QUESTION_WORDS,
    Conflict,
    Invalid,
    NotFound,
    StorageFailed,
    disk,
    files,
    to_json,
)
from mimo.extensions.web import static_files
from mimo.extensions.web.answers import Contents
from mimo.extensions.web.markdown import rendered

MARK = "<!doctype html>\n<!-- A report of mind: `mind report` may replace this file. -->\n"
"""The beginning of each report, by which a later one knows that it may replace the file."""

MODULES = (
    *("errors.js", "dom.js", "format.js", "paging.js", "layout.js", "graph.js", "list.js"),
    *("memory.js", "timeline.js", "decisions.js", "pitfalls.js", "review.js", "app.js"),
    *("embedded.js", "report.js"),
)
"""The modules of the page, each after those that it imports."""

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([\w.]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)


def document(contents: Contents) -> str:
    """Returns the HTML of a report."""
    script, style = bundle(), _static("style.css")
    data = to_json(contents)
    data["stop"] = sorted(QUESTION_WORDS)
    data["pages"] = [_rendered(page) for page in data["pages"]]
    # As ASCII without `<` it ends no element, and no terminal or editor changes it.
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )
    page = "".join(_page_lines(policy, style))
    end = (
        f'<script type="application/json" id="data">{text}</script>\n'
        f'<script type="module">{script}</script>\n</body>'
    )
    return MARK + page.removeprefix("<!doctype html>\n").replace("</body>", end)


def _page_lines(policy: str, style: str) -> Iterator[str]:
    """Yields the lines of the page, without what only the server has."""
    for line in _static("index.html").splitlines(keepends=True):
        if line.startswith("<meta charset"):
            yield line
            yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        elif line.startswith('<link rel="stylesheet"'):
            yield f"<style>{style}</style>\n"
        elif not line.startswith(("<script", "<link", '<a href="/review"', '<a href="/sessions"')):
            yield line.replace('href="/', 'href="#/')


def bundle() -> str:
    """Returns all modules of the page as one, each in a function of its own."""
    parts = ["\nconst modules = {};\n"]
    for name in MODULES:
        text = _IMPORT.sub(r'const \1 = modules["\2"];\n', _static(name))
        exported = ", ".join(match[2] for match in _EXPORT.finditer(text))
        text = _EXPORT.sub(r"\1", text)
        parts.append(f'modules["{name}"] = (() => {{\n{text}return {{ {exported} }};\n}})();\n')
    return "".join(parts)


def _static(name: str) -> str:
    return static_files()[name].decode()


def _digest(text: str) -> str:
    return f"sha256-{b64encode(disk.sha256(text.encode())).decode()}"


def _rendered(page: dict[str, Any]) -> dict[str, Any]:
    """Returns the JSON of a page, smaller: Markdown as trees, links without their memories."""
    links = [{"id": link["id"], "type": link["type"]} for link in page["links"]]
    return {**rendered(page), "links": links}


def write(path: Path, text: str, *, force: bool, private: bool) -> None:
    """Writes a report.

    With `private`, only the user can read it. Raises `Conflict` for a file that is not a report,
    unless `force` is set, `Invalid` for a folder, a device, and in a `.mind/`, `NotFound` if its
    folder is missing, and `StorageFailed`.
    """
    files.check_output(path)
    if path.is_dir():
        raise Invalid(f"`{path}` is a folder", hint="name a file, such as report.html")
    if not path.parent.is_dir():
        raise NotFound(f"`{path.parent}` does not exist", hint="make the folder first")
    if not force and _is_foreign(path):
        raise Conflict(
            f"`{path}` exists and is not a report of mind", hint="choose another name, or --force"
        )
    if private:
        with files.written(path, over=True, mode=0o600) as file:
            file.write(text.encode())
    else:
        files.replace(path, text.encode())


def _is_foreign(path: Path) -> bool:
    """Returns whether a path has a file that is not a report."""
    mark = MARK.encode()
    if not os.path.lexists(path):
        return False
    with suppress(OSError), path.open("rb") as file:
        return path.is_symlink() or file.read(len(mark)) != mark
    raise StorageFailed(f"`{path}` can't be read")
