"""Names of fields whose values are nobody else's business, whatever they are."""

import re

_SECRET = frozenset(
    "password passwd pwd passphrase secret token ssn social_security_number credit_card "
    "credit_card_number card_number cvv cvc pin api_key apikey access_key secret_key private_key "
    "encryption_key signing_key authorization credential credentials".split()
)
_ENDINGS = tuple(f"_{name}" for name in sorted(_SECRET - {"pin", "authorization"}))
_PAGING = re.compile(r"(?:next|page|next_page|continuation|continue|cursor|sync|resume|prev)_token")
_PHONE = re.compile(r"(?:.*_)?(?:phone|telephone|tel|mobile|fax|cell)(?:_(?:number|no|nr))?")


def sensitive(name: str) -> str | None:
    """Returns the name in small letters and underscores if its value is sensitive, or None."""
    plain = _plain(name)
    if _PAGING.fullmatch(plain):
        return None
    return plain if plain in _SECRET or plain.endswith(_ENDINGS) else None


def is_of_phone(name: str) -> bool:
    """Returns whether a field is for a telephone number."""
    return _PHONE.fullmatch(_plain(name)) is not None


def _plain(name: str) -> str:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[:80])
    return re.sub(r"[^A-Za-z0-9]+", "_", apart).strip("_").lower()
