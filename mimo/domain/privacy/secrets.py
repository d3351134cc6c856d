"""Finding secrets: tokens of known formats, keys, and passwords that are assigned to a name.

Everything works on the folded text (`folding.py`), so that full-width or invisible characters hide
nothing, and in linear time.
"""

import re
from binascii import Error, a2b_base64
from collections.abc import Iterator

from mimo.domain.privacy.folding import Folded, folded
from mimo.domain.privacy.likeness import is_mixed, is_placeholder, is_random, is_said, is_secret
from mimo.domain.privacy.model import APART, Finding, disjoint, finding
from mimo.domain.privacy.patterns import compiled
from mimo.domain.privacy.rules import FORMS, TOKENS, Form, Token

ALLOWED = "mind:allow-secret"
"""On a line, says that what looks like a secret there is none."""

Span = tuple[str, int, int]
"""A kind, and where it begins and ends."""

_LEAST = 8
"""No secret is shorter."""

_BREAK = r"[\"'`]?[ \t]{0,8}[+\\]?[ \t]{0,8}\r?\n[ \t>#*/]{0,40}[\"'`]?"
"""A line break inside a token, with what ends one line and begins the next around it."""


def secrets_in(text: str, *, cut: bool = False, allowing: bool = True) -> tuple[Finding, ...]:
    """Returns the secrets in a text, in their order.

    With `cut` also the beginnings of tokens that were cut off, as titles are. Without `allowing`
    the mark `mind:allow-secret` is not heeded.
    """
    if len(text) < _LEAST:
        return ()
    seen = folded(text)
    spans = [*_spans(seen.text, cut=cut)]
    found = disjoint(finding(text, kind, *seen.span(start, end)) for kind, start, end in spans)
    if found and allowing and ALLOWED in text:
        return tuple(one for one in found if ALLOWED not in _line(text, one))
    return found


def _line(text: str, one: Finding) -> str:
    """Returns the line on which a finding begins."""
    end = text.find("\n", one.start)
    return text[text.rfind("\n", 0, one.start) + 1 : len(text) if end < 0 else end]


def _spans(text: str, *, cut: bool) -> Iterator[Span]:
    yield from _tokens(text, cut=cut)
    yield from _forms(text)
    if "PRIVATE KEY" in text or "PuTTY-User-Key-File" in text:
        yield from _private_keys(text)
    if "://" in text:
        yield from _addresses(text)
    yield from _assigned(text, cut=cut)
    yield from _encoded(text)


_WORDS = tuple((word, rule) for rule in TOKENS for word in rule.words)


def _tokens(text: str, *, cut: bool) -> Iterator[Span]:
    near = dict.fromkeys(rule for word, rule in _WORDS if word in text)
    joined: Folded | None = None
    for rule in near:
        found = [match.span() for match in _whole(rule).finditer(text) if _is_drawn(rule, match)]
        yield from ((rule.kind, *span) for span in found)
        starts = {start for start, _ in found}
        if "\n" in text and sum(map(text.count, rule.words)) > len(found):
            joined = joined or _joined(text)
            yield from (one for one in _wrapped(text, joined, rule) if one[1] not in starts)
        if cut:
            yield from _cut(text, rule)


def _is_drawn(rule: Token, match: re.Match[str]) -> bool:
    return is_random(match[0][-rule.least :])


def _whole(rule: Token) -> re.Pattern[str]:
    tail, count = f"[{rule.tail}]", f"{{{rule.least},{rule.most}}}"
    return compiled(f"(?<![A-Za-z0-9]){rule.start}{tail}{count}(?!{tail})")


def _cut(text: str, rule: Token) -> Iterator[Span]:
    """Yields what is left of tokens that were cut off; the name of a thing is none."""
    left = f"[{rule.tail}]{{4,{rule.most}}}"
    pattern = rf"(?<![A-Za-z0-9]){rule.start}({left})(?=…|\.\.\.|{APART}|\Z)"
    for match in compiled(pattern).finditer(text):
        if is_mixed(match[1]):
            yield rule.kind, *match.span()


def _wrapped(text: str, joined: Folded, rule: Token) -> Iterator[Span]:
    """Yields the tokens that go on on the next line."""
    for match in _whole(rule).finditer(joined.text):
        start, end = joined.span(*match.span())
        if "\n" in text[start:end] and _is_drawn(rule, match):
            yield rule.kind, start, end


def _joined(text: str) -> Folded:
    """Returns a text without its line breaks."""
    places: list[int] = []
    last = 0
    for match in compiled(_BREAK).finditer(text):
        places += range(last, match.start())
        last = match.end()
    places += range(last, len(text))
    return Folded("".join(map(text.__getitem__, places)), places)


def _forms(text: str) -> Iterator[Span]:
    for form in FORMS:
        for word in form.words:
            if word in text:
                yield from _of_form(text, form)
                break


