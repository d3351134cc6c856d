"""A query's text -> what the ranking looks for."""

import re
from datetime import datetime

from mimo.domain import dates
from mimo.domain.ranking.model import RankingQuery
from mimo.domain.ranking.weights import LATIN_SHARE
from mimo.domain.tokens import query_terms

_when = re.compile(
    r"\W*(?:(?:since|until|by) when|when|how long|(?:(?:in|on|at|by) )?(?:what|which) "
    r"(?:date|day|week|month|year|time))\b",
    re.IGNORECASE,
)


def understand(text: str, asked: datetime | None = None) -> RankingQuery:
    """Returns the query that `text` is, asked at `asked`.

    Without `asked`, words such as "last week" name no date.
    """
    terms = query_terms(text)
    return RankingQuery(
        text=text,
        full=terms.full,
        content=terms.content,
        asked=asked,
        windows=dates.windows(text, asked.date() if asked else None),
        asks_when=_when.match(text) is not None,
        latin=_is_latin(text),
    )


def _is_latin(text: str) -> bool:
    letters = [character for character in text if character.isalpha()]
    latin = sum([character < "\u0250" or "\u1e00" <= character < "\u1f00" for character in letters])
    return latin >= LATIN_SHARE * len(letters)
