"""Which edges a text that is about to be written runs into."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mimo.domain.context.note import Note
from mimo.domain.hooks.event import Edit
from mimo.domain.tokens import QUESTION_WORDS, tokenize

_CODE_SPAN = re.compile(r"(?<!`)`([^`\n]{4,200})`(?!`)")
_FEWEST_WORDS = 2
_MOST_READ = 200_000


class Hit(NamedTuple):
    """An edge, and where a text meets it."""

    note: Note
    path: str
    line: int
    """1-based, in the text that is to be written."""


def met(edges: Iterable[Note], edits: Sequence[Edit]) -> list[Hit]:
    """Returns the edges that are met, the worst first, each where it is met first.

    An edge is met where code that it names stands in the text; one that names none, where one
    line has all words of its title.
    """
    texts = [(edit.path, edit.text[:_MOST_READ].split("\n")) for edit in edits]
    hits = [hit for note in edges if (hit := next(_places(note, texts), None))]
    return sorted(hits, key=lambda hit: hit.note.extra.get("severity") != "critical")


def _places(note: Note, texts: list[tuple[str, list[str]]]) -> Iterator[Hit]:
    code = _CODE_SPAN.findall(f"{note.title}\n{note.text.partition('## Workaround')[0]}")
    words = frozenset() if code else frozenset(tokenize(note.title)) - QUESTION_WORDS
    for path, lines in texts:
        for number, line in enumerate(lines, 1):
            if any(piece in line for piece in code) or (
                len(words) >= _FEWEST_WORDS and words.issubset(tokenize(line))
            ):
                yield Hit(note, path, number)
