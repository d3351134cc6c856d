"""Links as callers give them: ids cut short, and any words for the relation."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import dropwhile
from typing import TYPE_CHECKING, Any

from mimo.call import Call
from mimo.errors import Command, Hint, Invalid, NotFound
from mimo.frozen import NamedTuple
from mimo.index.cosine import cosines
from mimo.index.embedding import FAILURES
from mimo.memory.model import Link, check_unit
from mimo.memory.relations import Relation
from mimo.operations import lookup
from mimo.text.tokens import STOP_WORDS, tokenize

if TYPE_CHECKING:
    from mimo.index.embedding import Embedder

THRESHOLD = 0.75
"""The calibrated cosine from which on words mean the nearest relation."""

_MOST_WORDS = 200
"""Characters of the longest name of a relation."""

_KEYS = frozenset({"to", "to_id", "type", "relationship", "confidence", "tags"})
"""Keys that a listed link may have; its tags are accepted and ignored."""

_REPLACED = frozenset(
    "superseded replaced obsolete obsoleted deprecated overridden retired supplanted revoked"
    .split()
)  # fmt: skip
"""Words about the older memory, unless an object follows."""

_BACKWARDS = (
    "before, precedes, earlier than, prior to, followed by, leads to, causes, results in, produces,"
    " basis for, basis of, foundation for, foundation of, enables, blocks, inspires, motivates,"
    " parent of"
)
"""Words that name a relation in the opposite direction."""

_FORMS_OF_BE = frozenset("is are was were be been being get gets got".split())
_PASSIVE = rf"\b(?:{'|'.join(_FORMS_OF_BE)}) [\w']*ed\b"
_DONE_BY = r"(?:ed|en|wn|lt) by\b"
_OPENING = _FORMS_OF_BE | frozenset("a an the it this that which has have had".split())
_CLOSING = frozenset("a an the of on to with from in for by it this that other one".split())
_NEGATIONS = frozenset("not no never without neither nor hardly isn't doesn't don't".split())
_SHAPING = frozenset("is has have had was were other one others than from".split())

_DIRECTED = frozenset(
    (Relation.REFINES, Relation.SYNTHESIZES, Relation.IMPLEMENTS, Relation.DEBATES)
)
"""Relations whose Korean verbs change direction in the passive: 구현됨 is "was implemented"."""

_KOREAN_NEGATIONS = ("아니", "아님", "않", "없", "못")
_KOREAN_PASSIVES = ("됨", "되", "된", "당하", "당함", "의해")
_NO_ENDING = "|".join(("", "함", "하다", "하는", "하고", "하여", "해서", "한다", "했음", "했다"))


def links_of(call: Call, entries: Sequence[Any]) -> tuple[Link, ...]:
    """Returns the links that a caller lists as objects, `type:ID` or `ID`, without duplicates.

    Ids may be cut short. Raises `Invalid` for an item that is not a link, `NotFound` with every
    missing id, and `AmbiguousId`.
    """
    items = [_item(item) for item in entries]
    targets: dict[str, str] = {}
    missing: list[NotFound] = []
    for to in dict.fromkeys(to for to, *_ in items):
        try:
            targets[to] = lookup.one(call, to, surely=True).memory.id
        except NotFound as error:
            missing.append(error)
    if len(missing) == 1:
        raise missing[0]
    if missing:
        names = [str(error.details["id"]) for error in missing]
        raise NotFound(
            f"Memories not found: {', '.join(f'`{name}`' for name in names)}",
            hint=Hint("nothing was written; ", Command("list"), " lists all memories"),
            details={"ids": names},
        )
    links: dict[tuple[str, str], Link] = {}
    for to, words, confidence in items:
        new_link = link(call, targets[to], words, confidence=confidence)
        links.setdefault((new_link.to, new_link.type), new_link)
    return tuple(links.values())


def _item(entry: Any) -> tuple[str, str, float | None]:
    """Returns the target, the words for the relation and the confidence of a listed link."""
    values: dict[str, Any] = {}
    if isinstance(entry, str):
        values["type"], _, values["to"] = entry.rpartition(":")
    elif isinstance(entry, dict) and entry.keys() <= _KEYS:
        values = {key: value for key, value in entry.items() if value is not None}
    to, words = _either(values, "to", "to_id"), _either(values, "type", "relationship")
    confidence = values.get("confidence")
    is_number = confidence is None or type(confidence) in (int, float)
    if isinstance(to, str) and to.strip() and isinstance(words, str) and is_number:
        return to.strip(), words, confidence
    raise Invalid(
        f"`{entry}` is not a link",
        hint='a link is {"to": ID, "type": "builds_on"}, `builds_on:ID` or just the ID',
        details={"field": "links"},
    )


def _either(values: dict[str, Any], name: str, alias: str) -> Any:
    """Returns the value under either name; None if there are two different ones."""
    left, second = values.get(name, values.get(alias, "")), values.get(alias, values.get(name, ""))
    return left if left == second else None


def link(call: Call, to: str, relationship: str, *, confidence: float | None = None) -> Link:
    """Returns a link to the memory `to`, with the type that the words mean.

    The words are kept unless they are the type's name. Raises `Invalid` if they state that the
    other memory replaces this one: such a link belongs into the other one.
    """
    words = " ".join(relationship.split())
    if len(words) > _MOST_WORDS:
        raise Invalid(
            f"a relationship of {len(words):,} characters is too long",
            hint="use a word or two, such as `builds_on`",
        )
    relation = meant(call, words)
    is_name = words.casefold().replace("-", "_").replace(" ", "_") in ("", relation.value)
    return Link(
        to=to,
        type=relation.value,
        given=None if is_name else words,
        confidence=None if confidence is None else check_unit("confidence", confidence),
    )


def meant(call: Call, words: str) -> Relation:
    """Returns the relation that the words name, or the one whose meaning is nearest.

    Without a near one it is `relates_to`. Nearness alone never makes `supersedes`, which hides the
    other memory. Raises `Invalid` for words such as "superseded by".
    """
    named = named_by(words)
    if named or not call.mind.embedder:
        return named or Relation.RELATES_TO
    try:
        return _nearest(call.mind.embedder, words)
    except FAILURES:
        return Relation.RELATES_TO


def named_by(words: str) -> Relation | None:
    """Returns the relation that words name exactly, or None.

    Words for the opposite direction, and negated ones, name `relates_to`. Raises `Invalid` for
    words such as "superseded by".
    """
    text = _plain(words)
    if _is_korean(text):
        return _in_korean(words, text.replace(" ", ""))
    parts = text.split()
    bare = [*dropwhile(_OPENING.__contains__, parts)] or parts[-1:]
    if named := _literal().get(" ".join(bare)):
        return named
    if _NEGATIONS.intersection(parts):
        return Relation.RELATES_TO
    if _REPLACED.intersection(parts) and (
        _FORMS_OF_BE.union(("by", "with")).intersection(parts) or _trimmed(bare)[-1] in _REPLACED
    ):
        raise _replaced(words)
    if (
        _stems(bare) in _backwards()
        or re.search(_DONE_BY, text)
        or (re.search(_PASSIVE, text) and _by_beginning(bare[:1]))
    ):
        return Relation.RELATES_TO
    # Only the whole phrase, in any form, means `supersedes`: it hides a memory.
    return _by_stems().get(_stems(_trimmed(bare))) or _by_beginning(bare)


def _replaced(words: str) -> Invalid:
    return Invalid(
        f"`{words}` would make this memory the one that is replaced",
        hint="a link is kept in the newer memory: make it there with `supersedes`, or use"
        " `supersedes` here if this is the newer one",
    )


def _plain(words: str) -> str:
    """Returns separate words in lower case: `buildsOn` and `builds_on` become `builds on`."""
    text = unicodedata.normalize("NFKC", words).replace("\u2019", "'")
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower()
    return " ".join(re.sub(r"[^\w']|_", " ", text).split())


def _trimmed(parts: Sequence[str]) -> Sequence[str]:
    """Returns the words of a phrase without prepositions at its end, but at least one word."""
    while len(parts) > 1 and parts[-1] in _CLOSING:
        parts = parts[:-1]
    return parts


@cache
def _literal() -> Mapping[str, Relation]:
    """Returns the relation of every name and alias, in plain words."""
    names = {_plain(relation): relation for relation in Relation}
    return names | {_plain(word): relation for relation in Relation for word in relation.aliases}


@cache
def _by_stems() -> Mapping[str, Relation]:
    """Returns the relation of every name and alias, by the stems of its words."""
    return {_stems(_trimmed(words.split())): relation for words, relation in _literal().items()}


def _by_beginning(parts: Sequence[str]) -> Relation | None:
    """Returns the relation that a phrase begins with; never `supersedes`."""
    starts = (_stems(parts[:count]) for count in range(len(parts), 0, -1))
    return next((_beginnings()[start] for start in starts if start in _beginnings()), None)


@cache
def _beginnings() -> Mapping[str, Relation]:
    return {
        _stems(words.split()): relation
        for words, relation in _literal().items()
        if relation is not Relation.SUPERSEDES
    }


@cache
def _backwards() -> frozenset[str]:
    return frozenset(_stems(words.split()) for words in _BACKWARDS.split(","))


def _stems(parts: Iterable[str]) -> str:
    """Returns the stems of words, which all forms of a phrase share."""
    return " ".join(" ".join(tokenize(word)) for word in parts)


def _is_korean(text: str) -> bool:
    return re.search("[\uac00-\ud7a3]", text) is not None


def _in_korean(words: str, text: str) -> Relation:
    """Returns the relation that Korean words name; `text` is the words without spaces."""
    matches = [
        (stem, relation)
        for stem, relation in _literal().items()
        if _is_korean(stem) and stem.replace(" ", "") in text
    ]
    if not matches or any(word in text for word in _KOREAN_NEGATIONS):
        return Relation.RELATES_TO
    is_passive = any(mark in text for mark in _KOREAN_PASSIVES)
    for stem, relation in matches:
        if relation is Relation.SUPERSEDES:
            if is_passive:
                raise _replaced(words)
            is_exact = re.fullmatch(f"{stem}(?:{_NO_ENDING})", text)
            return relation if is_exact else Relation.RELATES_TO
    stem, relation = max(matches, key=lambda pair: len(pair[0]))
    is_turned = is_passive and (relation in _DIRECTED or stem == "확장")
    return Relation.RELATES_TO if is_turned else relation


def _nearest(embedder: Embedder, words: str) -> Relation:
    """Returns the relation whose describing words are clearly nearest."""
    vector = embedder.encode(_content(words))
    if not vector:
        return Relation.RELATES_TO
    hashable: Any = embedder
    scale = _scale(hashable)
    near = cosines(vector, scale.vectors)
    (second, _), (best, relation) = sorted(zip(near, Relation, strict=True))[-2:]
    # The share of words that are further than this from a wrong relation.
    calibrated = bisect_right(scale.foreign, best) / len(scale.foreign)
    is_sure = calibrated >= THRESHOLD and best - second >= scale.margin
    return relation if is_sure and relation is not Relation.SUPERSEDES else Relation.RELATES_TO


class _Scale(NamedTuple):
    """The meaning of a model's cosines, measured on words whose relation is known."""

    vectors: Sequence[bytes]
    """Of the describing words of each relation, in the order of `Relation`."""
    foreign: Sequence[float]
    """For each of those words the cosine with the nearest wrong relation, sorted."""
    margin: float
    """The minimum distance between the nearest relation and the second."""


@lru_cache(maxsize=2)
def _scale(embedder: Embedder) -> _Scale:
    from statistics import median

    words = [[*map(_content, filter(str.isascii, relation.aliases))] for relation in Relation]
    vectors = embedder.encode_many(
        [
            " ".join([*aliases, _content(relation.meaning)])
            for relation, aliases in zip(Relation, words, strict=True)
        ]
    )
    own_scores, foreign = [], []
    for place, aliases in enumerate(words):
        for vector in embedder.encode_many(aliases):
            near = cosines(vector, vectors)
            own_scores.append(near.pop(place))
            foreign.append(max(near))
    # A third of the distance between the right relation and the nearest wrong one, in this model.
    margin = max(0.0, median(own_scores) - median(foreign)) / 3
    return _Scale(vectors, sorted(foreign), margin)


def _content(words: str) -> str:
    """Returns the words without stop words; all of them if nothing is left."""
    parts = words.lower().replace("-", " ").replace("_", " ").replace(",", "").split()
    content = [part for part in parts if part not in STOP_WORDS and part not in _SHAPING]
    return " ".join(content or parts)
