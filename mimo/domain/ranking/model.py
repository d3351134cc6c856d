"""What the ranking is given and what it answers."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from mimo.domain.dates import Window
from mimo.frozen import frozen


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
