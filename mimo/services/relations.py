"""Links as people and agents give them: any words for the relation, ids cut short."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mimo.domain.memory import Link, check_unit
from mimo.domain.relation_words import read
from mimo.domain.relations import Relation
from mimo.domain.tokens import STOP_WORDS
from mimo.errors import Invalid, NotFound
from mimo.frozen import frozen
from mimo.index.cosine import cosines
from mimo.index.embedding import FAILURES
from mimo.mind import Mind
from mimo.services import recall

if TYPE_CHECKING:
    from mimo.index.embedding import Embedder

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
            known[to] = recall.one(mind, to, surely=True).memory.id
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
