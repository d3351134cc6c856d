"""The replacement of secrets and personal data in whole values, keys included.

The patterns for personal data are loaded only if a value is searched for them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from mimo.frozen import NamedTuple, names_of, replace
from mimo.privacy.model import STAND_IN, Finding, Span, findings, folded, mark, name_in, without
from mimo.privacy.rules import ALLOWED
from mimo.privacy.secrets import secrets_in

# Names of fields whose values are secret or personal.

_PHONE = re.compile(
    r"(?:.*_)?(?:(?:phone|telephone|telefon|tel|mobile)s?|fax(?:es)?|cell|cells(?=_))"
    r"(?:_(?:number|no|nr)s?)?|전화(?:_?번호)?|휴대_?(?:폰|전화)(?:_?번호)?"
)
_BIRTH = re.compile(
    r"(?:.*_)?(?:birth_?(?:day|date)s?|dates?_of_birth|dobs?|born(?:_on)?"
    r"|geburts(?:datum|daten|tag))|생년월일|생일"
)
_ADDRESS = re.compile(
    r"(?:.*_)?(?:(?:street|home|postal|mailing|billing|shipping|residential)_?address(?:es)?"
    r"|streets?|street_(?:name|line)s?(?:_\d)?|address_lines?(?:_?\d)?)|(?:집|도로명)?_?주소"
)
_LISTED_PHONE = re.compile(
    r"(?!\d{4}-\d\d-\d\d(?!\d)|\d{1,3}(?:\.\d{1,3}){3}(?![.\d]))"
    r"\+?\(?\d(?:[ ()./-]{0,2}\d){6,14}(?!\w)"
)
"""A number in a list or an object under the name of a phone; neither a date nor an IP address."""
_ABOUT_DATA = frozenset(
    "age at build created enabled format height id ids length limit order sent size since status "
    "time timeout timestamp ttl type until updated verified version width".split()
)
"""Words in names of fields that describe personal data, and are not a part of it."""

_SECRET_FIELDS = frozenset(
    "password passwd pwd passphrase secret token ssn social_security_number credit_card "
    "credit_card_number card_number cvv cvc pin api_key apikey access_key secret_key private_key "
    "encryption_key signing_key authorization credential access_token auth_token refresh_token "
    "bearer_token api_token client_secret".split()
)
_JOINED = frozenset(name.replace("_", "") for name in _SECRET_FIELDS)
_JOINED_ENDINGS = (
    "password passwd passphrase apikey accesskey secretkey privatekey accesstoken authtoken "
    "clientsecret".split()
)
"""Endings of names that are written as one word."""
_SECRET_ENDINGS = (
    *(f"_{name}" for name in sorted(_SECRET_FIELDS - {"pin", "authorization", "token"})),
    *_JOINED_ENDINGS,
)
"""Without `token`: the values of `csrf_token` or `next_page_token` have to look like secrets."""
_HARMLESS = ("tokens", "pins")
"""Plurals that usually have another meaning."""
_ABOUT_ONE = frozenset(
    "reset forgot forgotten lost change rotate renew revoke update check verify login signin use "
    "add remove delete require required requires missing num number count max min total no".split()
)
"""Words in names of tasks, settings and counts: the value of `reset_password` is not a password."""
_OF_NUMBERS = frozenset(("num", "number", "no"))


def sensitive(name: str, value: Any) -> str | None:
    """Returns the name in small letters and underscores if it makes any value sensitive, or None.

    A number in a field with a plural name is a count.
    """
    plain = _plain_name(name)
    if plain in _HARMLESS or (isinstance(value, int | float) and plain.endswith("s")):
        return None
    base = plain.removesuffix("s")
    if base in _SECRET_FIELDS or base.replace("_", "") in _JOINED:
        return plain
    ending = next(filter(base.endswith, _SECRET_ENDINGS), None)
    if ending is None:
        return None
    leaf = _plain_name(folded(name).text.rpartition(".")[2])
    words = leaf.removesuffix("s").removesuffix(ending).split("_")
    return plain if _ABOUT_ONE.isdisjoint(words) else None


def _plain_name(name: str) -> str:
    """Returns the name of a field in small letters and underscores; of a long one, its end."""
    seen = folded(name).text[-80:]
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", seen)
    return re.sub(r"[^A-Za-z0-9가-힣]+", "_", apart).strip("_").lower()


class Screened(NamedTuple):
    """A value with marks in place of secrets, and the kinds of everything that was replaced."""

    value: Any
    kinds: tuple[str, ...]


def screened(value: Any, *, personal: bool = False, allowing: bool = True) -> Screened:
    """Returns a value with marks in place of its secrets, with `personal` also of personal data.

    A value consists of strings, numbers, lists, mappings and dataclasses. A dataclass without
    anything to replace is returned as the same object. Without `allowing`, the mark
    `mind:allow-secret` is ignored.
    """
    screen = _Screen(personal, allowing)
    return Screened(screen.of(value), tuple(screen.kinds))


def screened_key(key: str, *, personal: bool = False, allowing: bool = True) -> str:
    """Returns a key, or a mark with the start of its digest if it holds something to hide.

    The same key always gets the same mark, and different keys get different marks.
    """
    hits = secrets_in(key, cut=True, allowing=allowing)
    if not hits and personal:
        from mimo.privacy.personal import personal_in

        # In names punctuation separates words, as in `bob.smith-415-234-5678`.
        apart = re.sub(r"_|[.-](?!\d)|(?<!\d)[.-]", " ", key)
        hits = personal_in(key) or personal_in(apart) or personal_in(key.replace("_", " "))
    if not hits:
        return key
    from hashlib import sha256

    return f"{STAND_IN}{hits[0].kind}-{sha256(key.encode()).hexdigest()[:8]}"


_NEAR = 256
"""Most characters between a field's name and its value."""


