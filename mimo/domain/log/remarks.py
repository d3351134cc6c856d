"""Memories among other texts: `MEMORY:` in comments of code, four words in commit messages."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache

from mimo.domain.log import grammar
from mimo.domain.log.entries import identified, said
from mimo.domain.memory import Kind, Memory, Place, Record

_HASH, _SLASHES, _ARROWS, _DASHES, _SEMICOLONS, _PERCENT = (
    "#", "//|/\\*+|\\*", "<!--|//|/\\*+|\\*", "--", ";+", "%+",
)  # fmt: skip
_COMMENTS = {
    _HASH: "py pyi sh bash zsh fish rb pl r jl yml yaml toml ini cfg conf tf ex exs nix mk cmake",
    _SLASHES: "js jsx mjs cjs ts tsx go rs java kt kts scala c h cc cpp hpp cs swift dart php css"
    " scss less proto groovy gradle zig v",
    _ARROWS: "html htm xml svg vue svelte astro md",
    _DASHES: "sql lua hs elm ada adb ads",
    _SEMICOLONS: "clj cljs lisp el scm asm",
    _PERCENT: "tex erl hrl m",
}
_MARKS = {ending: marks for marks, endings in _COMMENTS.items() for ending in endings.split()}
_ANY = f"{_HASH}|{_SLASHES}"

_WORDS = {
    "decided": Kind.DECISION,
    "problem": Kind.ISSUE,
    "learned": Kind.INSIGHT,
    "fixed": Kind.ISSUE,
}
_IN_MESSAGE = re.compile(
    rf"[ \t]*(?:[-*][ \t]+)?({'|'.join(_WORDS)}):[ \t]+(\S.{{2,1999}})", re.IGNORECASE
)
_STATUSES = {"problem": "open", "fixed": "resolved"}
_CONFIDENCE = 0.7


def in_code(text: str, *, path: str, digest: str, modified: datetime) -> Iterator[Record]:
    """Yields what comments of the form `# MEMORY: …` say, in the order of their lines."""
    comment = _comment(_MARKS.get(path.rpartition(".")[2].lower(), _ANY))
    taken: dict[str, int] = {}
    position = 0
    for number, line in enumerate(text.split("\n"), 1):
        found = comment.search(line) if "MEMORY:" in line else None
        statement = grammar.remembered(found[1]) if found else None
        if found is None or statement is None:
            continue
        memory = Memory(
            id=identified(statement.kind, statement.title, f"{path}\n{found[1]}", taken),
            content=found[1],
            created=modified,
            **said(statement),
        )
        place = Place(path=path, line=number, digest=digest, owned=False)
        yield Record(memory=memory, place=place, position=position)
        position += 1


def in_message(
    body: str, *, commit: str, author: str, when: datetime, taken: dict[str, int]
) -> Iterator[Memory]:
    """Yields what the lines `decided:`, `problem:`, `learned:`, `fixed:` of a commit say."""
    for line in body.split("\n"):
        found = _IN_MESSAGE.fullmatch(line.rstrip())
        if found is None:
            continue
        word = found[1].lower()
        kind, title = _WORDS[word], found[2].strip()
        told = grammar.statement(f"{word}: {title}") if kind is Kind.DECISION else None
        fields = said(told) if told else {"type": kind, "title": title}
        fields |= {"confidence": _CONFIDENCE, "status": _STATUSES.get(word)}
        yield Memory(
            id=identified(kind, title, f"{commit}\n{line}", taken),
            content=line.strip(),
            created=when.astimezone(UTC),
            source=f"commit {commit[:12]}",
            by=author or None,
            **fields,
        )


@cache
def _comment(marks: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^|\s)(?:{marks})\s*MEMORY:\s*(\S.*?)\s*(?:\*/|-->)?\s*$")
