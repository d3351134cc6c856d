"""The search for secrets in texts; `rules` defines what counts as a secret.

The search reads the folded text (`model.folded`), so that full-width or invisible characters hide
nothing, and takes linear time. A text with escapes is searched a second time without them.
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64
from collections.abc import Iterable, Iterator

from mimo.privacy.model import APART, PROSE, Finding, Span, findings, folded, unescaped, unwrapped
from mimo.privacy.rules import (
    ABOUT_ONE,
    ALLOWED,
    BASIC,
    FOR_SIGN,
    FOREIGN_NAMES,
    FORMS,
    LITERAL,
    MIXED,
    NAMES,
    OPENING,
    SAMPLE,
    SENTENCE,
    SEPARATORS,
    TOKENS,
    Form,
    Token,
    is_mixed,
    is_own_id,
    is_placeholder,
    is_secret,
    is_words,
)
from mimo.text.clean import compiled

_LEAST = 8
"""No secret is shorter."""

_BREAK = r"[\"'`]?[ \t]{0,8}[+\\]?[ \t]{0,8}(?:\r?\n|\r)[ \t>#*/]{0,40}[\"'`]?"
"""A line break inside a token, with the characters that end one line and begin the next."""


def secrets_in(
    text: str, *, cut: bool = False, allowing: bool = True, examples: bool = False
) -> tuple[Finding, ...]:
    """Returns the secrets in a text, in order.

    With `cut` also the beginnings of tokens that were cut off, as titles are, with `examples` also
    tokens like those in documentation. Without `allowing` the mark `mind:allow-secret` is ignored.
    """
    if len(text) < _LEAST:
        return ()
    seen = folded(text)
    spans = [*_plain(seen.text, cut=cut, examples=examples), *_encoded(seen.text)]
    if plain := unescaped(seen.text):
        again = (*_plain(plain.text, cut=cut, examples=examples), *_encoded(plain.text))
        spans += [(kind, *plain.span(start, end)) for kind, start, end in again]
    if not spans:
        return ()
    secrets = findings(text, ((kind, *seen.span(start, end)) for kind, start, end in spans))
    if allowing and ALLOWED in text:
        marks = re.finditer(re.escape(ALLOWED), text)
        exempt = {mark.line for mark in findings(text, (("", *mark.span()) for mark in marks))}
        return tuple(secret for secret in secrets if secret.line not in exempt)
    return secrets


def _plain(text: str, *, cut: bool = False, examples: bool = False) -> Iterator[Span]:
    """Yields the secrets that are not encoded."""
    yield from _tokens(text, cut=cut, examples=examples)
    yield from _forms(text)
    if "PRIVATE KEY" in text or "PuTTY-User-Key-File" in text:
        yield from _private_keys(text)
    if "://" in text:
        yield from _addresses(text)
    if "|" in text and compiled(_RULE).search(text):
        yield from _columns(text)
    assigned = [*_assigned(text)]
    yield from assigned
    if folding := unwrapped(text):
        yield from ((kind, *folding.span(start, end)) for kind, start, end in _forms(folding.text))
        starts = {start for _, start, _ in assigned}
        for kind, start, end in _assigned(folding.text):
            span = folding.span(start, end)
            if span[0] in starts:  # Its further lines are part of it.
                yield kind, *span


def _has(text: str, words: Iterable[str]) -> bool:
    """Returns whether a text has one of some words; `any` takes three times as long."""
    for word in words:  # noqa: SIM110 - as above
        if word in text:
            return True
    return False


_TOKENS = tuple((rule, rule.words or (rule.start.replace("\\", ""),)) for rule in TOKENS)
_SIGNS = ("sk-", "_", "-", "")
_BY_SIGN = {
    sign: [token for token in _TOKENS if next(filter(token[1][0].__contains__, _SIGNS)) == sign]
    for sign in _SIGNS
}
"""The same by a sign that all their words have: a text without it is not searched for them."""


def _tokens(text: str, *, cut: bool, examples: bool) -> Iterator[Span]:
    for sign, tokens in _BY_SIGN.items():
        for rule, words in tokens if sign in text else ():
            if not _has(text, words):
                continue
            for match in _token(rule).finditer(text):
                if _is_drawn(text, rule, match, examples=examples):
                    yield rule.kind, *match.span()
            if cut:
                yield from _cut(text, rule)


def _token(rule: Token) -> re.Pattern[str]:
    """Returns the pattern of a token: in one piece, or broken over lines."""
    tail, count = f"[{rule.tail}]", f"{{{rule.least},{rule.most or rule.least}}}"
    guard, after = (r"(?<![A-Za-z0-9])", f"(?!{tail})") if rule.apart else ("", "")
    return compiled(
        f"{guard}{rule.start}(?:{tail}{count}+{after}|(?:{tail}|{_BREAK}{tail}){count}+(?!{tail}))"
    )


def _is_drawn(text: str, rule: Token, match: re.Match[str], *, examples: bool) -> bool:
    """Returns whether a token looks drawn, the more so if letters touch it."""
    drawn = re.sub(r"\s", "", match[0])[-rule.least :]
    if not examples and is_placeholder(drawn, of_token=True):
        return False
    if "a-z" in rule.tail.lower() and not rule.tail.isupper() and not is_mixed(drawn):
        return False
    start, end = match.span()
    glued = text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()
    return not glued or (is_mixed(drawn) and any(map(str.isdigit, drawn)))


_NAME = r"[\w.-]{0,128}\Z"


def _cut(text: str, rule: Token) -> Iterator[Span]:
    """Yields the rest of tokens that were cut off; the id of a memory is not one."""
    left = f"[{rule.tail}]{{4,{rule.most or rule.least}}}"
    pattern = rf"{rule.start}({left})(?=…|\.\.\.|{APART}|\Z)"
    for match in compiled(pattern).finditer(text):
        prefix = compiled(_NAME).search(text[max(0, match.start() - 128) : match.start()])
        name = (prefix[0] if prefix else "") + match[0]
        is_word = not text[match.start() - 1 : match.start()].isalnum()
        is_drawn = is_mixed(match[1]) and not is_placeholder(match[1], of_token=True)
        if is_word and is_drawn and not is_own_id(name):
            yield rule.kind, *match.span()


def _forms(text: str) -> Iterator[Span]:
    """Yields the secrets of other shapes."""
    for form in FORMS:
        if _has(text, form.words):
            for match in compiled(form.pattern).finditer(text):
                yield from _of_form(text, form, match)


def _of_form(text: str, form: Form, match: re.Match[str]) -> Iterator[Span]:
    """Yields the secret in a match of a form, unless it only looks like one."""
    if form.program is not None:
        start, end = _value_span(match)
        line = compiled(form.program).search(text, max(0, match.start() - 240), match.start())
        if line and is_secret(text[start:end], chosen=True):
            yield form.kind, start, end
        return
    group = match.lastindex or 0
    value = match[group]
    if form.kind in BASIC:
        user, colon, password = _decoded(value).partition(":")
        is_login = colon and user.isprintable()
        if form.kind == "docker_auth" and not is_login:
            return
        value = (password if is_login else "") or value
    if form.kind in ("telegram_token", "webhook_url"):
        value = re.split("[:/]", value)[-1]  # The number before it is a public id.
    if form.kind in MIXED and not is_mixed(value):
        return
    if not is_placeholder(value[:40]) and not is_words(value):
        yield form.kind, *match.span(group)


def _decoded(text: str) -> str:
    """Returns the ASCII text that is encoded in base64, or an empty text."""
    plain = text.rstrip("=")
    try:
        return a2b_base64(plain + "=" * (-len(plain) % 4)).decode("ascii")
    except (Error, UnicodeDecodeError):
        return ""


_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d"
_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|Private-MAC: [0-9a-f]{40,64}"
_EDGES = f"({_BEGIN})|{_END}"
_MATERIAL = r"[A-Za-z0-9+/]{32}"
_MORE = r"(?:[A-Za-z0-9+/=:,. \t>-]|\\[rn]|\r?\n(?!\s{0,80}\n)){0,40000}+"
_WITHIN = 600
"""Characters after its first line within which the key itself begins."""


def _private_keys(text: str) -> Iterator[Span]:
    edges = [*compiled(_EDGES).finditer(text)]
    for edge, following in zip(edges, [*edges[1:], None], strict=False):
        if edge[1] and compiled(_MATERIAL).search(text, edge.end(), edge.end() + _WITHIN):
            ended = following is not None and not following[1]
            limit = following.start() if following else len(text)
            footer = following if ended else compiled(_MORE).match(text, edge.end(), limit)
            yield "private_key", edge.start(), footer.end() if footer else edge.end()


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
        if not is_words(password):
            kind = "basic_auth_url" if scheme[0].lower() in _WEB else "connection_string"
            yield kind, *match.span(2)


_CLOSING = r"[\"'`\])*]{0,4}"
_VALUE = (
    rf"([\w-]{{0,30}}?)(?:[ \t]key|[ \t]phrase)?{_CLOSING}"
    rf"(?:{FOR_SIGN}|{SEPARATORS}|(?P<prose>{SENTENCE}){OPENING}){LITERAL}"
)
"""Follows a part of a name: the end of the name, what connects it to its value, the value."""
_VALUE_OF_END = rf"(){_CLOSING}(?:{SEPARATORS})(?P<prose>\Z)?{LITERAL}"


def _assigned(text: str) -> Iterator[Span]:
    """Yields the values after names of secrets, as in `password = …`."""
    lower = text.lower()
    for words, chosen, beginning, is_end in NAMES if text.isascii() else (*NAMES, *FOREIGN_NAMES):
        value = _VALUE_OF_END if is_end else _VALUE
        source = text if is_end else lower
        for word in words:
            place = lower.find(word)
            while place >= 0:
                begin, place = max(0, place - 16), place + len(word)
                is_name = not beginning or compiled(beginning).search(source, begin, place)
                if is_name and (match := compiled(value).match(text, place)):
                    start, end = _value_span(match)
                    if compiled(ABOUT_ONE).search(match[1]) or not is_secret(
                        text[start:end], chosen=chosen
                    ):
                        # Names within the value: only the last one is read again.
                        place = max(place, lower.rfind(word, place, match.end()))
                    else:
                        kind = "password" if chosen else "credential"
                        yield PROSE if match["prose"] else kind, start, end
                        place = end
                place = lower.find(word, place)


_RULE = r"\n[ \t]{0,8}\|?[ \t]{0,8}:?-{1,80}:?[ \t]{0,8}\|[ \t|:-]{0,400}\r?\n"
"""The line below the header of a Markdown table."""


def _columns(text: str) -> Iterator[Span]:
    """Yields the secrets in the columns of Markdown tables whose header is the name of a secret."""
    start = 0
    for rule in compiled(_RULE).finditer(text):
        if rule.start() < start:
            continue
        header = text[text.rfind("\n", 0, rule.start()) + 1 : rule.start()].strip()
        names = [cell.strip(" \t*`") for cell in header.removeprefix("|").split("|")]
        columns = {n for n, name in enumerate(names) if [*_assigned(f"{name}: {SAMPLE}")]}
        start = rule.end()
        while columns and (row := text[start : text.find("\n", start) + 1 or None]).strip():
            at = start + (row.find("|") + 1 if row.lstrip().startswith("|") else 0)
            for number, cell in enumerate(text[at : start + len(row)].split("|")):
                if number in columns:
                    line = f"{names[number]}: {cell.strip()}"
                    moved = at + len(cell) - len(cell.lstrip()) - len(names[number]) - 2
                    yield from ((kind, a + moved, b + moved) for kind, a, b in _assigned(line))
                at += len(cell) + 1
            start += len(row)


def _value_span(match: re.Match[str]) -> tuple[int, int]:
    """Returns the place of the value in a match of `_GIVEN`."""
    group = "quoted" if match["quoted"] else "bare"
    start = match.start(group)
    return start, start + len(match[group].rstrip(".,:?*"))


_GROUP = r"[A-Za-f][A-HQ-Xg-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/]"
"""Four characters of base64 that stand for three of ASCII."""

_BASE64 = (
    rf"(?<![A-Za-z0-9+/]){_GROUP}"
    rf"(?:{_GROUP}|[ \t]{{0,8}}\r?\n[ \t>#*/]{{0,40}}{_GROUP}){{5,20000}}+"
    r"[A-Za-z0-9+/]{0,3}={0,2}"
)


def _encoded(text: str) -> Iterator[Span]:
    """Yields base64 that encodes a secret, one layer deep."""
    for match in compiled(_BASE64).finditer(text):
        inner = _decoded(re.sub(r"[\s>#*]", "", match[0]))
        for kind, *_ in _plain(inner):
            yield kind, *match.span()
            break
    if compiled(_IS_OF_KUBERNETES).search(text):
        for match in compiled(_ENTRY).finditer(text):
            if is_secret(_decoded(match[1]), chosen=True):
                yield "password", *match.span(1)


_IS_OF_KUBERNETES = r"kind[\"']?:[ \t]{0,4}[\"']?Secret\b"
_ENTRY = r"[\w.-][\"']?:[ \t]{0,4}[\"']?([A-Za-z0-9+/]{8,400}={0,2})(?![A-Za-z0-9+/=])"
"""An entry of the data of a Kubernetes Secret."""
