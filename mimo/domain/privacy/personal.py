"""Finding personal data: addresses, telephone, card, account and insurance numbers, births, IPs.

What only looks like one is left alone: versions, times, ids, digests, and the names and numbers
that are set apart for examples.
"""

import re
from collections.abc import Iterator

from mimo.domain.privacy import phones, places
from mimo.domain.privacy.checks import iban_length, is_card, is_iban
from mimo.domain.privacy.folding import folded, lines_with
from mimo.domain.privacy.model import Finding, Span, findings

_LEAST = 6


def personal_in(text: str) -> tuple[Finding, ...]:
    """Returns the personal data in a text, in its order."""
    if len(text) < _LEAST:
        return ()
    seen = folded(text)
    spans = _spans(seen.text)
    return findings(text, ((kind, *seen.span(start, end)) for kind, start, end in spans))


def _spans(text: str) -> Iterator[Span]:
    if "@" in text or _SPELLED_OUT.search(text):
        yield from _emails(text)
    if _DIGIT.search(text):
        yield from (("address", *span) for span in places.addresses(text))
        yield from (("birth_date", *span) for span in places.births(text))
        near = lines_with(text, _NUMBER)
        yield from ((kind, *near.span(start, end)) for kind, start, end in _numbers(near.text))
        if text.count(":") > 1:
            yield from _ip6(text)


_DIGIT = re.compile(r"\d")
_NUMBER = r"\d[\d ()./-]{4,}\d"
"""What every number below has in it, except the IPs of version 6."""
_SPELLED_OUT = re.compile(r"(?i)[\[(] ?at ?[\])]")
_EMAIL = re.compile(
    r"(?<![\w.%+-])\w[\w.%+'-]{0,63}@((?:[^\W_][\w-]{0,62}\.){1,8}[^\W\d_]{2,24})(?![\w-])"
)
_SPELLED = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64} ?[\[(] ?(?i:at) ?[\])] ?"
    r"([\w-]{1,63}(?: ?(?:[\[(] ?(?i:dot) ?[\])]|\.) ?[\w-]{2,63}){1,4})"
)
_EXAMPLE = re.compile(
    r"(?i)(?:^|\.)(?:example\.(?:com|org|net|edu)|(?:[\w-]+\.)?(?:example|test|invalid|localhost))$"
)
_NOT_ENDINGS = frozenset(
    "png jpg jpeg gif svg webp js ts mjs css md py rb go rs html json yml sh plist service local "
    "internal lan".split()
)
"""What no public domain ends with: files, and names inside of a network."""
_NOBODY = re.compile(
    r"(?i)(?:(?:git|root|postgres|no-?reply|do-?not-?reply|noreply\+[\w-]*)@.*"
    r"|your[\w.-]*@.*|(?:user(?:name)?|(?:some)?(?:one|body)?|name|password|e?mail)@"
    r"(?:your|my)?-?(?:domain|company|host|server|e?mail|site|org)\..*"
    r"|.*\.\..*|.*@mail\.gmail\.com|\d{12,}\..*)"
)
"""Logins of machines, addresses that only show where one belongs, and the ids of messages."""
_LOGIN = re.compile(r"(?:://(?:[^\s/@]{1,128}:)?|/|\b(?:ssh|scp|sftp|rsync) (?:-\S+ ){0,3})$")


def _emails(text: str) -> Iterator[Span]:
    for match in _EMAIL.finditer(text):
        if _is_somebody(text, match):
            yield "email", *match.span()
    for match in _SPELLED.finditer(text):
        domain = re.sub(r" ?[\[(] ?dot ?[\])] ?", ".", match[1], flags=re.IGNORECASE)
        if not _EXAMPLE.search(domain):
            yield "email", *match.span()


def _is_somebody(text: str, match: re.Match[str]) -> bool:
    """Returns whether a mail address can be somebody's, and is none of a host or a file."""
    before, after = (
        text[max(0, match.start() - 160) : match.start()],
        text[match.end() : match.end() + 2],
    )
    domain, ending = match[1], match[1].rpartition(".")[2].lower()
    is_host = _LOGIN.search(before) or (after[:1] == ":" and after[1:].strip())
    is_made_up = _EXAMPLE.search(domain) or _NOBODY.fullmatch(match[0])
    return not (is_host or is_made_up or ending in _NOT_ENDINGS)


