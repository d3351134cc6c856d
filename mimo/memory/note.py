"""A memory as it is put before an agent: one line, in which nothing can pass for anything else."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple
from zlib import crc32

from mimo.text.clean import clean, compiled

LONGEST = 300
"""Characters of one line."""

_READ = 4_000
"""Characters of a text that are looked at for a line."""

_OURS = (
    r"(?i)<(?=[/!?]|(?:system|assistant|user|human|instructions?|important|mind|function|tool|invoke|"
    r"antml|local-command|command|task)(?![a-z]))"
)
"""What opens a tag or a comment that a client, a model or mind itself could take for its own."""

_IMPORT = r"(?<![\w`])@(?=[\w~./\\])"
"""`@path` in an instructions file is replaced by the file; with a blank it is plain text."""

_MARK = re.compile(r"\s{0,3}(?:#{1,6}\s+|[-*+]\s+(?:\[[ xX]\]\s+)?|>\s*)+")
_RULE = re.compile(r"\s*(?:(?:[-*_=]\s*){3,}|(?:```|~~~).*)")
_SENTENCE = re.compile(r".{20,}?(?:[.!?](?=\s+[^a-z\s]|$)|[。！？])")  # noqa: RUF001 - full-width ones, too


class Note(NamedTuple):
    """What is told of one memory."""

    id: str
    kind: str
    title: str
    text: str
    created: datetime
    topic: str = ""
    category: str = ""
    status: str = ""
    outcome: str = ""
    importance: float = 0.5
    keep: bool = False
    """Whether somebody said of it that it must never fade."""
    private: bool = False
    sections: Mapping[str, str] = {}
    extra: Mapping[str, object] = {}
    path: str = ""
    digest: str = ""

    @property
    def heading(self) -> str:
        """Returns the title, or the first line of the text."""
        return self.title or next((line for line in self.text.splitlines() if line.strip()), "")

    @property
    def mark(self) -> str:
        """Returns what stays as long as the memory says the same."""
        told = "\0".join((self.title, self.text, self.outcome, *self.sections.values()))
        return f"{self.id}#{crc32(told.encode('utf-8', 'replace')):08x}"


def plain(text: str, limit: int = LONGEST) -> str:
    """Returns prose as one harmless line of at most `limit` characters.

    Secrets, hidden and control characters go; so does what could close a fence, open a tag or a
    comment, name a file to read, or begin a heading, a list or a block of code.
    """
    words = " ".join(_lines(clean(masked(text[:_READ]))))
    if "<" in words:
        words = compiled(_OURS).sub("‹", words)  # noqa: RUF001 - looks the same, and opens nothing
    words = words.replace("-->", "--›").replace("```", "'''").replace("~~~", "'''")  # noqa: RUF001
    if "@" in words:
        words = compiled(_IMPORT).sub("@ ", words)
    return words if len(words) <= limit else f"{words[: limit - 1].rstrip()}…"


def masked(text: str) -> str:
    """Returns a text with marks in the place of its secrets, also of one that is cut off."""
    # A hook mostly has nothing to tell, and then nothing to look through.
    from mimo.privacy.model import without
    from mimo.privacy.secrets import secrets_in

    found = secrets_in(text, cut=True)
    return without(text, found) if found else text


def first_sentence(text: str, limit: int = LONGEST) -> str:
    """Returns the first sentence of a text as one harmless line."""
    words = plain(text, _READ)
    found = _SENTENCE.match(words)
    return plain(found[0] if found else words, limit)


def tasks(text: str) -> list[str]:
    """Returns the items of a list that nobody ticked, or all of a text that is none."""
    open_ = (
        plain(line)
        for line in text.splitlines()
        if not line.lstrip().lower().startswith(("- [x]", "* [x]"))
    )
    return [item for item in open_ if item]


def fitting(lines: Iterable[str], budget: int) -> list[str]:
    """Returns the lines that fit, one by one, into so many characters."""
    kept: list[str] = []
    for line in lines:
        budget -= len(line) + 1
        if budget < 0:
            break
        kept.append(line)
    return kept


def _lines(text: str) -> Iterable[str]:
    """Yields the words of each line, without what makes it a heading, an item or a rule."""
    for line in text.splitlines():
        if not _RULE.fullmatch(line):
            bare = _MARK.sub("", line, count=1) if _MARK.match(line) else line
            if words := " ".join(bare.split()):
                yield words
