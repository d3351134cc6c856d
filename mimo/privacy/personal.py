"""The search for personal data in texts.

It finds mail and street addresses, telephone, card, account and insurance numbers, dates of birth
and IP addresses. It ignores look-alikes: versions, times, ids, digests, and the names and numbers
that are reserved for examples.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from mimo.frozen import NamedTuple
from mimo.privacy.model import Finding, Span, findings, folded, lines_with
from mimo.text.clean import compiled


class _Rule(NamedTuple):
    """A pattern of one kind of personal data."""

    kind: str
    pattern: str
    is_real: Callable[[re.Match[str]], bool] = lambda _: True
    """False for a look-alike."""
    group: int = 0
    """The group that is the data."""


def personal_in(text: str) -> tuple[Finding, ...]:
    """Returns the personal data in a text, in order."""
    if len(text) < _SHORTEST:
        return ()
    seen = folded(text)
    spans = _spans(seen.text)
    return findings(text, ((kind, *seen.span(start, end)) for kind, start, end in spans))


_SHORTEST = 6
_SPELLED_OUT = r"(?i)[\[(] ?at ?[\])]"
_NUMBER = r"\d[\d ()./-]{4,}\d"
"""Part of every number below, except IPv6 addresses."""


def _spans(text: str) -> Iterator[Span]:
    if "@" in text or compiled(_SPELLED_OUT).search(text):
        yield from _matches(text, _EMAILS)
    if not compiled(r"\d").search(text):
        return
    yield from _matches(text, _STREETS)
    lower = text.lower()
    if any(word in lower for word in ("calle ", "avenida ", "via", "piazza ", "plaza ", "rua ")):
        yield from _matches(text, (_Rule("address", _ROMANCE),))
    for number, street in ((_GERMAN, _STREET), (_KOREAN, _ROAD)):
        for match in compiled(number).finditer(text):
            offset = max(0, match.start() - _MAX_STREET)
            if named := compiled(street).search(text[offset : match.start()]):
                yield "address", offset + named.start(), match.end()
    if any(word in lower for word in ("born", "birth", "dob", "d.o.b", "geb", "생")):
        yield from _matches(text, _BIRTHS)
    near = lines_with(text, _NUMBER)
    numbers = (*_matches(near.text, _NUMBERS), *_ibans(near.text), *_matches(near.text, _IPS))
    yield from ((kind, *near.span(start, end)) for kind, start, end in numbers)
    if text.count(":") > 1:
        yield from _matches(text, (_Rule("ip", _IP6, _is_public),))


def _matches(text: str, rules: Sequence[_Rule]) -> Iterator[Span]:
    for rule in rules:
        for match in compiled(rule.pattern).finditer(text):
            if rule.is_real(match):
                yield rule.kind, *match.span(rule.group)


# Mail addresses.

_EMAIL = r"(?<![\w.%+-])\w[\w.%+'-]{0,63}@((?:[^\W_][\w-]{0,62}\.){1,8}[^\W\d_]{2,24})(?![\w-])"
_SPELLED = (
    r"(?<![\w.+-])[\w.+-]{1,64} ?[\[(] ?(?i:at) ?[\])] ?"
    r"([\w-]{1,63}(?: ?(?:[\[(] ?(?i:dot) ?[\])]|\.) ?[\w-]{2,63}){1,4})"
)
_EXAMPLE = (
    r"(?i)(?:^|\.)(?:example\.(?:com|org|net|edu)|(?:[\w-]+\.)?(?:example|test|invalid|localhost))$"
)
_NOT_ENDINGS = frozenset(
    "png jpg jpeg gif svg webp js ts mjs css md py rb go rs html json yml sh plist service local "
    "internal lan".split()
)
"""Endings of files and of names in private networks, which no public domain has."""
_PLACEHOLDER = (
    r"(?i)(?:(?:git|root|postgres|no-?reply|do-?not-?reply|noreply\+[\w-]*)@.*"
    r"|your[\w.-]*@.*|(?:user(?:name)?|(?:some)?(?:one|body)?|name|password|e?mail)@"
    r"(?:your|my)?-?(?:domain|company|host|server|e?mail|site|org)\..*"
    r"|.*\.\..*|.*@mail\.gmail\.com|\d{12,}\..*)"
)
"""Logins of machines, placeholders for addresses, and message ids."""
_LOGIN = r"(?:://(?:[^\s/@]{1,128}:)?|/|\b(?:ssh|scp|sftp|rsync) (?:-\S+ ){0,3})$"


def _is_personal(match: re.Match[str]) -> bool:
    """Returns whether a mail address can be a person's, not the login of a host or a file."""
    text, domain, ending = match.string, match[1], match[1].rpartition(".")[2].lower()
    after = text[match.end() : match.end() + 2]
    context = text[max(0, match.start() - 160) : match.start()]
    is_host = compiled(_LOGIN).search(context) or (after[:1] == ":" and after[1:].strip())
    is_made_up = compiled(_EXAMPLE).search(domain) or compiled(_PLACEHOLDER).fullmatch(match[0])
    return not (is_host or is_made_up or ending in _NOT_ENDINGS)


