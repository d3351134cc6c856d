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
