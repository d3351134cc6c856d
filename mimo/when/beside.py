"""The words beside a time in a question, and whether they change which time is meant.

In `no later than november 10` or `other than yesterday`, the last words alone name another time
than the one that is meant. If the grammar can't read such a phrase as a whole, the question names
no time. The lists have negations, comparisons, conjunctions, numbers, and parts of a period.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mimo.text.calendar import MONTHS, NUMBERS, WEEKDAYS
from mimo.text.clean import compiled
from mimo.text.families import WORDS
from mimo.when.vocabulary import FILLERS

_CHANGING = WORDS["before a time"]
"""Words before a time that change it."""
_UNITS = frozenset(
    "second minute hour day night morning afternoon evening week weekend month quarter year".split()
)
_PARTS = _UNITS | frozenset(
    "start end eve rest remainder part some instead spring summer autumn fall winter".split()
)
"""Words that change a time which follows them after `of`."""
_NARROWING = frozenset("shortly soon right immediately directly just long well".split())
"""Words that change `before november 10` and `after november 10`."""
_OPEN = frozenset("before after from prior".split())
_APPROXIMATE = frozenset("about around approximately roughly almost exactly only just even".split())
"""Words before a time that leave it as it is."""

_BEHIND = WORDS["after a time"]
"""Words after a time that change it."""
_JOINING = frozenset(
    "and or nor but to through thru by from on in at of around versus vs & + / - – — ~ 및 또는 혹은"
    " 그리고 아니면".split()
)
"""Words after which another time belongs to the first one."""
_BETWEEN = (
    FILLERS | frozenset("in also then maybe possibly perhaps only not just even".split())
) - {"within"}
_COMPARED = frozenset(
    "earlier later before after older newer beyond more less longer fewer noon midnight".split()
)
_NAMES = frozenset(
    {*WEEKDAYS, *MONTHS, *(month[:3] for month in MONTHS), *"sept mon tue wed thu fri".split()}
) - frozenset("may march mar".split())
_DAYS = _NAMES | frozenset("yesterday today tonight tomorrow ago".split())
_WHICH = frozenset("last past previous next this coming following".split())
_NUMBERS = frozenset({*NUMBERS, *"couple few several thirty sixty ninety hundred".split()})

_SENTENCE_END = r"(?:[!?;]|(?<=\w{4})[.:]|^[.:])(?=\s|$)"
"""An abbreviation such as `Nov.` has fewer letters."""
_KOREAN_TIME = (
    r"어제|어저께|그제|그저께|오늘|금일|어젯밤|간밤|내일|지난주|이번 ?주|.요일|주말|작년|올해"
    r"|\d+\s*(?:일|주|달|개월|년|월)(?![가-힣]{3})"
)
_KOREAN_BEHIND = (
    r"(?:말고|빼고|빼면|제외|아니라|아닌|이외|외에|넘게|넘은).*"
    r"|(?:초|말|중|밖|전|이전|이후|후|까지|부터|사이|첫|첫째|둘째|셋째|넷째|마지막|초순|중순|하순|초반|중반|후반|전반|이상|이하|이내)"
    r"(?:에|엔|에는|의|쯤|까지|부터)?"
)
"""Words after a Korean time that change it."""


def is_changed(head: str, expression: str, after: str) -> bool:
    """Returns whether the words beside the expression in its sentence change the time.

    Unknown words do not: `the deploys of last week` and `last week's deploys` name that week.
    """
    words = _words(expression)
    if not words:
        return False
    ends = compiled(_SENTENCE_END)
    return _is_changed_ahead(_words(ends.split(head)[-1]), words) or _is_changed_after(
        words, _words(ends.split(after)[0])
    )


def _is_changed_ahead(words: list[str], phrase: list[str]) -> bool:
    is_narrow = phrase[0] in _OPEN
    if is_narrow and words and (words[-1] in _NARROWING or _unit(words[-1])):
        return True
    is_of = phrase[0] == "of"
    while words and words[-1] in FILLERS | _APPROXIMATE:
        is_of = is_of or words[-1] == "of"
        words = words[:-1]
    if not words:
        return False
    tail, earlier = words[-1], words[:-1]
    if tail == "earlier" and phrase[0] in ("this", "today"):
        return False
    if tail in _CHANGING or (is_of and (tail in _PARTS or _unit(tail))):
        return True
    if _is_number(tail) and (_is_number(phrase[0]) or _unit(phrase[0])):
        return True
    if tail == "but":
        return bool(
            {"all", "any", "every", "anything", "everything", "nothing"} & set(earlier[-2:])
        )
    if tail == "to" and not phrase[-1].endswith(("'s", "’s")):
        return True
    if tail not in _JOINING:
        return _is_time(words, len(words) - 1)
    return "between" in earlier or (
        bool(earlier) and (_is_number(earlier[-1]) or _is_time(words, len(earlier) - 1))
    )


def _is_changed_after(phrase: list[str], words: list[str]) -> bool:
    if not words:
        return False
    head = words[0]
    if head in _BEHIND or compiled(_KOREAN_BEHIND).fullmatch(head):
        return True
    if head[0].isdigit() and phrase[-1] in _NAMES:
        return True
    if head not in _JOINING:
        return _is_time(words, 0)
    place = next((n for n, word in enumerate(words[1:], 1) if word not in _BETWEEN), len(words))
    if head == "but" and "not" in words[1:place]:
        return True
    if place == len(words):
        return False
    if head in ("at", "around", "from", "by") and words[place][0].isdigit():
        return True
    return words[place] in _COMPARED or _unit(words[place]) or _is_time(words, place)


def _is_time(words: Sequence[str], place: int) -> bool:
    """Returns whether a word begins or is a time."""
    word = compiled(r"['’]s$").sub("", words[place])
    if word in _DAYS or compiled(r"(?:19|20)\d\d(?:-\d.*)?").fullmatch(word):
        return True
    if not word.isascii():
        return compiled(_KOREAN_TIME).match(word) is not None
    following = words[place + 1] if place + 1 < len(words) else ""
    if word in _WHICH:
        return _unit(following) or following in _DAYS
    return _is_number(word) and _unit(following)


def _unit(word: str) -> bool:
    return word.removesuffix("s") in _UNITS


def _is_number(word: str) -> bool:
    return word in _NUMBERS or word.isdecimal()


def _words(text: str) -> list[str]:
    found = re.findall(r"[^\s,;?!\"“”()\[\]]+", text.lower())
    return [word.rstrip(".:…") or word for word in found]