def _of_form(text: str, form: Form) -> Iterator[Span]:
    for match in compiled(form.pattern).finditer(text):
        group = match.lastindex or 0
        value = match[group]
        if form.kind == "authorization_header":
            value = _password_of(value)
        if is_random(value) and not is_placeholder(value[:40]) and not is_said(value):
            yield form.kind, *match.span(group)


def _password_of(credentials: str) -> str:
    """Returns the password of `user:password` in base64, or what is given where it is none."""
    try:
        user, colon, password = a2b_base64(credentials).decode("ascii").partition(":")
    except (Error, UnicodeDecodeError):
        return credentials
    return password if colon and user.isprintable() else credentials


_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d"
_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|Private-MAC: [0-9a-f]{40,64}"
_MATERIAL = r"[A-Za-z0-9+/]{32}"
_WITHIN = 600
"""So soon after its first line a key itself begins."""


def _private_keys(text: str) -> Iterator[Span]:
    place = 0
    while begin := compiled(_BEGIN).search(text, place):
        place = begin.end()
        if not compiled(_MATERIAL).search(text, place, place + _WITHIN):
            continue
        end = compiled(_END).search(text, place)
        place = end.end() if end else _end_of_material(text, place)
        yield "private_key", begin.start(), place


_MORE = r"(?:[A-Za-z0-9+/=:,. \t>-]|\\[rn]|\r?\n(?!\s*\n))*+"


def _end_of_material(text: str, start: int) -> int:
    found = compiled(_MORE).match(text, start)
    return found.end() if found else start


_ADDRESS = r"://([^\s:/@\"'<>`]{0,128}):([^\s/\"'<>`]{4,256})@(?=[A-Za-z0-9_.\[-])"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{1,30}\Z"
_WEB = ("http", "https", "ftp", "ftps", "git", "ssh")


def _addresses(text: str) -> Iterator[Span]:
    """Yields the passwords in URLs."""
    for match in compiled(_ADDRESS).finditer(text):
        scheme = compiled(_SCHEME).search(text, max(0, match.start() - 31), match.start())
        user, password = match.groups()
        if scheme is None or is_placeholder(password) or password.lower() == user.lower():
            continue
        if not is_said(password):
            kind = "basic_auth_url" if scheme[0].lower() in _WEB else "connection_string"
            yield kind, *match.span(2)


_CHOSEN = ("passw", "passphrase", "pwd", "secret")
_DRAWN = (
    "token",
    "api_key",
    "api-key",
    "apikey",
    "access_key",
    "access-key",
    "accesskey",
    "account_key",
    "auth_key",
    "encryption_key",
    "signing_key",
    "private_key",
    "credential",
)
_VALUE = (
    r"([\w-]{0,30})[\"'`\])]{0,2}(?:[ \t]{0,4}(?:=>|:=|={1,3}|:)[ \t]{0,4}|[ \t]is[ \t]:?)"
    r"(?:([\"'`])([^\"'`\s]{8,256})\2|([^\s\"'`,;<>(){}\[\]|&…\x00]{8,256}))"
)


_ABOUT_IT = re.compile(
    r"(?i)(?:hash|digest|sum|_?ids?|ur[il]|names?|file|path|types?|version|algorithm|hint|ref)$"
)
"""Ends of names that are about a secret: `token_hash` holds none."""


def _assigned(text: str, *, cut: bool) -> Iterator[Span]:
    """Yields the values that stand after the name of a secret, as in `password = …`."""
    lower = text.lower()
    if len(lower) != len(text):
        return
    for words, chosen in ((_CHOSEN, True), (_DRAWN, False)):
        for word in words:
            place = lower.find(word)
            while place >= 0:
                place += len(word)
                if span := _value(text, place, chosen=chosen):
                    yield span
                place = lower.find(word, place)


def _value(text: str, place: int, *, chosen: bool) -> Span | None:
    match = compiled(_VALUE).match(text, place)
    if match is None:
        return None
    group = 3 if match[3] else 4
    value = match[group].rstrip(".,:!?")
    if _ABOUT_IT.search(match[1]) or not is_secret(value, chosen=chosen):
        return None
    start = match.start(group)
    return "password" if chosen else "credential", start, start + len(value)


_BASE64 = r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{28,4000}={0,2}(?![A-Za-z0-9+/=])"


def _encoded(text: str) -> Iterator[Span]:
    """Yields what holds a token of a known format in base64, one layer deep."""
    for match in compiled(_BASE64).finditer(text):
        try:
            inner = a2b_base64(match[0] + "=" * (-len(match[0]) % 4)).decode("ascii")
        except (Error, UnicodeDecodeError):
            continue
        for kind, *_ in (*_tokens(inner, cut=False), *_forms(inner)):
            yield kind, *match.span()
            break
