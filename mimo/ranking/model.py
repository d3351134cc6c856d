"""Every number of the ranking, with what chose it; docs/retrieval.md explains them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from mimo.frozen import frozen
from mimo.ranking.dates import Window

# What the ranking is given and what it answers.


@frozen
class RankingQuery:
    """A query, understood once; `understand` makes it."""

    text: str
    full: tuple[str, ...]
    """Distinct tokens without the stop words."""
    content: tuple[str, ...]
    """`full` without question words: what candidates are looked up by."""
    asked: datetime | None = None
    """When: what ages are counted from; None leaves age out."""
    windows: tuple[Window, ...] = ()
    """Dates that the query names."""
    asks_when: bool = False
    """Whether it asks for a time."""
    latin: bool = True
    """Whether the vectors' model knows the script: no for a query that is mostly not Latin."""


@frozen
class Statistics:
    """What the words of a query are worth in this store."""

    units: int
    """Units in the store."""
    frequencies: Mapping[str, int]
    """For each of the query's terms, the number of units that hold it; an absent one has none."""
    unit_tokens: float
    """Mean number of tokens in a unit."""
    passage_tokens: float
    """Mean number of tokens in a passage."""
    document_tokens: float
    """Mean number of tokens in a document."""


@frozen
class Candidate:
    """A document that may answer a query, as the index keeps it; tokens are joined by spaces."""

    key: int
    units: Sequence[str]
    """Tokens of each unit, in the order of the text."""
    passages: Sequence[str] = ()
    """Tokens of each passage; empty where they are the units."""
    title: str = ""
    """Tokens of the title."""
    topic: str = ""
    """Tokens of the topic and the tags."""
    created: datetime | None = None
    importance: float = 0.5
    speakers: Sequence[str] = ()
    """For each unit, the names that its lines begin with (`Unit.speakers`); empty for none."""
    unit_cosines: Sequence[float] = ()
    """Cosine of the query with each unit; empty where the document has no vectors."""
    document_cosine: float = 0.0
    """Cosine of the query with the mean of the passages' vectors."""
    previous: Sequence[str] = ()
    """Passages of the part before it in the same parent."""
    following: Sequence[str] = ()
    """Passages of the part after it in the same parent."""
    parent: str = ""
    """Tokens of all the parts of its parent, the same string for each; empty without a parent."""


@frozen
class Ranked:
    """One candidate's place in the answer."""

    key: int
    order: float
    """What the answer is sorted by, largest first; comparable within one query alone."""
    score: float
    """0..1, comparable between queries: 0.3 parts related from unrelated."""
    unit: int
    """The number of its best unit, from 0."""


K1 = 1.2
B = 0.75
"""BM25's constants, as FTS5 has them (S. Robertson, H. Zaragoza, 2009)."""

PHRASE_DISTANCE = 2
"""A pair of query terms is a phrase where the second stands at most so many tokens on."""

SPEAKER_LINES = 5
"""A name before a colon is a speaker where so many candidate units begin a line with it."""

LATIN_SHARE = 0.5
"""Below this share of Latin letters in a query its vector says too little."""

AGE_HALF_LIFE_DAYS = 180.0


class Features(NamedTuple):
    """What the order of an answer weighs, each about 0..1; BM25s are shares of the largest."""

    document: float
    passage: float
    coverage: float
    phrase: float
    unit_meaning: float
    document_meaning: float
    neighbour: float
    parent: float
    date: float
    time: float
    speaker: float
    title: float
    topic: float
    importance: float
    age: float


ORDER = Features(
    document=1.5,
    passage=2.0,
    coverage=2.75,
    phrase=0.75,
    unit_meaning=5.0,
    document_meaning=2.0,
    neighbour=2.25,
    parent=0.5,
    date=4.0,
    time=1.5,
    speaker=0.3,
    title=0.5,
    topic=0.25,
    importance=0.3,
    age=0.15,
)
"""Fitted on development parts of chat, knowledge and multilingual sets, then rounded.

The last four are priors of ours: those sets have no titles, topics or importance.
"""


class Signals(NamedTuple):
    """What the 0..1 score weighs: quantities that mean the same for every query."""

    coverage: float
    document_coverage: float
    passage: float
    unit: float
    phrase: float
    unit_meaning: float
    document_meaning: float
    query_length: float
    wide_coverage: float
    parent: float
    date: float
    neighbour: float


SCORE = Signals(
    coverage=2.01,
    document_coverage=0.76,
    passage=2.07,
    unit=0.65,
    phrase=1.43,
    unit_meaning=1.90,
    document_meaning=2.35,
    query_length=0.81,
    wide_coverage=1.52,
    parent=0.88,
    date=0.85,
    neighbour=0.49,
)
"""Logistic regression: documents labelled right against the results of another set's queries."""

BIAS = -4.5
"""A threshold of 0.3 then cuts 1 to 2 in 100 right answers and 74 of 100 unrelated ones."""

WORDS_BIAS = -2.4
"""The same where nothing could be compared by meaning: 2 in 100, and 70 of 100."""
