"""An expression -> the words of the grammar, in one pass over it."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from unicodedata import normalize

from mimo.when.span import LENGTHS

# Words of English and Korean -> the few words that the grammar knows.


MONTHS = (
    "january february march april may june july august september october november december".split()
)
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
PARTS = {
    "morning": (6, 12),
    "afternoon": (12, 18),
    "evening": (18, 24),
    "night": (18, 30),
    "dawn": (0, 6),
    "am": (0, 12),
    "pm": (12, 24),
}
"""Parts of a day, in hours from its midnight."""
UNITS = {
    **{unit: unit for unit in LENGTHS},
    "일": "day",
    "분기": "quarter",
    "초": "second",
    "년": "year",
}
"""Words for a unit that is counted; the Korean ones here can mean other things too."""
VAGUE = {"couple": 2, "few": 5, "several": 7}
"""Generous, since a span that is too long loses nothing."""
THIRDS = {"early": 0, "초": 0, "mid": 1, "late": 2}
"""Thirds of a month or a year."""

_UNITS = {
    "second": "s sec secs seconds",
    "minute": "min mins minutes",
    "hour": "h hr hrs hours",
    "day": "d days",
    "week": "w wk wks weeks",
    "fortnight": "fortnights",
    "month": "mo mos months",
    "quarter": "quarters qtr",
    "year": "y yr yrs years",
}
_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen twenty"
).split()
_OTHERS = {
    "last": "previous recent",
    "this": "current",
    "before": "predating",
    "until": "till til by through thru up",
    "since": "starting",
    "early": "beginning start",
    "mid": "middle",
    "late": "end",
    "night": "nighttime",
    "noon": "midday",
    "..": "~ – — -",
}

ENGLISH: dict[str, str] = {
    **{word: name for name, words in _UNITS.items() for word in [name, *words.split()]},
    **{word: name for name, words in _OTHERS.items() for word in words.split()},
    **{word: str(number) for number, word in enumerate(_NUMBERS)},
    "a": "1",
    "an": "1",
    "thirty": "30",
    "sixty": "60",
    "ninety": "90",
    **{month[:3]: month for month in MONTHS},
    **{day[:3]: day for day in WEEKDAYS},
    "sept": "september",
    "tues": "tuesday",
    "weds": "wednesday",
    "thur": "thursday",
    "thurs": "thursday",
}
"""Other spellings; a word that is not here stands for itself."""

FILLERS = frozenset("the of on at during over within throughout".split())
"""Words that change nothing."""

PAIRS = {
    ("older", "than"): "before",
    ("earlier", "than"): "before",
    ("prior", "to"): "before",
    ("newer", "than"): "since",
    ("later", "than"): "after",
    ("until", "to"): "until",
    ("until", "until"): "until",
    **{
        (name, "quarter"): f"q{number}"
        for number, names in enumerate(["first 1st", "second 2nd", "third 3rd", "fourth 4th"], 1)
        for name in names.split()
    },
    ("first", "half"): "h1",
    ("second", "half"): "h2",
    **{(str(number), "월"): month for number, month in enumerate(MONTHS, 1)},
    **{(f"0{number}", "월"): month for number, month in enumerate(MONTHS[:9], 1)},
    **{(str(number), "분기"): f"q{number}" for number in range(1, 5)},
}
"""Two words that say one thing."""

KNOWN = frozenset(
    {
        *ENGLISH,
        *ENGLISH.values(),
        *FILLERS,
        *MONTHS,
        *WEEKDAYS,
        *PARTS,
        *VAGUE,
        *THIRDS,
        *"now today yesterday tonight last past this ago half weekend since after before".split(),
        *"until from to between and in noon first second third fourth older newer".split(),
    }
)
"""Every English word that may stand in an expression."""

_KOREAN = {
    "now": "지금 현재",
    "today": "오늘 금일",
    "yesterday": "어제 어저께 작일",
    "day before yesterday": "그저께 그제 재작일",
    "yesterday night": "어젯밤 간밤 지난밤",
    "1 couple day ago": "엊그제 엊그저께",
    "1 few day ago": "며칠전",
    "this": "이번",
    "last": "지난 최근 저번 지난번 직전",
    "before-last": "지지난 저저번",
    "this week": "금주",
    "this month": "금월 이달",
    "this year": "올해 금년",
    "last year": "작년 지난해 전년",
    "before-last year": "재작년",
    "minute": "분 분간",
    "hour": "시간",
    "일": "일 일간",
    "week": "주 주일 주간",
    "month": "달 개월 개월간 달간",
    "분기": "분기",
    "년": "년 년도",
    "year": "해 년간",
    "weekend": "주말",
    "half": "반",
    "월": "월 월달",
    "시": "시",
    "ago": "전",
    "before": "이전",
    "부터": "부터 에서",
    "이후": "이후 이래",
    "까지": "까지",
    "사이": "사이",
    "와": "와 과 하고",
    "within": "동안 간 이내 내",
    "morning": "아침",
    "am": "오전",
    "pm": "오후",
    "evening": "저녁",
    "night": "밤",
    "dawn": "새벽",
    "noon": "정오",
    "h1": "상반기",
    "h2": "하반기",
    "초": "초 초간",
    "early": "초순 초반",
    "mid": "중순 중반",
    "late": "말 하순 후반",
    "1 day": "하루",
    "2 day": "이틀",
    "3 day": "사흘",
    "4 day": "나흘",
    "5 day": "닷새",
    "10 day": "열흘",
    "15 day": "보름",
    "few day": "며칠",
    "few": "몇",
    "half 1 year": "반년",
    "1 week": "일주일",
    "2 week": "이주일 이주",
    "1 year": "일년",
    "1 month": "일개월",
    "1": "한",
    "2": "두",
    "3": "세 석",
    "4": "네 넉",
    "5": "다섯",
    "6": "여섯",
    "7": "일곱",
    "8": "여덟",
    "9": "아홉",
    "10": "열",
    "": "의 에 에는 중 도",
}
_KOREAN_WEEKDAYS = "월화수목금토일"

KOREAN: dict[str, tuple[str, ...]] = {
    **{word: tuple(meant.split()) for meant, words in _KOREAN.items() for word in words.split()},
    **{f"{first}요일": (day,) for first, day in zip(_KOREAN_WEEKDAYS, WEEKDAYS, strict=True)},
}
"""Parts of Korean words, which are written together or apart, and what they stand for."""

LONGEST_KOREAN = max(map(len, KOREAN))


MOST_CHARACTERS = 200
MOST_WORDS = 24

_MANY = "9999999999"
"""Stands for every count that is larger."""

_PATTERN = r"""
    (?P<week>\d{4}-?w\d\d(?:-?\d)?(?!\d))
  | (?P<date>\d{4}(?P<s>[-/]|\.\ ?)\d{1,2}(?P=s)\d{1,2}(?!\d)(?:\.(?!\.))?
      (?:(?:t\d\d|\ \d{1,2}(?=:))(?::\d\d(?::\d\d(?:[.,]\d{1,9})?)?)?
         (?:\ ?(?:z|utc|gmt)\b|[+-]\d\d(?::?\d\d)?)?(?![\d:]))?)
  | (?P<month>\d{4}[-/.]\d{1,2}(?!\d))
  | (?P<basic>\d{8}(?!\d))
  | (?P<quarter>(?:\d{4}[-\ ]?)?[qh][1-4]\b(?:[-\ ]?\d{4}(?!\d))?)
  | (?P<numeric>\d{1,2}[-.]\d{1,2}[-.]\d{2,4}(?!\d)|\d{1,2}/\d{1,2}(?:/\d{2,4})?(?!\d))
  | (?P<time>\d{1,2}:\d\d(?!\d))
  | (?P<ordinal>\d{1,2}(?:st|nd|rd|th)\b)
  | (?P<number>\d+(?:\.\d+)?)
  | (?P<korean>[가-힣]+)
  | (?P<word>[^\W\d_가-힣]+)
  | (?P<blank>['’]s\b|[\s,'’]+|(?:(?<=early)|(?<=mid)|(?<=late))-)
  | (?P<to>\.{2,}|[-~–—/])
