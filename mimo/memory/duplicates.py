"""When two memories say the same: word for word, or nearly."""

import math
import unicodedata
from collections.abc import Mapping

from mimo.memory.model import Kind, Memory, Section, topic_key
from mimo.memory.outcomes import DEFAULT_CONFIDENCE
from mimo.text.tokens import STOP_WORDS

ALIKE = 0.75
"""The likeness from which on one memory is pointed out as much like another.

`tests/bench/doubles.py` on 943 observations of LoCoMo: 99 to 100 % of the texts in which a word was
changed, added or left out, or words were put elsewhere, are found by it, and 1 % of the texts reach
it with another one of their conversation, most of which say the same in other words.
"""

_ASKED = 48
"""Of a longer text so many words are looked up: what holds half of them all holds many of these."""

_DEFAULT_IMPORTANCE = 0.5


def statement(memory: Memory) -> str:
    """Returns what a memory says, the same for all ways of spacing and encoding it.

    That is its type, topic, title, text and sections, but not how it turned out since. Upper and
    lower case differ: `PATH` and `Path` may be two things.
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


def is_single(memory: Memory) -> bool:
    """Returns whether saying it twice says nothing more.

    Two checkpoints with the same text are two times at which the work stood so.
    """
    return memory.type is not Kind.CHECKPOINT


def covers(existing: Memory, draft: Memory) -> bool:
    """Returns whether a memory with the same statement holds all that a new one would add to it.

    Links, an outcome, a status and a confidence of its own make a new statement of the same words.
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
    """Returns the names of what a draft has beside its statement and the memory has not."""
    names = []
    if not {tag.casefold() for tag in draft.tags} <= {tag.casefold() for tag in existing.tags}:
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
    """Returns the words of a text, or an even choice of `_ASKED` where there are more."""
    every = sorted(words)
    step = max(1, -(-len(every) // _ASKED))
    return every[::step]


def telling(frequencies: Mapping[str, int]) -> list[str]:
    """Returns the rarest words: so many that whatever is much like the text has one of them.

    What reaches `ALIKE` shares half of the words that either of the two has, be its cosine 1.
    """
    shared = math.ceil((2 * ALIKE - 1) * len(frequencies))
    rarest = sorted(frequencies, key=lambda word: (frequencies[word], word))
    return rarest[: len(rarest) - shared + 1]


def likeness(one: frozenset[str], other: frozenset[str], cosine: float | None) -> float:
    """Returns how much two texts are alike, 0..1: the mean of shared words and cosine.

    Without a cosine the words decide alone. Either text is as long as the other, or they are not
    alike: a note is no double of the document that mentions it.
    """
    every = one | other
    shared = len(one & other) / len(every) if every else 0.0
    return shared if cosine is None else (shared + max(0.0, cosine)) / 2


def words_of(tokens: str) -> frozenset[str]:
    """Returns the distinct words of a text that say something; tokens are joined by spaces."""
    found = frozenset(tokens.split())
    return found - STOP_WORDS or found
