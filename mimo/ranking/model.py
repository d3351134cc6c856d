"""The data and the constants of the ranking; docs/retrieval.md explains them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from mimo.frozen import frozen
from mimo.ranking.dates import Window


@frozen
class RankingQuery:
    """A query, as `understand` reads it."""

    text: str
    full: tuple[str, ...]
    """Distinct tokens without the stop words."""
    content: tuple[str, ...]
    """`full` without question words, by which candidates are looked up."""
    asked: datetime | None = None
    """The time from which ages are counted; None ignores ages."""
    windows: tuple[Window, ...] = ()
    """Dates that the query names."""
    asks_when: bool = False
    """True if it asks for a time."""
    latin: bool = True
    """False if most letters are not Latin, a script that the embedding model does not know."""


@frozen
class Statistics:
    """Frequencies of a query's words in this store."""

    units: int
    """Units in the store."""
    frequencies: Mapping[str, int]
    """Number of units with each of the query's terms; absent if there are none."""
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
    """The sort key, largest first; comparable only within one query."""
    score: float
    """0..1, comparable between queries: 0.3 separates related from unrelated."""
    unit: int
    """The number of its best unit, from 0."""


K1 = 1.2
B = 0.75
"""BM25's constants, as FTS5 has them (S. Robertson, H. Zaragoza, 2009)."""

PHRASE_DISTANCE = 2
"""Most tokens from the first to the second term of a phrase."""

SPEAKER_LINES = 5
"""Fewest candidate units with a line that begins with a name, for it to be a speaker."""

LATIN_SHARE = 0.5
"""Share of Latin letters in a query below which its vector is ignored."""

AGE_HALF_LIFE_DAYS = 180.0


class Features(NamedTuple):
    """The features of the order, each about 0..1; BM25s are shares of the largest."""

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
    """The features of the 0..1 score, which are comparable between queries."""

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
"""The same for candidates without a comparison by meaning: 2 in 100, and 70 of 100."""