def _is_spelled(match: re.Match[str]) -> bool:
    domain = re.sub(r"(?i) ?[\[(] ?dot ?[\])] ?", ".", match[1])
    return not compiled(_EXAMPLE).search(domain)


_EMAILS = (_Rule("email", _EMAIL, _is_personal), _Rule("email", _SPELLED, _is_spelled))


# Street addresses and dates of birth.

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
_STREET = r"(?:[A-ZÄÖÜ][\wäöüß.-]{0,62} ){0,2}[A-ZÄÖÜ][\wäöüß.-]{1,78} \Z"
_ROAD = (
    r"(?:[가-힣]{2,6}[시도] ){0,2}(?:[가-힣]{1,4}[구군읍]|[가-힣]{2,4}시) "
    r"(?:[가-힣]{1,4}[읍면동] )?[가-힣0-9]{1,15}(?<!으)[로길] ?\Z"
)
_MAX_STREET = 80
"""Longest name of a street before its number."""
_STREETS = (_Rule("address", _ENGLISH), _Rule("address", _FRENCH))

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
_BIRTHS = (_Rule("birth_date", _BORN, group=1), _Rule("birth_date", _BORN_KOREAN))


# Telephone numbers.

_INTERNATIONAL = r"(?<![\w+])\+[1-9](?:[ ().-]{0,2}\d){6,14}(?!\d)"
_ABROAD = (
    r"00(?<![\w+.,:/-]00)(?<![0-9A-Fa-f]{2} 00)([1-9]\d{0,2}(?!(?: \d{4}){2,8}(?! ?\d))"
    r"(?: \d{7,12}|[ /-](?:\(0\) ?)?\d{1,5}(?:[ /-]\d{2,8}){1,5}))(?![\w/-]|[.,:]\d| \d)"
)
"""With zeros in place of the `+`, then groups; not all of four digits, as in a dump of bytes."""
_AMERICAN = (
    r"(?<![\w+./-])(?:\+?1[ .-]?)?(?:\([2-9]\d\d\) ?|[2-9]\d\d([ .-]))\d{3}[ .-]\d{4}"
    r"(?![\w-]|\.\d)"
)
_NATIONAL = (
    r"0(?<![\w+./,:-]0)[1-9]\d{0,4}[ /-]\d{3,4}(?:[ -]?\d{3,5}|\d{1,5})(?![\w/-]|[.,:]\d| \d)"
    r"|0(?<![\w+./,:-]0)(?<![0-9A-Fa-f]{2} 0)(?<![0-9A-Fa-f]{2}  0)[1-9](?:[ .]\d\d){4}"
    r"(?!\w|[.,:]\d| {1,2}[0-9A-Fa-f]{2}\b)"
)
"""Within a country: an area after a zero, then groups; or pairs, as in France."""
_NAMED = (
    r"(?i:\b(?:phone|telephone|tel|telefon|mobile|mobil|cell|handy|fax|whatsapp|sms))"
    r"(?i:[ _-]?(?:number|no|nr))?\.?[\"'`]{0,2}(?:\s{0,3}[:=]|\s{1,3}is)?\s{0,3}[\"'`]?"
    r"(\+?\(?\d(?:[ ()./-]{0,2}\d){6,14})(?![\w])"
)
_LEAST_DIGITS = 7


def is_phone(text: str) -> bool:
    """Returns whether a text after a word such as `phone` can be a telephone number."""
    digits = _digits(text)
    return _LEAST_DIGITS <= len(digits) <= 15 and len(set(digits)) > 1 and not _is_fictional(text)


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


def _is_fictional(text: str) -> bool:
    """Returns whether a number is reserved for films and manuals, such as 555-0142."""
    digits = _digits(text)
    is_local = len(digits) in (7, 10, 11)
    return is_local and (digits[-7:-2] == "55501" or digits[-7:] == "5551212")


def _exists(text: str) -> bool:
    """Returns whether an international number is valid, if phonenumbers is installed."""
    if text.startswith("+1"):
        return re.fullmatch(r"1[2-9]\d{9}", _digits(text)) is not None
    library = _library()
    if library is None:
        return len(_digits(text)) > _LEAST_DIGITS
    try:
        return bool(library.is_valid_number(library.parse(text, None)))
    except library.NumberParseException:
        return False


@cache
def _library() -> Any:
    try:
        import phonenumbers
    except ImportError:
        return None
    return phonenumbers


# Numbers of insurances, cards and accounts.

_SSN = r"\d{3}(?<![\w-]\d{3})(?<!000|666|9\d\d)([- ])(?!00)\d{2}\1(?!0000)\d{4}(?![\w-])"
_NAMED_SSN = r"(?i)\bssn\b[ :=#]{1,3}(\d{9})(?!\w)"
_PRINTED = ("078-05-1120", "219-09-9999")
"""Numbers from advertisements that were never assigned to a person."""

_CARD = r"(?<![\w.-])(?:\d[ -]{0,2}){12,18}\d(?![\w-]|\.\d)"
_GROUPS = (
    r"\d{13,16}|\d{4}( {1,2}|-)\d{4}\1\d{4}\1\d{1,7}(?:\1\d{3})?|\d{4}( {1,2}|-)\d{6}\2\d{4,5}"
)

