"""Real notes, with natural questions: those of the teams in `bench/asks`, among other notes.

The others are cut from Markdown that is on any machine: the pages of this project, and those that
describe the installed packages. Where more are needed, a note has a part of two of these.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator
from datetime import datetime, timedelta
from importlib.metadata import distributions
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

_TEAMS = ("data", "embedded", "infra", "kiosk", "meter", "mobile", "web")
_NATURAL = {"paraphrase", "near", "far", "plain", "why"}
_LEAST, _MOST = 58, 80
"""The words of a note, 63 in the mean."""
_NO_TEXT = re.compile(r"^(```|~~~|\||<|!\[|\[!?|    |#+ *$)")


HANDLE = re.compile(r"_note_20260301_([a-z]{6})")
"""The end of a name, which says nothing about the text."""


class Note(NamedTuple):
    """A note."""

    name: str
    type: str
    title: str
    text: str

    def file(self) -> str:
        """Returns the file that `mind add` would write, each a second after the one before."""
        number = sum((ord(letter) - 97) * 26**n for n, letter in enumerate(self.name[-6:]))
        created = datetime(2026, 3, 1, 9) + timedelta(seconds=number)
        header = f"id: {self.name}\ntype: {self.type}\ncreated: {created.isoformat()}Z"
        return f"---\n{header}\n---\n# {self.title}\n\n{self.text}\n"


def _name(type: str, number: int) -> str:
    letters = "".join(chr(97 + number // 26**place % 26) for place in range(6))
    return f"{type}_note_20260301_{letters}"


class Question(NamedTuple):
    """A question, and the handles of the notes that answer it."""

    text: str
    right: frozenset[str]


def labelled() -> tuple[list[Note], list[Question]]:
    """Returns the notes of the teams, and questions in other words than theirs."""
    known: list[Note] = []
    asked: list[Question] = []
    for team in _TEAMS:
        path = Path(__file__).parent / "asks" / f"{team}.toml"
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        old = {row.get("supersedes") for row in data["memory"]}
        names = {}
        for row in data["memory"]:
            if row["key"] not in old and not row.get("home"):
                names[row["key"]] = name = _name(row["type"], len(known))
                text = f"{row['content'].strip()}\n\n{row.get('reasoning', '').strip()}".strip()
                title = row.get("title") or text.partition("\n")[0][:80]
                known.append(Note(name, row["type"], title, text))
        for row in data["question"]:
            right = frozenset(names[key][-6:] for key in row["answers"] if key in names)
            if right and row["kind"] in _NATURAL:
                asked.append(Question(row["ask"], right))
    return known, asked


def notes(size: int, more: Path | None = None) -> tuple[list[Note], list[Question]]:
    """Returns that many notes, with those of the teams, and the questions about them.

    More Markdown to cut notes from may be in a folder.
    """
    known, asked = labelled()
    others = islice(_others(more), max(0, size - len(known)))
    for number, (title, text) in enumerate(others, len(known)):
        type = ("fact", "decision", "insight")[number % 3]
        known.append(Note(_name(type, number), type, title, text))
    return known, asked


def _others(more: Path | None) -> Iterator[tuple[str, str]]:
    """Yields titles and texts without an end, each another one."""
    real = list(dict.fromkeys(cut for page in _pages(more) for cut in cuts(page)))
    random.Random(1).shuffle(real)
    yield from real
    for number in count():
        (title, first), (_, second) = random.Random(number).sample(real, 2)
        yield title, f"{_half(first, 0)}\n\n{_half(second, 1)}"


def _half(text: str, which: int) -> str:
    words = text.split(" ")
    middle = len(words) // 2
    return " ".join(words[middle:] if which else words[:middle])


def _pages(more: Path | None) -> Iterator[str]:
    root = Path(__file__).parents[1]
    folders = [root / "docs", root / "mimo", *([more] if more else [])]
    for path in sorted(path for folder in folders for path in folder.rglob("*.md")):
        yield path.read_text(encoding="utf-8", errors="replace")
    for package in sorted(distributions(), key=lambda each: each.name):
        yield package.read_text("METADATA") or ""


def cuts(page: str) -> Iterator[tuple[str, str]]:
    """Yields the nearest heading and the text of each piece of a page, code and tables left out."""
    title, words, is_code = "", list[str](), False
    for line in page.splitlines():
        is_code ^= line.startswith(("```", "~~~"))
        if line.startswith("#") and not is_code:
            title, words = line.strip("# "), []
        elif not is_code and not _NO_TEXT.match(line):
            words += line.split()
        if title and len(words) >= _LEAST:
            yield title, " ".join(words[:_MOST])
            words = []


def longest(text: str, most: int = 3) -> list[str]:
    """Returns the longest words of a text, such as a person looks for in files."""
    return sorted(set(re.findall(r"[a-z]+", text.lower())), key=len, reverse=True)[:most] or [text]