def named_secrets(name: str, value: Any, text: str, *, allowing: bool) -> Iterator[Span]:
    """Yields the secrets in a value that the names of its fields show, with their lines in `text`.

    `name` is that of the value, and `text` its file. A secret that the file contains in another
    form, such as with escapes, is reported for the whole file. If `allowing`, a line with the mark
    `mind:allow-secret` is exempt.
    """
    in_header = "\nvalue:" in text
    position, end = max(text.find("\nvalue:" if in_header else "\n```"), 0), 0
    written = str if in_header else partial(json.dumps, ensure_ascii=False)
    fields: list[tuple[str | None, str, str, Any]] = [(None, name, "", value)]
    while fields:  # In the order of the file.
        kind, name, label, value = fields.pop()
        at = text.find(label, position)
        position = at + len(label) if at >= 0 else len(text)
        kind = kind or sensitive(name, value)
        if isinstance(value, Mapping):
            fields += reversed([(kind, key, written(key), item) for key, item in value.items()])
        elif isinstance(value, list):
            fields += ((kind, "", "", item) for item in reversed(value))
        elif value and not isinstance(value, bool):
            literal = written(value)
            at = text.find(literal, position, position + len(literal) + _NEAR)
            position = at + len(literal) if at >= 0 else position
            hits = () if kind else secrets_in(f'{name}: "{value}"')
            if (not kind and not hits) or (at >= 0 and position <= end):
                continue  # Also on the same line as the secret before.
            start = text.rfind("\n", 0, at) + 1 if at >= 0 else 0
            end = text.find("\n", position) if at >= 0 else -1
            end = end if end >= 0 else len(text)
            if not allowing or ALLOWED not in text[start:end]:
                yield kind or hits[0].kind, start, end
            if at < 0:
                return


