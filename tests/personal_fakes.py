"""Format-valid fakes of personal data, and texts that only look like them or like secrets."""

import string
from base64 import b64encode
from collections.abc import Callable
from uuid import UUID

from tests.privacy_fakes import HEX, Draw, Fake, Make, within

PERSONAL: dict[str, list[Callable[[Draw], tuple[str, str]]]] = {
    "email": [
        lambda draw: within("write to § about it", _mail(draw)),
        lambda draw: within('{"contact": "§"}', _mail(draw)),
        lambda draw: within("Signed-off-by: Jo <§>", _mail(draw)),
        lambda draw: within("reach me: §", _mail(draw).replace("@", " [at] ")),
        lambda draw: within("§", _mail(draw).replace("@", "\N{FULLWIDTH COMMERCIAL AT}")),
    ],
    "phone": [
        lambda draw: within("call § after nine", "+1 " + _american(draw, "-")),
        lambda draw: within("call (§) after nine", _american(draw, ".")),
        lambda draw: within("§ is hers", f"+49 30 {draw.random.choice('2345')}{draw.number(6)}"),
        lambda draw: within("phone: §", f"0{draw.number(3)} {draw.number(6)}"),
        lambda draw: within("mobile=§", f"+3361{draw.number(7)}"),
        lambda draw: within("reach her under § today", f"01{draw.number(2)} {draw.number(7)}"),
        lambda draw: within("§", f"010-{draw.number(4)}-{draw.number(4)}"),
    ],
    "address": [
        lambda draw: within("lives at § since May", f"{draw.number(3)} Maple Street"),
        lambda draw: within("send it to § please", f"Lindenstraße {draw.number(2)}"),
        lambda draw: within("주소: §", f"서울특별시 강남구 테헤란로 {draw.number(3)}"),
    ],
    "birth_date": [
        lambda draw: within("born §", _birth(draw)),
        lambda draw: within("geboren am §", ".".join(reversed(_birth(draw).split("-")))),
        lambda draw: within("생년월일: §", _birth(draw)),
    ],
    "ssn": [
        lambda draw: within(
            "ssn §", f"{draw.random.randint(100, 665)}-{draw.number(2)}-{draw.number(4)}"
        ),
        lambda draw: within(
            "it is § he said", f"{draw.random.randint(100, 665)} {draw.number(2)} {draw.number(4)}"
        ),
    ],
    "credit_card": [
        lambda draw: within("card § exp 10/30", _card("4", 16)(draw)),
        lambda draw: within("card §", _spaced(_card("53", 16)(draw), " ")),
        lambda draw: within("paid with §.", _spaced(_card("6011", 16)(draw), "-")),
        lambda draw: within("amex §", _card("37", 15)(draw)),
    ],
    "iban": [
        lambda draw: within("to § please", _iban(draw, "DE", 18)),
        lambda draw: within("IBAN: §", _spaced(_iban(draw, "FR", 23), " ")),
        lambda draw: within("§", _iban(draw, "NL", 14).lower()),
    ],
    "ip": [
        lambda draw: within("a login from § at noon", _ip(draw)),
        lambda draw: within('"remote": "§"', _ip(draw)),
        lambda draw: within(
            "from [§]",
            ":".join(["2a0" + draw.number(1), draw.some(HEX, 4), "", draw.some("abc", 4)]),
        ),
    ],
}
"""Makers of personal data in their place; nobody's, but for chance."""


def _birth(draw: Draw) -> str:
    return f"19{draw.number(2)}-0{draw.number(1)}-1{draw.number(1)}"


def _mail(draw: Draw) -> str:
    local = draw.some(string.ascii_lowercase, 6) + draw.random.choice(["", ".w", "+home"])
    return (
        f"{local}@{draw.some(string.ascii_lowercase, 8)}.{draw.random.choice(['de', 'com', 'io'])}"
    )


def _american(draw: Draw, between: str) -> str:
    area = draw.random.choice(["212", "415", "617", "312", "206"])
    return between.join([area, f"{draw.random.choice('2346789')}{draw.number(2)}", draw.number(4)])


def _card(start: str, length: int) -> Callable[[Draw], str]:
    def make(draw: Draw) -> str:
        digits = start + draw.some(string.digits, length - len(start) - 1)
        total = 0
        for place, one in enumerate(reversed(digits)):
            value = int(one) * (2 - place % 2)
            total += value - 9 if value > 9 else value
        return digits + str(-total % 10)

    return make


def _iban(draw: Draw, country: str, count: int) -> str:
    account = draw.number(count)
    letters = "".join(str(int(one, 36)) for one in f"{account}{country}00")
    return f"{country}{98 - int(letters) % 97:02}{account}"


def _spaced(text: str, between: str) -> str:
    return between.join(text[n : n + 4] for n in range(0, len(text), 4))


