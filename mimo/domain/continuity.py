"""Questions about what was last, rather than about anything in particular."""

import re
from functools import cache

from mimo.domain.tokens import QUESTION_WORDS


def asks_for_the_latest(query: str) -> bool:
    """Returns whether an English question only asks where things stand: "where did we stop?"

    No memory says so in these words; the newest ones are the answer.
    """
    rest, found = _phrases().subn(" ", query.lower())
    words = re.findall(r"\w+", rest)
    return bool(found) and len(query.split()) > 1 and all(word in QUESTION_WORDS for word in words)


@cache
def _phrases() -> re.Pattern[str]:
    before = r"(?:last|latest|previous|earlier|prior|past|recent)"
    work = r"(?:time|sessions?|conversations?|chats?|interactions?|context|discussions?|work)"
    return re.compile(
        rf"\b(?:{before}\s+{work}|(?:left|leave) off|stop(?:ped)?|continue|resume|pick up|recap"
        r"|catch (?:me|us) up|work(?:ed|ing)? on|so far|happened|talk(?:ed|ing)? about|discussed"
        r"|previously|recently)\b"
    )