_ISSUERS = (
    ("4", "4", (13, 16, 19)),
    ("51", "55", (16,)),
    ("2221", "2720", (16,)),
    ("34", "34", (15,)),
    ("37", "37", (15,)),
    ("300", "305", (14,)),
    ("36", "36", (14,)),
    ("38", "39", (14, 16)),
    ("3528", "3589", (16,)),
    ("6011", "6011", (16, 19)),
    ("644", "659", (16, 19)),
    ("62", "62", (16, 17, 18, 19)),
    ("50", "50", (16, 19)),
    ("56", "58", (16, 19)),
)
"""First digits of card issuers, from and to, and the lengths of their numbers."""


def _is_card(match: re.Match[str]) -> bool:
    """Returns whether digits are an issuer's card number with the right check digit (Luhn's)."""
    digits = re.sub(r"[ -]", "", match[0])
    issued = any(
        low <= digits[: len(low)] <= high and len(digits) in lengths
        for low, high, lengths in _ISSUERS
    )
    if not issued or not compiled(_GROUPS).fullmatch(match[0]):
        return False
    values = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in values) % 10 == 0


_NUMBERS = (
    _Rule("phone", _INTERNATIONAL, lambda hit: not _is_fictional(hit[0]) and _exists(hit[0])),
    _Rule("phone", _ABROAD, lambda hit: 9 <= len(_digits(hit[1])) <= 15 and _exists(f"+{hit[1]}")),
    _Rule("phone", _AMERICAN, lambda hit: not _is_fictional(hit[0])),
    _Rule("phone", _NATIONAL, lambda hit: 9 <= len(_digits(hit[0])) <= 12),
    _Rule("phone", _NAMED, lambda hit: is_phone(hit[1]), group=1),
    _Rule("ssn", _SSN, lambda hit: hit[0] not in _PRINTED),
    _Rule("ssn", _NAMED_SSN, group=1),
    _Rule("credit_card", _CARD, _is_card),
)

_LENGTHS = {
    word[:2]: int(word[2:])
    for word in (
        "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 "
        "DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 "
        "IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 "
        "MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 "
        "SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30"
    ).split()
}
"""Length of an account number by country."""
_IBAN = r"(?<![A-Za-z0-9])([A-Za-z]{2})\d\d(?=[ -]{0,2}[A-Za-z0-9])"
_IBAN_TAIL = r"(?:[ -]{0,2}[A-Za-z0-9]){8,32}"


def _ibans(text: str) -> Iterator[Span]:
    """Yields account numbers with the right length and check digits."""
    for match in compiled(_IBAN).finditer(text):
        size = _LENGTHS.get(match[1].upper())
        tail = compiled(_IBAN_TAIL).match(text, match.end())
        if size is None or tail is None:
            continue
        start, end, account = match.start(), match.start(), ""
        while len(account) < size and end < tail.end():
            account += text[end].strip(" -")
            end += 1
        if len(account) == size and not text[end : end + 1].isalnum():
            turned = account[4:] + account[:4]
            if int("".join(str(int(char, 36)) for char in turned)) % 97 == 1:
                yield "iban", start, end


# Addresses of computers.

_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_IP4 = rf"(?<![\w.-])(?<!\w/)(?:{_OCTET}\.){{3}}{_OCTET}(?![\w-]|\.\d)"
_VERSION = r"(?i)(?:\bv|versions?|release|build|[=<>~^@])[ \t\"'`:]{0,5}$"
_NOT_PERSONAL = (
    r"0\.|10\.|127\.|169\.254\.|172\.(?:1[6-9]|2\d|3[01])\.|192\.168\.|192\.0\.[02]\.|198\.51\.100\."
    r"|203\.0\.113\.|198\.1[89]\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|2(?:2[4-9]|[345]\d)\."
    r"|.*\.0$|8\.8\.4\.4$|9\.9\.9\.|1\.1\.1\."
)
"""Networks that are private, reserved or for examples, and public DNS servers."""


def _is_address(match: re.Match[str]) -> bool:
    """Returns whether four numbers are a public address; three low ones are a version."""
    context = match.string[max(0, match.start() - 12) : match.start()]
    low = sum(int(octet) < 20 for octet in match[0].split("."))
    is_reserved = compiled(_NOT_PERSONAL).match(match[0])
    return low < 3 and not is_reserved and not compiled(_VERSION).search(context)


_IPS = (_Rule("ip", _IP4, _is_address),)

_IP6 = r"[23](?<![\w:.][23])[0-9A-Fa-f]{3}:[0-9A-Fa-f:]{2,35}(?![\w:])"
"""Public addresses begin with 2 or 3, unlike `a::b` in source code."""


def _is_public(match: re.Match[str]) -> bool:
    from ipaddress import AddressValueError, IPv6Address, IPv6Network

    try:
        address = IPv6Address(match[0])
    except AddressValueError:
        return False
    return address.is_global and address not in IPv6Network("2001:db8::/32")