"""


@cache
def _pattern() -> re.Pattern[str]:
    """Returns the pattern of one piece of text; no part of it can be read in many ways."""
    return re.compile(_PATTERN, re.VERBOSE)


def tidy(expression: str) -> str:
    """Returns the expression in lower case, its blanks single and its digits plain."""
    text = " ".join(normalize("NFKC", expression).lower().split())
    return text[:-1].rstrip() if text.endswith((".", "。")) and not text.endswith("..") else text


def words_of(expression: str) -> tuple[str, ...] | None:
    """Returns the words that an expression consists of; None where some of it can be no word."""
    text = tidy(expression[: 4 * MOST_CHARACTERS])
    if len(text) > MOST_CHARACTERS or len(expression) > 4 * MOST_CHARACTERS:
        return None
    found = list(_joined(_split(text)))
    return tuple(found) if len(found) <= MOST_WORDS and "?" not in found else None


def _split(text: str) -> Iterator[str]:
    """Yields the words one by one; `?` for what is none."""
    place = 0
    while place < len(text):
        match = _pattern().match(text, place)
        if match is None:
            yield "?"
            return
        place = match.end()
        yield from _meant(match.lastgroup or "", match[0])


def _meant(kind: str, text: str) -> Iterable[str]:
    """Returns the words of the grammar that one piece of text stands for."""
    match kind:
        case "korean":
            return _korean(text)
        case "blank":
            return ()
        case "to":
            return ("..",)
        case "word":
            word = ENGLISH.get(text, text)
            return () if word in FILLERS else (word,)
        case "quarter":
            return re.findall(r"[qh]\d|\d{4}", text)
        case "number":
            return (text if len(text) < 10 else _MANY,)
    return (text,)


def _korean(text: str) -> Iterable[str]:
    """Returns the meanings of the longest known parts, from left to right."""
    found: list[str] = []
    while text:
        for length in range(min(LONGEST_KOREAN, len(text)), 0, -1):
            if (meant := KOREAN.get(text[:length])) is not None:
                found.extend(meant)
                text = text[length:]
                break
        else:
            return ("?",)
    return found


def _joined(words: Iterable[str]) -> Iterator[str]:
    """Yields the words, those joined that say one thing together."""
    held = ""
    for word in words:
        if one := PAIRS.get((held, word)) or _year(held, word):
            held = one
        elif word != "in" or not held:
            if held:
                yield held
            held = word
    if held:
        yield held


def _year(before: str, word: str) -> str | None:
    """Returns a year that is followed by its Korean mark."""
    return before if word == "년" and len(before) == 4 and before.isdigit() else None
