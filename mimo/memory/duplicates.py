"""Duplicates and near-duplicates of memories."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping

from mimo.memory.model import Memory, Section, tag_key, topic_key
from mimo.memory.outcomes import DEFAULT_CONFIDENCE
from mimo.text.tokens import STOP_WORDS

ALIKE = 0.65
"""The likeness at which a memory is reported as a near-duplicate of another.

On 943 observations of LoCoMo, 99 to 100 % of the texts in which a word was changed, added, left out
or moved reach it. So do 1.4 % of the texts with another text of their
conversation, most of which have the same meaning in other words. The cosine of static vectors as
a second measure found as many of both.
"""

_ASKED = 48
"""Most words of a text that are looked up; a near-duplicate has many of them."""

_DEFAULT_IMPORTANCE = 0.5


def statement(memory: Memory) -> str:
    """Returns the statement of a memory, independent of its spacing and encoding.

    It consists of type, topic, title, text and sections, except the outcome. It is case-sensitive:
    `PATH` and `Path` may be two things.
    """
    content = folded(memory.content)
    title = folded(memory.title or "")
    parts = [
        memory.type.value,
        topic_key(memory.topic) if memory.topic else "",
        "" if title in content else title,
        content,
        *(
            f"{name.value}: {folded(text)}"
            for name, text in sorted(memory.sections.items())
            if name is not Section.OUTCOME
        ),
    ]
    return "\n".join(parts)


def folded(text: str) -> str:
    """Returns a text in Unicode's composed form, each run of blanks as one space."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def covers(existing: Memory, draft: Memory) -> bool:
    """Returns whether a draft with the same statement adds nothing to an existing memory.

    A new link, outcome, status or confidence adds something.
    """
    usual = draft.confidence in (None, DEFAULT_CONFIDENCE)
    return (
        {(link.to, link.type) for link in draft.links}
        <= {(link.to, link.type) for link in existing.links}
        and draft.outcome in (None, existing.outcome)
        and draft.status in (None, existing.status)
        and (usual or draft.confidence == existing.confidence)
    )


def left_out(existing: Memory, draft: Memory) -> tuple[str, ...]:
    """Returns the names of the draft's other fields that the existing memory does not have."""
    names = []
    if not set(map(tag_key, draft.tags)) <= set(map(tag_key, existing.tags)):
        names.append("tags")
    if draft.importance not in (_DEFAULT_IMPORTANCE, existing.importance):
        names.append("importance")
    names += [
        name
        for name in ("category", "source")
        if getattr(draft, name) not in (None, getattr(existing, name))
    ]
    return tuple(names)


def sample(words: frozenset[str]) -> list[str]:
    """Returns the words of a text, at most an even sample of `_ASKED`."""
    all_words = sorted(words)
    step = max(1, -(-len(all_words) // _ASKED))
    return all_words[::step]


def telling(frequencies: Mapping[str, int]) -> list[str]:
    """Returns the rarest words, as many as needed for every near-duplicate to have one of them.

    A near-duplicate shares at least `ALIKE` of the words of both.
    """
    shared = math.ceil(ALIKE * len(frequencies))
    rarest = sorted(frequencies, key=lambda word: (frequencies[word], word))
    return rarest[: len(rarest) - shared + 1]


def likeness(words: frozenset[str], other_words: frozenset[str]) -> float:
    """Returns how much two texts are alike, 0..1: the share of their words that both have.

    Texts of different lengths are not alike: a note is not a near-duplicate of the document that
    contains it.
    """
    union = words | other_words
    return len(words & other_words) / len(union) if union else 0.0


def words_of(tokens: str) -> frozenset[str]:
    """Returns the distinct tokens of a text (joined by spaces) without stop words."""
    words = frozenset(tokens.split())
    return words - STOP_WORDS or words