def _with_personal(text: str, hits: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Returns the secrets of a text and its personal data."""
    from mimo.privacy.personal import personal_in

    apart = personal_in(text.replace("_", " ")) if "_" in text else ()
    return findings(text, (hit[:3] for hit in (*hits, *personal_in(text), *apart)))


_IDENTIFIER = re.compile(
    r"(?:.*_)?(?:ids?|files?|paths?|uri|to|source|target|start|by|supersedes|parent)"
)
"""Fields with ids and paths of memories, in which the beginning of a token is a coincidence."""


class _Screen:
    """One pass through a value."""

    def __init__(self, personal: bool, allowing: bool) -> None:
        self.personal = personal
        self.allowing = allowing
        self.kinds: list[str] = []

    def of(self, value: Any, kind: str | None = None) -> Any:
        """Returns a value, which is of a kind of personal data if the name of its holder is."""
        if kind is not None and _holds(kind, value, _LISTED_PHONE.match):
            self.kinds.append(kind)
            return mark(kind)
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            fields = [(key, item, kind, name_in(value, key)) for key, item in value.items()]
            return {self.key(field[0]): self.field(*field) for field in fields}
        if isinstance(value, list | tuple):
            items = [self.of(item, kind) for item in value]
            return items if isinstance(value, list) else tuple(items)
        if self.personal and (number := _integer(value)) is not None and abs(number) >= 10**11:
            text = self.text(str(number))
            return value if text == str(number) else text
        if value is None or isinstance(value, int | float | type):
            return value
        if names := names_of(value):
            members = {name: getattr(value, name) for name in names}
            key = members.get("key") if self.personal else None
            seen = {
                name: self.field(key, member)
                if name == "value" and key is not None
                else self.member(name, member)
                for name, member in members.items()
            }
            changed = {name: item for name, item in seen.items() if item is not members[name]}
            return replace(value, **changed) if changed else value
        return value

    def member(self, name: str, value: Any) -> Any:
        """Returns a field of a dataclass; keys stay distinct."""
        if _IDENTIFIER.fullmatch(name):
            return self.identifiers(value)
        if not self.personal or name not in ("key", "keys"):
            return self.of(value)
        return tuple(map(self.key, value)) if isinstance(value, tuple) else self.key(value)

    def identifiers(self, value: Any) -> Any:
        """Returns ids and paths, which are hidden only if they hold a whole secret."""
        if isinstance(value, str):
            return self.text(value, cut=False)
        if type(value) is tuple and all(isinstance(item, str) for item in value):
            return tuple(self.text(item, cut=False) for item in value)
        return self.of(value)

    def text(self, text: str, *, cut: bool = True) -> str:
        hits = secrets_in(text, cut=cut, allowing=self.allowing)
        hits = _with_personal(text, hits) if self.personal else hits
        self.kinds += [hit.kind for hit in hits]
        return without(text, hits) if hits else text

    def named(self, key: str, text: str) -> str:
        """Returns the text of a field; the name of the field may make it a password."""
        line = f'{key}: "{text}"'
        start = len(line) - len(text) - 1
        result = self.text(text)
        if result is not text:
            return result
        secrets = secrets_in(line, allowing=self.allowing)
        if hits := [hit for hit in secrets if hit.start >= start]:
            self.kinds += [hit.kind for hit in hits]
            moved = [hit._replace(start=hit.start - start, end=hit.end - start) for hit in hits]
            return without(text, moved)
        return result

    def key(self, key: Any) -> Any:
        result = key
        if type(key) is str:
            result = screened_key(key, personal=self.personal, allowing=self.allowing)
        if result != key:
            self.kinds.append(result.split("-")[1])
        return result

    def field(self, key: Any, value: Any, around: str | None = None, name: Any = None) -> Any:
        """Returns the value of a field; `around` is the kind of the object that has it."""
        if type(key) is not str:
            return self.of(value, around)
        kind = _kind_of(key, value, around) if self.personal else None
        if kind is not None and isinstance(value, Mapping | list | tuple) and kind in _NAMES:
            return self.of(value, kind)
        if kind is not None:
            self.kinds.append(kind)
            return mark(kind)
        if _IDENTIFIER.fullmatch(key):
            return self.identifiers(value)
        return self.named(name or key, value) if isinstance(value, str) else self.of(value)


_NAMES = {"birth_date": _BIRTH, "address": _ADDRESS, "phone": _PHONE}


def _kind_of(key: str, value: Any, around: str | None) -> str | None:
    """Returns the kind of a field's value that its name, or that of its object, reveals, or None.

    For a list or an object of personal data it is the kind that its items may have.
    """
    if value is None or isinstance(value, bool) or value in ("", 0, [], {}):
        return None
    if kind := sensitive(key, value):
        return kind
    name = _plain_name(key)
    by_name = next((kind for kind, names in _NAMES.items() if names.fullmatch(name)), None)
    if by_name is None and not (_ABOUT_DATA | _ABOUT_ONE - _OF_NUMBERS).isdisjoint(name.split("_")):
        return None
    kind = by_name or around
    if kind is None or isinstance(value, Mapping | list | tuple):
        return kind
    if by_name and re.search(r"(?<!s)s$", name) and not isinstance(value, str):
        return None  # A count.
    from mimo.privacy.personal import is_phone

    return kind if _holds(kind, value, is_phone if by_name else _LISTED_PHONE.match) else None


def _holds(kind: str, value: Any, is_phone: Callable[[str], object]) -> bool:
    """Returns whether a text or a whole number can be personal data of the kind of its name."""
    number = _integer(value)
    if not isinstance(value, str) and number is None:
        return False
    text = str(value if number is None else number)
    return bool(is_phone(text)) if kind == "phone" else any(map(str.isdigit, text))


def _integer(value: Any) -> int | None:
    """Returns a whole number, which JSON may also write with a point; None for other values."""
    if type(value) is float and value.is_integer():
        return int(value)
    return value if type(value) is int else None
