"""Places in the project's files that a text names, and whether they still say the same.

`src/auth.py:12`, `src/auth.py:12-20`, `src/auth.py#L12-L20` and `src/auth.py#login` are citations.
What only looks like one (`example.com:443`, `12:30`, `16:9`, `v1.2:3`) is passed over here, or has
never been a file of the project, which whoever asks git finds out.
"""

import re
from collections.abc import Sequence

from mimo.frozen import frozen

MOST = 50
"""Citations of one text that are looked at."""

_URL = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://\S*")
_CITATION = re.compile(
    r"(?<![\w.@+~/\\:#-])"
    r"((?:[\w.@+-]++/)*+[\w.@+-]++)"
    r"(?::(\d{1,7})(?:[-–](\d{1,7}))?(?::\d+)?|#L(\d{1,7})(?:-L?(\d{1,7}))?|#([A-Za-z_][\w.-]*\w|\w))"
    r"(?![\w/]|:\d|\.\d)"
)
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,9}")
_NAMED = frozenset({"Makefile", "Dockerfile", "Justfile", "Rakefile", "Gemfile", "Procfile"})
_HOSTS = frozenset({".com", ".org", ".net", ".edu", ".gov", ".local", ".localhost"})
_ABBREVIATED = frozenset({"i.e", "e.g", "a.m", "p.m", "cf"})
_WORD = re.compile(r"\w+")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)


@frozen
class Citation:
    """A place in a file: lines, or something that has a name."""

    text: str
    """As it was written."""
    path: str
    """With `/`, as it was written; below the project's root if it is one of its files."""
    first: int = 0
    """From 1; 0 where a name is cited."""
    last: int = 0
    symbol: str = ""


def citations(text: str) -> tuple[Citation, ...]:
    """Returns the places that a text cites, each once, in their order; at most `MOST`."""
    found: dict[Citation, None] = {}
    for match in _CITATION.finditer(_URL.sub(" ", text)):
        if (one := _citation(match)) is not None:
            found[one] = None
            if len(found) == MOST:
                break
    return tuple(found)


def _citation(match: re.Match[str]) -> Citation | None:
    path = match[1].removeprefix("./")
    if not _is_file(path):
        return None
    if match[6]:
        return Citation(text=match[0], path=path, symbol=match[6])
    first = int(match[2] or match[4])
    last = int(match[3] or match[5] or first)
    return Citation(text=match[0], path=path, first=first, last=last) if 0 < first <= last else None


def _is_file(path: str) -> bool:
    """Returns whether a word may be the path of a file below the project."""
    *folders, name = path.split("/")
    if name in _NAMED:
        return True
    stem, dot, extension = name.rpartition(".")
    ending = f"{dot}{extension}"
    hosted = not folders and ending.lower() in _HOSTS
    odd = name.lower() in _ABBREVIATED or ".." in folders or "." in folders
    return bool(stem and _EXTENSION.fullmatch(ending)) and not (hosted or odd)


def changed(citation: Citation, then: str, now: str | None) -> str | None:
    """Returns what became of a cited place, in words; None where it says the same or never did.

    `then` and `now` are the file's text, `now` None where it is gone. Lines that only moved, or
    were indented anew, say the same.
    """
    if citation.symbol:
        if not _names(then, citation):
            return None
        if now is None:
            return f"{citation.path} is gone"
        return None if _names(now, citation) else f"{citation.symbol} is gone from {citation.path}"
    every = _lines(then)
    cited = every[citation.first - 1 : citation.last]
    if citation.last > len(every) or not any(_WORD.search(line) for line in cited):
        return None
    if now is None:
        return f"{citation.path} is gone"
    if _times(cited, _lines(now)) >= _times(cited, every):
        return None
    one = citation.first == citation.last
    which = f"line {citation.first}" if one else f"lines {citation.first}-{citation.last}"
    return f"{which} of {citation.path} changed"


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def _times(block: Sequence[str], lines: Sequence[str]) -> int:
    """Returns how often a block of lines stands in a text."""
    size, found, place = len(block), 0, 0
    while place + size <= len(lines):
        same = lines[place] == block[0] and list(lines[place : place + size]) == list(block)
        found += same
        place += size if same else 1
    return found


def _names(text: str, citation: Citation) -> bool:
    """Returns whether a file has something of that name: a word of it, or a heading's anchor."""
    name = citation.symbol.rpartition(".")[2]
    if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text):
        return True
    if not citation.path.lower().endswith((".md", ".markdown")):
        return False
    return any(_anchor(title) == citation.symbol.lower() for title in _HEADING.findall(text))


def _anchor(title: str) -> str:
    """Returns a heading as forges link to it."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.strip().replace(" ", "-")