def _ip(draw: Draw) -> str:
    first = draw.random.choice([23, 37, 52, 81, 93, 134, 151])
    return ".".join(str(n) for n in [first, *(draw.random.randint(21, 250) for _ in range(3))])


def personal(seed: int, each: int = 5) -> list[Fake]:
    """Returns fakes of every kind of personal data."""
    draw = Draw(seed)
    return [
        Fake(kind, *makers[number % len(makers)](draw))
        for kind, makers in PERSONAL.items()
        for number in range(each)
    ]


DECOYS: dict[str, Make] = {
    "version": lambda draw: f"needs v{draw.number(2)}.4.183.1, released as 3.8.11.{draw.number(1)}",
    "package": lambda draw: (
        f"left-pad@{draw.number(1)}.{draw.number(2)}.0-rc.1 >=1.2.{draw.number(3)}"
    ),
    "timestamp": lambda draw: (
        f"at 2026-11-20T15:30:{draw.number(2)}Z, 17{draw.number(8)} or 17{draw.number(11)}"
    ),
    "git hash": lambda draw: f"fixed in {draw.some(HEX, 40)} ({draw.some(HEX, 7)})",
    "digest": lambda draw: f"sha256:{draw.some(HEX, 64)} token_hash: {draw.some(HEX, 64)}",
    "integrity": lambda draw: f'"integrity": "sha512-{b64encode(draw.bytes(64)).decode()}"',
    "uuid": lambda draw: f"secret: {UUID(bytes=draw.bytes(16), version=4)}",
    "own id": lambda draw: (
        f"see decision_token_rotation_20261120_{draw.some('abcdefghkmnp234567', 6)}"
    ),
    "example mail": lambda draw: f"jo{draw.number(2)}@example.com, ann@mail.example.org, x@y.test",
    "remote": lambda draw: f"git clone git@github.com:{draw.some('abcdef', 6)}/tools.git",
    "scp": lambda draw: f"scp a.txt deploy@build.corp.io:/srv/{draw.some('abcdef', 6)}",
    "image": lambda draw: f"![](logo-{draw.some('abc', 3)}@2x.png)",
    "fiction": lambda draw: f"call 555-01{draw.number(2)}, 202-555-01{draw.number(2)}",
    "example net": lambda draw: (
        f"192.0.2.{draw.number(2)} 198.51.100.{draw.number(2)} 2001:db8::{draw.number(3)}"
    ),
    "local net": lambda draw: (
        f"http://127.0.0.1:80{draw.number(2)} 10.0.{draw.number(2)}.7 ::1 192.168.1.9"
    ),
    "number": lambda draw: f"order 1{draw.number(15)}, row {draw.number(10)}, 9{draw.number(9)}",
    "namespace": lambda draw: (
        f"std::vector, a::b, {draw.some('abcdef', 4)}::{draw.some('abcdef', 4)}()"
    ),
    "time": lambda draw: f"12:{draw.number(2)}:33 to 13:00:00, 2024-05-{draw.number(2)}",
    "placeholder": lambda draw: (
        f"password: <your password>, token={'x' * 20}, api_key: $KEY_{draw.number(2)}"
    ),
    "variable": lambda draw: (
        f"password = os.environ['DB_PASSWORD{draw.number(1)}']; token: ${{TOKEN}}"
    ),
    "code": lambda draw: f"def login(password: str, token: Token{draw.number(2)}) -> Secret:",
    "prose": lambda draw: (
        f"the password is rotated every {draw.number(2)} days; the token: see the vault"
    ),
    "sample url": lambda draw: f"postgres://user:password@localhost:54{draw.number(2)}/db",
    "public key": lambda draw: f"ssh-ed25519 {b64encode(draw.bytes(51)).decode()} jo",
    "certificate": lambda draw: (
        f"-----BEGIN CERTIFICATE-----\n{b64encode(draw.bytes(300)).decode()}\n-----END"
    ),
    "embedded": lambda draw: f"data:image/png;base64,{b64encode(draw.bytes(200)).decode()}",
    "aws sample": lambda draw: (
        "AK" + "IAIOSFODNN7EXAMPLE and wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    ),
    "slug": lambda draw: f"risk-{draw.some('abcdefgh', 30)} task-{draw.some('ab', 20)}",
    "arn": lambda draw: f"arn:aws:iam::{draw.number(12)}:role/deploy",
    "path": lambda draw: (
        f"secret: /run/secrets/db_password_{draw.number(2)}, token_file: ./token.txt"
    ),
}
"""Makers of what is none of all that, though it looks like it."""


def decoys(seed: int, each: int = 5) -> list[Fake]:
    """Returns texts in which nothing must be found; the kind says what they are."""
    draw = Draw(seed)
    return [Fake(what, make(draw), "") for what, make in DECOYS.items() for _ in range(each)]
