"""Links as people and agents give them: any words for the relation, ids cut short."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from mimo.errors import Invalid, NotFound
from mimo.frozen import frozen
from mimo.index.embedding import FAILURES
from mimo.index.vectors import cosines
from mimo.memory.model import Link, check_unit
from mimo.memory.relations import Relation
from mimo.mind import Mind
from mimo.operations import finding
from mimo.text.tokens import STOP_WORDS, tokenize

if TYPE_CHECKING:
    from mimo.index.embedding import Embedder


# Words that say how memories stand to each other -> a `Relation`, where they surely name one.


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


THRESHOLD = 0.75
"""The calibrated cosine from which on words mean the nearest relation."""

_MOST_WORDS = 200
"""Characters of the longest name of a relation."""

_KEYS = frozenset({"to", "to_id", "type", "relationship", "confidence", "tags"})
"""What a listed link may have; its tags are accepted, and kept nowhere."""


def link(
    mind: Mind,
    to: str,
    relationship: str,
    *,
    by: str | None = None,
    confidence: float | None = None,
) -> Link:
    """Returns a link to the memory `to` of the type that the words for it mean.

    The words are kept where they are not the type's name. Raises `Invalid` where they say that
    the other memory replaces this one: such a link is the other one's to hold.
    """
    words = " ".join(relationship.split())
    if len(words) > _MOST_WORDS:
        raise Invalid(
            f"a relationship of {len(words):,} characters is too long",
            hint="say it in a word or two, such as `builds_on`",
        )
    relation = meant(mind, words)
    return Link(
        to=to,
        type=relation.value,
        given=words if _says_more(words, relation) else None,
        confidence=None if confidence is None else check_unit("confidence", confidence),
        by=by,
    )


def _says_more(words: str, relation: Relation) -> bool:
    """Returns whether the words are others than the relation's name."""
    return words.casefold().replace("-", "_").replace(" ", "_") not in ("", relation.value)


def meant(mind: Mind, words: str) -> Relation:
    """Returns the relation that the words name, or the one that they come nearest to in meaning.

    What is near to none is `relates_to`. Nearness alone never makes `supersedes`, which hides.
    """
    reading = read(words)
    if reading.replaced:
        raise Invalid(
            f"`{words}` would make this memory the one that is replaced",
            hint="a link is kept in the newer memory: make it there with `supersedes`, or say"
            " `supersedes` here if this is the newer one",
        )
    if reading.relation:
        return reading.relation
    try:
        return _nearest(mind.embedder, words) if mind.embedder else Relation.RELATES_TO
    except FAILURES:
        return Relation.RELATES_TO


def _nearest(embedder: "Embedder", words: str) -> Relation:
    """Returns the relation whose describing words are clearly nearest."""
    vector = embedder.encode(_content(words))
    if not vector:
        return Relation.RELATES_TO
    known: Any = embedder
    scale = _scale(known)
    (second, _), (first, relation) = sorted(zip(scale.cosines(vector), Relation, strict=True))[-2:]
    sure = scale.calibrated(first) >= THRESHOLD and first - second >= scale.margin
    return relation if sure and relation is not Relation.SUPERSEDES else Relation.RELATES_TO


@frozen
class _Scale:
    """What a model's cosines mean, measured on the words whose relation is known."""

    vectors: Sequence[bytes]
    """Of the describing words of each relation, in their order."""
    foreign: Sequence[float]
    """For each known word its cosine with the nearest relation that it does not mean, sorted."""
    margin: float

    def cosines(self, vector: bytes) -> list[float]:
        """Returns the cosine with each relation."""
        return cosines(vector, self.vectors)

    def calibrated(self, raw: float) -> float:
        """Returns the share of known words that are further than this from what they don't mean."""
        from bisect import bisect_right

        return bisect_right(self.foreign, raw) / len(self.foreign)


@lru_cache(maxsize=2)
def _scale(embedder: "Embedder") -> _Scale:
    from statistics import median

    words = [[*map(_content, filter(str.isascii, one.aliases))] for one in Relation]
    vectors = embedder.encode_many(
        [
            " ".join([*known, _content(one.meaning)])
            for one, known in zip(Relation, words, strict=True)
        ]
    )
    own, foreign = [], []
    for place, known in enumerate(words):
        for vector in embedder.encode_many(known):
            found = cosines(vector, vectors)
            own.append(found.pop(place))
            foreign.append(max(found))
    # A third of what parts the right relation from the nearest wrong one, in this model.
    margin = max(0.0, median(own) - median(foreign)) / 3
    return _Scale(vectors=vectors, foreign=sorted(foreign), margin=margin)


def _content(words: str) -> str:
    """Returns the words that say something; all of them where none does."""
    parts = words.lower().replace("-", " ").replace("_", " ").replace(",", "").split()
    said = [part for part in parts if part not in STOP_WORDS and part not in _SHAPING]
    return " ".join(said or parts)


_SHAPING = frozenset("is has have had was were other one others than from".split())


def links_of(mind: Mind, given: Sequence[Any], *, by: str | None = None) -> tuple[Link, ...]:
    """Returns the links that a caller lists: objects, `type:ID`, or just `ID`; doubles are one.

    Ids may be cut short. Raises `Invalid` for an item that is no link, `NotFound` with every id
    that is not there, and `AmbiguousId`.
    """
    items = [_item(one) for one in given]
    targets = _targets(mind, [to for to, *_ in items])
    found: dict[tuple[str, str], Link] = {}
    for to, words, confidence in items:
        made = link(mind, targets[to], words, by=by, confidence=confidence)
        found.setdefault((made.to, made.type), made)
    return tuple(found.values())


def _item(given: Any) -> tuple[str, str, float | None]:
    """Returns the target, the words for the relation and the confidence of a listed link."""
    if isinstance(given, str):
        words, _, to = given.rpartition(":")
        if to.strip():
            return to.strip(), words.strip(), None
    elif isinstance(given, dict) and given.keys() <= _KEYS:
        said = {key: value for key, value in given.items() if value is not None}
        to, words = _one_of(said, "to", "to_id"), _one_of(said, "type", "relationship")
        confidence = said.get("confidence")
        if isinstance(to, str) and to.strip() and isinstance(words, str) and _is_number(confidence):
            return to.strip(), words, confidence
    raise Invalid(
        f"`{given}` is not a link",
        hint='a link is {"to": ID, "type": "builds_on"}, `builds_on:ID` or just the ID',
        details={"field": "links"},
    )


def _one_of(said: dict[str, Any], name: str, other: str) -> Any:
    """Returns what stands under either name; nothing where they disagree."""
    first, second = said.get(name, said.get(other, "")), said.get(other, said.get(name, ""))
    return first if first == second else None


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _targets(mind: Mind, wanted: Sequence[str]) -> dict[str, str]:
    """Returns the whole id for each id that was given."""
    known: dict[str, str] = {}
    missing: list[NotFound] = []
    for to in dict.fromkeys(wanted):
        try:
            known[to] = finding.one(mind, to, surely=True).memory.id
        except NotFound as error:
            missing.append(error)
    if len(missing) == 1:
        raise missing[0]
    if missing:
        names = [str(error.details["id"]) for error in missing]
        raise NotFound(
            f"Memories not found: {', '.join(f'`{name}`' for name in names)}",
            hint="nothing was written; `mind list` shows what there is",
            details={"ids": names},
        )
    return known
