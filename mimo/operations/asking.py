"""The way to answer a query: by a search, or by a list if it names no subject."""

from datetime import datetime
from enum import Enum, auto

from mimo.frozen import frozen
from mimo.text.clean import compiled
from mimo.text.tokens import QUESTION_WORDS
from mimo.when.question import NamedTime, named_time

_FEW = 2
"""Up to so many English words are searched for before they count as a question without subject."""


class Way(Enum):
    """The way to answer a query."""

    SEARCH = auto()
    SPAN = auto()
    """It names a time and no subject: the memories of that time."""
    LATEST = auto()
    """It asks where work stopped: the checkpoint and the newest memories."""
    NEWEST = auto()
    """It names nothing: the newest memories."""


@frozen
class Asking:
    """A query as it was understood."""

    way: Way
    otherwise: Way | None = None
    """The way to answer it if a search finds no sure match."""
    time: NamedTime | None = None
    """The time to which the answer is limited, or near to which it should be."""
    decisions: bool = False
    """True if it asks for decisions."""


def understood(text: str, now: datetime) -> Asking:
    """Returns the way to answer a query that is asked now."""
    from mimo.text.continuity import asks_where_work_stopped, is_framing

    words = compiled(r"\w+").findall(text.lower())
    if not words:
        return Asking(way=Way.NEWEST)
    time = named_time(text, now)
    rest = time.rest if time else text
    if time and (is_framing(rest) or not compiled(r"\w").search(rest)):
        decisions = compiled(r"\b(?:decid|decision)|결정").search(rest.lower()) is not None
        return Asking(way=Way.SPAN, time=time, decisions=decisions)
    if time and time.is_present:
        time = None
    otherwise = None
    if asks_where_work_stopped(text):
        if len(words) > _FEW or not text.isascii():
            return Asking(way=Way.LATEST)
        otherwise = Way.LATEST
    elif all(word in QUESTION_WORDS for word in words):
        return Asking(way=Way.NEWEST)
    elif is_framing(text):
        otherwise = Way.NEWEST
    return Asking(way=Way.SEARCH, otherwise=otherwise, time=time)
