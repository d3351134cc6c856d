"""The sums and tables by which numbers are told from mere digits."""

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


def iban_length(country: str) -> int | None:
    """Returns how many characters an account number of that country has."""
    return _LENGTHS.get(country.upper())


def is_iban(text: str) -> bool:
    """Returns whether the check digits of an account number, given without spaces, are right."""
    turned = text[4:] + text[:4]
    return int("".join(str(int(one, 36)) for one in turned)) % 97 == 1


def is_luhn(digits: str) -> bool:
    """Returns whether the check digit of a card's number is right."""
    total = 0
    for place, one in enumerate(reversed(digits)):
        value = int(one) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


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
"""The first digits that issuers of cards have, from and to, and how long their numbers are."""


def is_card(digits: str) -> bool:
    """Returns whether digits are a card's number: an issuer's, with the right check digit."""
    issued = any(
        low <= digits[: len(low)] <= high and len(digits) in lengths
        for low, high, lengths in _ISSUERS
    )
    return issued and is_luhn(digits)
