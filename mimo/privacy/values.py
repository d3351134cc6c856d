"""Looking through whole values, keys included, and taking out what should not be shown.

Only values are searched for personal data: the patterns for it are loaded when one is.
"""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

from mimo.privacy.model import STAND_IN, Finding, findings, mark, without
from mimo.privacy.secrets import secrets_in

# Names of fields whose values are nobody else's business, whatever they are.


_SECRET = frozenset(
    "password passwd pwd passphrase secret token ssn social_security_number credit_card "
    "credit_card_number card_number cvv cvc pin api_key apikey access_key secret_key private_key "
    "encryption_key signing_key authorization credential credentials".split()
)
_ENDINGS = tuple(f"_{name}" for name in sorted(_SECRET - {"pin", "authorization"}))
_PAGING = re.compile(r"(?:next|page|next_page|continuation|continue|cursor|sync|resume|prev)_token")
_PHONE = re.compile(r"(?:.*_)?(?:phone|telephone|tel|mobile|fax|cell)(?:_(?:number|no|nr))?")

_BIRTH = re.compile(
    r"(?:.*_)?(?:birth_?da(?:y|te)|date_of_birth|dob|born(?:_on)?|geburts(?:datum|tag))|생년월일|생일"
)
_ADDRESS = re.compile(
    r"(?:.*_)?(?:(?:street|home|postal|mailing|billing|shipping|residential)_?address|street"
    r"|street_(?:name|line)(?:_\d)?|address_line(?:_?\d)?)|(?:집|도로명)?_?주소"
)


def sensitive(name: str) -> str | None:
    """Returns the name in small letters and underscores if its value is sensitive, or None."""
    plain = _plain(name)
    if _PAGING.fullmatch(plain):
        return None
    return plain if plain in _SECRET or plain.endswith(_ENDINGS) else None


def is_of_phone(name: str) -> bool:
    """Returns whether a field is for a telephone number."""
    return _PHONE.fullmatch(_plain(name)) is not None


def of_person(name: str) -> str | None:
    """Returns `birth_date` or `address` for a field that is for one of them, or None."""
    plain = _plain(name)
    if _BIRTH.fullmatch(plain):
        return "birth_date"
    return "address" if _ADDRESS.fullmatch(plain) else None


def _plain(name: str) -> str:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[:80])
    return re.sub(r"[^A-Za-z0-9가-힣]+", "_", apart).strip("_").lower()


class Screened(NamedTuple):
    """A value without what should not be shown, and the kinds of all that was taken out."""

    value: Any
    kinds: tuple[str, ...]


def screened(value: Any, *, personal: bool = False) -> Screened:
    """Returns a value of strings, numbers, lists, mappings and dataclasses with marks in place of
    its secrets, and with `personal` of its personal data as well.

    A dataclass in it is the same object where there is nothing to take out of it.
    """
    screen = _Screen(personal)
    return Screened(screen.of(value), tuple(screen.kinds))


def screened_key(key: str, *, personal: bool = False) -> str:
    """Returns a key that may be shown: itself, or a mark with the start of its digest.

    The same key always has the same one, and two keys have two.
    """
    found = secrets_in(key, cut=True)
    if not found and personal:
        from mimo.privacy.personal import personal_in

        # In names signs part words, as in `bob.smith-415-234-5678`.
        apart = re.sub(r"_|[.-](?!\d)|(?<!\d)[.-]", " ", key)
        found = personal_in(key) or personal_in(apart) or personal_in(key.replace("_", " "))
    if not found:
        return key
    from hashlib import sha256

    return f"{STAND_IN}{found[0].kind}-{sha256(key.encode()).hexdigest()[:8]}"


def _found(text: str, personal: bool, *, cut: bool = True) -> tuple[Finding, ...]:
    found = secrets_in(text, cut=cut)
    if not personal:
        return found
    from mimo.privacy.personal import personal_in

    apart = personal_in(text.replace("_", " ")) if "_" in text else ()
    return findings(text, (one[:3] for one in (*found, *personal_in(text), *apart)))


_IDENTIFIER = re.compile(
    r"(?:.*_)?(?:ids?|files?|paths?|uri|to|source|target|start|by|supersedes|parent)"
)
"""Fields that hold ids and paths of memories: a part of a token in one is a name by chance."""


class _Screen:
    """One look through a value."""

    def __init__(self, personal: bool) -> None:
        self.personal = personal
        self.kinds: list[str] = []

    def of(self, value: Any) -> Any:
        if type(value) is str:
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.key(key): self.field(key, item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            items = [self.of(item) for item in value]
            return items if isinstance(value, list) else tuple(items)
        if type(value) is int and self.personal and abs(value) >= 10**11:
            shown = self.text(str(value))
            return value if shown == str(value) else shown
        if is_dataclass(value) and not isinstance(value, type):
            members = {one.name: getattr(value, one.name) for one in fields(value)}
            seen = {name: self.member(name, member) for name, member in members.items()}
            changed = {name: one for name, one in seen.items() if one is not members[name]}
            return replace(value, **changed) if changed else value
        return value

    def member(self, name: str, value: Any) -> Any:
        """Returns a field of a dataclass; keys stay apart from each other, and can be asked for."""
        if _IDENTIFIER.fullmatch(name):
            return self.identifiers(value)
        if not self.personal or name not in ("key", "keys"):
            return self.of(value)
        return tuple(map(self.key, value)) if isinstance(value, tuple) else self.key(value)

    def identifiers(self, value: Any) -> Any:
        """Returns ids and paths, which must still lead to what they name."""
        if type(value) is str:
            return self.text(value, cut=False)
        if type(value) is tuple and all(type(one) is str for one in value):
            return tuple(self.text(one, cut=False) for one in value)
        return self.of(value)

    def text(self, text: str, *, cut: bool = True) -> str:
        found = _found(text, self.personal, cut=cut)
        self.kinds += [one.kind for one in found]
        return without(text, found) if found else text

    def named(self, key: str, text: str) -> str:
        """Returns the text of a field, in which a password may be one by the field's name alone."""
        whole = f'{key}: "{text}"'
        start = len(whole) - len(text) - 1
        shown = self.text(text)
        if shown is text and (found := [one for one in secrets_in(whole) if one.start >= start]):
            self.kinds += [one.kind for one in found]
            moved = [one._replace(start=one.start - start, end=one.end - start) for one in found]
            return without(text, moved)
        return shown

    def key(self, key: Any) -> Any:
        shown = screened_key(key, personal=self.personal) if type(key) is str else key
        if shown != key:
            self.kinds.append(shown.split("-")[1])
        return shown

    def field(self, key: Any, value: Any) -> Any:
        kind = _kind_of(key, value) if self.personal and type(key) is str else None
        if kind is None and type(key) is str and _IDENTIFIER.fullmatch(key):
            return self.identifiers(value)
        if kind is None and type(key) is str and type(value) is str:
            return self.named(key, value)
        if kind is None:
            return self.of(value)
        self.kinds.append(kind)
        return mark(kind)


def _kind_of(key: str, value: Any) -> str | None:
    """Returns what a field holds by its name alone, or None."""
    if value is None or isinstance(value, bool) or value in ("", 0, [], {}):
        return None
    if kind := sensitive(key):
        return kind
    if isinstance(value, str | int) and (kind := of_person(key)):
        return kind if any(map(str.isdigit, str(value))) else None
    if not (isinstance(value, str | int) and is_of_phone(key)):
        return None
    from mimo.privacy.personal import is_phone

    return "phone" if is_phone(str(value)) else None
