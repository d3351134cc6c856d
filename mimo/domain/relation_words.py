"""Words that say how memories stand to each other -> a `Relation`, where they surely name one.

The direction is never guessed. "superseded by" is said of the older memory, while a link is kept
in the newer one: read the wrong way it would hide the memory that holds.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from mimo.domain.relations import Relation
from mimo.domain.tokens import tokenize


class Reading(NamedTuple):
    """What words say."""

    relation: Relation | None
    """None where they name none of ours: their meaning may come near one."""
    replaced: bool = False
    """Whether they say that the other memory replaces the one that holds the link."""


_REPLACED = frozenset(
    "superseded replaced obsolete obsoleted deprecated overridden retired supplanted revoked"
    .split()
)  # fmt: skip
"""Said of the older memory, unless an object follows."""

_BACKWARDS = (
    "before, precedes, earlier than, prior to, followed by, leads to, causes, results in, produces,"
    " basis for, basis of, foundation for, foundation of, enables, blocks, inspires, motivates,"
    " parent of"
)
"""Words that say a relation of ours from its other end."""

_FORMS_OF_BE = frozenset("is are was were be been being get gets got".split())
_OPENING = _FORMS_OF_BE | frozenset("a an the it this that which has have had".split())
_CLOSING = frozenset("a an the of on to with from in for by it this that other one".split())
_NEGATIONS = frozenset("not no never without neither nor hardly isn't doesn't don't".split())

_DIRECTED = frozenset(
    (Relation.REFINES, Relation.SYNTHESIZES, Relation.IMPLEMENTS, Relation.DEBATES)
)
"""Relations whose Korean verbs turn round in the passive: 구현됨 is what was implemented."""

_KOREAN_NEGATIONS = ("아니", "아님", "않", "없", "못")
_KOREAN_PASSIVES = ("됨", "되", "된", "당하", "당함", "의해")
_NO_ENDING = "|".join(("", "함", "하다", "하는", "하고", "하여", "해서", "한다", "했음", "했다"))


def read(words: str) -> Reading:
    """Returns the relation that the words name, by its name or by an obvious word for it."""
    text = _plain(words)
    parts = text.split()
    if _is_korean(text):
        return _read_korean(text.replace(" ", ""))
    bare = _without(parts, _OPENING, front=True)
    named = _literal().get(" ".join(bare))
    if named:
        return Reading(named)
    if _NEGATIONS.intersection(parts):
        return Reading(Relation.RELATES_TO)
    if _says_replaced(parts, bare):
        return Reading(None, replaced=True)
    if _is_backwards(parts, bare):
        return Reading(Relation.RELATES_TO)
    return Reading(_by_stems(bare))


def _plain(words: str) -> str:
    """Returns the words in lower case, apart: `buildsOn` and `builds_on` are `builds on`."""
    text = unicodedata.normalize("NFKC", words).replace("\u2019", "'")
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower()
    return " ".join(re.sub(r"[^\w']|_", " ", text).split())


def _without(parts: list[str], words: Iterable[str], *, front: bool) -> list[str]:
    """Returns the parts without those words before (or after) them, at least one part of them."""
    rest = list(parts)
    place = 0 if front else -1
    while len(rest) > 1 and rest[place] in words:
        del rest[place]
    return rest


@cache
def _literal() -> Mapping[str, Relation]:
    """Returns every name and alias in plain words, with what it stands for."""
    found = {_plain(relation): relation for relation in Relation}
    found |= {_plain(word): relation for relation in Relation for word in relation.aliases}
    return found


def _says_replaced(parts: list[str], bare: list[str]) -> bool:
    if not _REPLACED.intersection(parts):
        return False
    passive = bool(_FORMS_OF_BE.intersection(parts)) or "by" in parts or "with" in parts
    return passive or _without(bare, _CLOSING, front=False)[-1] in _REPLACED


def _is_backwards(parts: list[str], bare: list[str]) -> bool:
    if " ".join(map(_stem, bare)) in _backwards() or any(
        after == "by" and word.endswith(("ed", "en", "wn", "lt")) for word, after in _pairs(parts)
    ):
        return True
    passive = any(be in _FORMS_OF_BE and word.endswith("ed") for be, word in _pairs(parts))
    return passive and _by_stems(bare[:1]) is not None


def _pairs(parts: list[str]) -> Iterable[tuple[str, str]]:
    return pairwise(parts)


def _by_stems(bare: list[str]) -> Relation | None:
    """Returns the relation of the whole phrase in another form, or of the words it begins with.

    What hides a memory must be said in so many words: of `supersedes` only the whole phrase counts.
    """
    whole = _by_stem().get(_stems(bare))
    if whole:
        return whole
    stems = [*map(_stem, bare)]
    starts = (" ".join(stems[:count]) for count in range(len(stems), 0, -1))
    return next((_beginnings()[start] for start in starts if start in _beginnings()), None)


@cache
def _by_stem() -> Mapping[str, Relation]:
    return {_stems(words.split()): relation for words, relation in _literal().items()}


@cache
def _beginnings() -> Mapping[str, Relation]:
    return {
        " ".join(map(_stem, words.split())): relation
        for words, relation in _literal().items()
        if relation is not Relation.SUPERSEDES
    }


@cache
def _backwards() -> frozenset[str]:
    return frozenset(" ".join(map(_stem, words.split())) for words in _BACKWARDS.split(","))


def _stems(parts: list[str]) -> str:
    """Returns what all forms of a phrase have in common."""
    return " ".join(map(_stem, _without(parts, _CLOSING, front=False)))


def _stem(word: str) -> str:
    return " ".join(tokenize(word))


def _is_korean(text: str) -> bool:
    return re.search("[\uac00-\ud7a3]", text) is not None


def _read_korean(text: str) -> Reading:
    """Returns what Korean words say; `text` holds no spaces."""
    held = [
        (stem, relation)
        for stem, relation in _literal().items()
        if _is_korean(stem) and stem.replace(" ", "") in text
    ]
    passive = any(mark in text for mark in _KOREAN_PASSIVES)
    if not held or any(word in text for word in _KOREAN_NEGATIONS):
        return Reading(Relation.RELATES_TO)
    for stem, relation in held:
        if relation is Relation.SUPERSEDES:
            whole = re.fullmatch(f"{stem}(?:{_NO_ENDING})", text)
            named = relation if whole else Relation.RELATES_TO
            return Reading(None, replaced=True) if passive else Reading(named)
    stem, relation = max(held, key=lambda pair: len(pair[0]))
    turned = passive and (relation in _DIRECTED or stem == "확장")
    return Reading(Relation.RELATES_TO if turned else relation)