def _numbers(text: str) -> Iterator[Span]:
    yield from (("phone", *span) for span in phones.phones(text))
    yield from (("ssn", *one.span()) for one in _SSN.finditer(text) if one[0] not in _PRINTED)
    yield from (("ssn", *one.span(1)) for one in _NAMED_SSN.finditer(text))
    yield from _cards(text)
    yield from _ibans(text)
    yield from _ip4(text)


_SSN = re.compile(
    r"\d{3}(?<![\w-]\d{3})(?<!000|666|9\d\d)([- ])(?!00)\d{2}\1(?!0000)\d{4}(?![\w-])"
)
_NAMED_SSN = re.compile(r"(?i)\bssn\b[ :=#]{1,3}(\d{9})(?!\w)")
_PRINTED = ("078-05-1120", "219-09-9999")
"""Numbers that stood in advertisements, and are nobody's."""

_CARD = re.compile(r"(?<![\w.-])(?:\d[ -]?){12,18}\d(?![\w-]|\.\d)")
_GROUPS = re.compile(
    r"\d{13,16}|\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}(?:\1\d{3})?|\d{4}([ -])\d{6}\2\d{4,5}"
)


def _cards(text: str) -> Iterator[Span]:
    for match in _CARD.finditer(text):
        digits = re.sub(r"[ -]", "", match[0])
        if _GROUPS.fullmatch(match[0]) and is_card(digits):
            yield "credit_card", *match.span()


_IBAN = re.compile(r"(?<![A-Za-z0-9])([A-Za-z]{2})\d\d(?= ?[A-Za-z0-9])")
_REST = re.compile(r"(?: ?[A-Za-z0-9]){2,32}")


def _ibans(text: str) -> Iterator[Span]:
    for match in _IBAN.finditer(text):
        size = iban_length(match[1])
        rest = _REST.match(text, match.end()) if size else None
        if size is None or rest is None:
            continue
        end = _end_of(text, match.start(), size)
        account = text[match.start() : end].replace(" ", "")
        closed = not text[end : end + 1].isalnum()
        if len(account) == size and account.isascii() and closed and is_iban(account):
            yield "iban", match.start(), end


def _end_of(text: str, start: int, size: int) -> int:
    """Returns where so many characters that are no blanks end."""
    place, seen = start, 0
    while seen < size and place < len(text) and (text[place].isalnum() or text[place] == " "):
        seen += text[place] != " "
        place += 1
    return place


_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_IP4 = re.compile(rf"(?<![\w.-])(?<!\w/)(?:{_OCTET}\.){{3}}{_OCTET}(?![\w-]|\.\d)")
_VERSION = re.compile(r"(?i)(?:\bv|versions?|release|build|[=<>~^@])[ \t\"'`:]{0,5}$")
_NOBODYS = re.compile(
    r"0\.|10\.|127\.|169\.254\.|172\.(?:1[6-9]|2\d|3[01])\.|192\.168\.|192\.0\.[02]\.|198\.51\.100\."
    r"|203\.0\.113\.|198\.1[89]\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|2(?:2[4-9]|[345]\d)\."
    r"|.*\.0$|8\.8\.4\.4$|9\.9\.9\.|1\.1\.1\."
)
"""Networks that are private, reserved or for examples, and servers that everybody asks."""


def _ip4(text: str) -> Iterator[Span]:
    for match in _IP4.finditer(text):
        before = text[max(0, match.start() - 12) : match.start()]
        low = sum(int(octet) < 20 for octet in match[0].split("."))
        # So many low numbers are a version: hardly any address has three.
        if low < 3 and not _NOBODYS.match(match[0]) and not _VERSION.search(before):
            yield "ip", *match.span()


_IP6 = re.compile(r"[23](?<![\w:.][23])[0-9A-Fa-f]{3}:[0-9A-Fa-f:]{2,35}(?![\w:])")


def _ip6(text: str) -> Iterator[Span]:
    """Yields the addresses of hosts; those begin with 2 or 3, and no path of a program's does."""
    from ipaddress import AddressValueError, IPv6Address, IPv6Network

    for match in _IP6.finditer(text):
        try:
            address = IPv6Address(match[0])
        except AddressValueError:
            continue
        if address.is_global and address not in IPv6Network("2001:db8::/32"):
            yield "ip", *match.span()
