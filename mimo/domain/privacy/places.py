"""Street addresses and dates of birth in texts."""

from collections.abc import Iterator

from mimo.domain.privacy.patterns import compiled

_NAME = r"[A-ZÀ-ÖØ-Þ][\w'.-]{0,30}[\w.]"
_TOWN = rf"(?:,? (?:[A-Z]{{1,3}}-)?\d{{4,5}} {_NAME})?"
_ENGLISH = (
    r"\d(?<![\w.,:/#$-]\d)\d{0,4}[A-Za-z]?(?: [NSEW]\.?)?"
    r"(?! (?:Google|Microsoft)\b)(?: (?:[A-Z][a-z'-]{1,20}\.?|\d{1,3}(?:st|nd|rd|th))){1,3}? "
    r"(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Terrace|Way|Place|Pl"
    r"|Square|Sq|Crescent|Close|Highway|Hwy|Parkway|Pkwy)\b\.?"
    rf"(?:, {_NAME}(?: {_NAME}){{0,2}}){{0,2}}(?:,? [A-Z]{{2}}\b)?(?: \d{{5}}(?:-\d{{4}})?\b)?"
)
_FRENCH = (
    r"\d(?<!\w\d)\d{0,3}(?: (?:bis|ter))?,? (?:rue|avenue|boulevard|place|chemin|quai|impasse) "
    rf"(?:(?:de la|de l'|de|du|des|la|le|les|d') ?)?{_NAME}(?: {_NAME}){{0,2}}{_TOWN}"
)
_GERMAN = (
    r"\d(?:(?<=(?i:straße) \d)|(?<=(?i:strasse) \d)|(?<=(?i:str)\. \d)|(?<=(?i:weg) \d)"
    rf"|(?<=(?i:gasse|allee|platz) \d))\d{{0,3}}[a-z]?\b{_TOWN}"
)
_KOREAN = r"\d(?:(?<=[로길]\d)|(?<=[로길] \d))\d{0,3}(?:-\d{1,4})?(?!\d)"
_ROMANCE = (
    r"\b(?:Calle|Avenida|Via|Viale|Piazza|Plaza de|Plaza Mayor|Rua) "
    r"(?:(?:de|del|della|la|da|do) ){0,2}"
    rf"{_NAME}(?: {_NAME}){{0,2}},? (?:n[.º°] ?)?\d{{1,4}}\b{_TOWN}"
)
_STREET = r"(?:[A-ZÄÖÜ][\wäöüß.-]{0,30}[ -]){0,2}[A-ZÄÖÜ][\wäöüß.-]{1,40} \Z"
_ROAD = (
    r"(?:[가-힣]{2,6}[시도] ){0,2}(?:[가-힣]{1,4}[구군읍]|[가-힣]{2,4}시) "
    r"(?:[가-힣]{1,4}[읍면동] )?[가-힣0-9]{1,15}(?<!으)[로길] ?\Z"
)
_BEFORE = 80
"""The name of a street before its number is no longer."""


def addresses(text: str) -> Iterator[tuple[int, int]]:
    """Yields where the addresses of houses stand."""
    for pattern in (_ENGLISH, _FRENCH):
        yield from (match.span() for match in compiled(pattern).finditer(text))
    if any(word in text for word in ("Calle ", "Avenida ", "Via", "Piazza ", "Plaza ", "Rua ")):
        yield from (match.span() for match in compiled(_ROMANCE).finditer(text))
    for pattern, street in ((_GERMAN, _STREET), (_KOREAN, _ROAD)):
        for match in compiled(pattern).finditer(text):
            first = max(0, match.start() - _BEFORE)
            if named := compiled(street).search(text[first : match.start()]):
                yield first + named.start(), match.end()


_MONTH = r"(?i:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[a-zä]{0,6}\.?"
_DATE = (
    r"\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-] ?\d{1,2}[./-] ?\d{2,4}|\d{8}"
    r"|\d{4}년 ?\d{1,2}월 ?\d{1,2}일"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)? {_MONTH},? \d{{4}}"
    rf"|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}"
)
_BORN = (
    r"(?:(?i:\b(?:born(?: on)?|birth[ _-]?da(?:y|te)|date[ _-]of[ _-]birth|d\.?o\.?b\b\.?"
    r"|geboren(?: am)?|geburts(?:tag|datum)|geb\.))|생년월일|생일|출생일?)"
    r"(?: (?:is|was|ist|war)\b|[은는이])?[\"'`*|(]{0,3}\s{0,3}[:=]?\s{0,3}[\"'`*|(]{0,3}"
    rf"({_DATE})(?![\d-])"
)
_BORN_KOREAN = r"\d{4}년 ?\d{1,2}월 ?\d{1,2}일 ?생"
_SIGNS = ("born", "birth", "dob", "d.o.b", "geb", "생")


def births(text: str) -> Iterator[tuple[int, int]]:
    """Yields where the dates of births stand."""
    lower = text.lower()
    if any(sign in lower for sign in _SIGNS):
        yield from (match.span(1) for match in compiled(_BORN).finditer(text))
        yield from (match.span() for match in compiled(_BORN_KOREAN).finditer(text))
