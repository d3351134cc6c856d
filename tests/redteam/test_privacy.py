"""Secrets and personal data in the disguises that got past the detector."""

from base64 import b64encode
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from mimo.errors import PiiDetected
from mimo.frozen import frozen
from mimo.guard import privacy
from mimo.guard.policy import PiiAction
from mimo.memory import ids
from mimo.memory.model import Kind
from mimo.privacy import secrets as detector
from mimo.privacy.model import without
from mimo.privacy.personal import personal_in
from mimo.privacy.secrets import secrets_in
from mimo.privacy.values import screened, screened_key
from mimo.text.clean import clean, inert
from mimo.text.phrases import items_of
from mimo.text.tokens import query_terms, tokenize
from tests import privacy_fakes
from tests.conftest import assert_linear
from tests.privacy_fakes import ALNUM, HEX, TOKENS, WORD, Draw

DRAW = Draw(31)
GITHUB = TOKENS["github_token"][0](DRAW)
NPM = TOKENS["npm_token"][0](DRAW)
AWS = TOKENS["aws_access_key"][0](DRAW)
PASSWORD = DRAW.password()
PEM = privacy_fakes._private_key(DRAW, "RSA ")

Property = Callable[[str, object], None]


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def folded_lines(text: str, width: int) -> str:
    return "\n    ".join(text[n : n + width] for n in range(0, len(text), width))


ENCODED = {
    "apiVersion: v1\nkind: Secret\ndata:\n  tls.key: §\n": encoded(PEM),
    '{"kind": "Secret", "data": {"tls.key": "§"}}': encoded(PEM),
    "data:\n  tls.key: |\n    §\n": folded_lines(encoded(PEM), 76),
    "kind: Secret\ndata:\n  DB: §\n": encoded(PASSWORD),
    "users:\n- user:\n    client-key-data: §\n": encoded(PEM * 6),
    '{"auths": {"ghcr.io": {"au' + 'th": "§"}}}': encoded(f"bot:{PASSWORD}"),
    "  .dockerconfigjson: §": encoded(
        '{"auths": {"ghcr.io": {"au' + f'th": "{encoded("bot:" + PASSWORD)}"}}}}}}'
    ),
    "//registry.corp/:_au" + "th=§": encoded(f"bot:{PASSWORD}"),
    "config: §": encoded(f"password: {PASSWORD}\n"),
}


@pytest.mark.attack("secret in base64 past the detector")
def test_one_layer_of_base64_hides_nothing(record_property: Property) -> None:
    record_property("tried", len(ENCODED))
    for text, secret in ENCODED.items():
        whole = text.replace("§", secret)
        assert without(whole, secrets_in(whole)).count(secret[:40]) == 0, text


def escaped(token: str) -> str:
    return "".join(f"\\{sign}" if not sign.isalnum() else sign for sign in token)


ESCAPED = [
    *(escaped(make(DRAW)) for makers in TOKENS.values() for make in makers if makers),
    *(f"line one\\n{make(DRAW)}\\nline two" for makers in TOKENS.values() for make in makers),
    f"https://x/?t%3D{GITHUB}",
    f'{{\\"password\\": \\"{PASSWORD}\\"}}',
    f"postgres:\\/\\/app:{PASSWORD}@db\\/app",
    GITHUB.replace("_", "\\u005f"),
]


@pytest.mark.attack("escaped token past the detector")
def test_escapes_of_markdown_json_and_urls_hide_nothing(record_property: Property) -> None:
    texts = [text for text in ESCAPED if "PRIVATE" not in text]
    record_property("tried", len(texts))
    for text in texts:
        assert secrets_in(text), text


GLUED = ["x§", "token§", "§xyz", "9§", "§_more", "key§end"]


@pytest.mark.attack("token glued to a word past the detector")
def test_letters_around_a_token_do_not_hide_it(record_property: Property) -> None:
    record_property("tried", len(GLUED) * 3)
    for token in (GITHUB, NPM, AWS):
        for frame in GLUED:
            text = frame.replace("§", token)
            assert token not in without(text, secrets_in(text)), text


INVISIBLE = (
    "\u2028 \u2029 \u0085 \u3164 \uffa0 \u115f \u1160 \u2800 \u200b \u2060 \u2065 \ufe0f "
    "\U000e0041 \U000e0100 \ud800 \ue000 \ufffc \x07 \x1b[31m \x1b]8;;x\x07 \r"
).split(" ")


@pytest.mark.attack("invisible characters in a token")
def test_nothing_invisible_splits_a_token(record_property: Property) -> None:
    record_property("tried", len(INVISIBLE))
    for sign in INVISIBLE:
        text = f"use {NPM[:17]}{sign}{NPM[17:]} here"
        assert without(text, secrets_in(text)) == "use [REDACTED:npm_token] here", ascii(sign)


def test_one_letter_that_lower_case_makes_two_does_not_switch_passwords_off() -> None:
    assert [secret.kind for secret in secrets_in(f"İ password: {PASSWORD}")] == ["password"]


TELEGRAM = DRAW.number(10) + ":A" + "F" + DRAW.some(WORD[:-1], 33)
DISCORD = f"{encoded(DRAW.number(18))}.{DRAW.some(ALNUM, 6)}.{DRAW.some(ALNUM, 38)}"
SAID = {
    f"https://api.telegram.org/bot{TELEGRAM}/getMe": TELEGRAM,
    f"the bot is {TELEGRAM}.": TELEGRAM,
    f"the bot is 123456789:{TELEGRAM.partition(':')[2]}": f"123456789:{TELEGRAM.partition(':')[2]}",
    f"the bot is {DISCORD}.": DISCORD.partition(".")[2],
    "machine api.corp.io login bob pass" + f"word {DRAW.some(ALNUM, 9)}": "",
    "machine api.corp.io\n  login bob\n  pass" + f"word {PASSWORD}\n": PASSWORD,
    f"the password for staging is {PASSWORD}": PASSWORD,
    f"The staging password for the admin user is `{PASSWORD}`.": PASSWORD,
    f"password was {PASSWORD}, and is now **{PASSWORD[::-1]}**": PASSWORD,
    f"password for staging: {PASSWORD}": PASSWORD,
    "the password for staging is Summer" + "2024!": "Summer" + "2024!",
    f"the token for CI is {DRAW.some(ALNUM, 32)}": "",
    f"the API key of staging is {DRAW.some(HEX, 40)}": "",
    f"스테이징 비밀번호는 {PASSWORD} 입니다": PASSWORD,
    f"비밀번호: {PASSWORD}": PASSWORD,
    f"암호는 {PASSWORD}입니다": PASSWORD,
    f"비번은 {PASSWORD}": PASSWORD,
    f"비밀번호를 {PASSWORD} 로 바꿈": PASSWORD,
    f"API 키는 {DRAW.some(ALNUM, 32)}": "",
}


@pytest.mark.attack("secret in prose past the detector")
def test_secrets_are_found_as_people_write_them(record_property: Property) -> None:
    record_property("tried", len(SAID))
    for text, secret in SAID.items():
        secrets = secrets_in(text)
        assert secrets, text
        assert not secret or secret not in without(text, secrets), text


@pytest.mark.parametrize(
    "text",
    [
        "the password for staging is rotated every 30 days",
        "The token for CI is kept in vault-2.",
        "password for the user: see docs/setup2.md",
        "one token at a time](https://host/9599/229312744-a2013a06-3a53-4a46-9e40-3080e4887ff7.gif)",
        "the password is SHA256-hashed, the secret is AES-256-GCM",
        "비밀번호는 30일마다 바뀜, 토큰 2개",
        "the machine password reset of default login 2",
        '{"auth": "required", "oauth": "c2VydmVyLXNpZGUtZmxvdw=="}',
        "data:image/svg+xml;base64," + encoded('<svg xmlns="http://www.w3.org/2000/svg"/>'),
        "api-key: decision_api_key_20261120_k3v7mq",
    ],
)
def test_prose_about_secrets_is_left_alone(text: str) -> None:
    assert secrets_in(text) == ()


OWN = (
    "fact_npm_k3v7mq",
    "decision_hf_20261120_k3v7mq",
    "fact_r8_2a3b4c",
    "decision_glsa_token_20261120_k3v7mq",
    "docs.hf_1a2b3c4d",
)


@frozen
class Row:
    id: str
    file: str
    superseded_by: str | None
    ids: tuple[str, ...]
    title: str


@pytest.mark.attack("memory that its mask makes unreachable")
def test_ids_and_paths_that_hold_a_prefix_by_chance_are_shown(record_property: Property) -> None:
    record_property("tried", len(OWN))
    for own in OWN:
        row = Row(id=own, file=f"x/{own}", superseded_by=own, ids=(own,), title="t")
        rows: dict[str, Any] = {"id": own, "links": [{"to": own}]}
        assert screened(row).value == row
        assert screened(rows).value == rows
    for own in OWN[:4]:
        assert screened(f"see {own}").value == f"see {own}"
    assert screened(Row(id=NPM, file="x", superseded_by=None, ids=(), title="t")).kinds


@pytest.mark.attack("memory that its mask makes unreachable")
def test_no_id_holds_a_secret() -> None:
    token = "shp" + "at_" + DRAW.some(HEX, 32)
    day = date(2026, 11, 20)

    made = ids.new_id(Kind.FACT, token.replace("_", " "), day, "k3v7mq")
    from_path = ids.of_path(f".mind/facts/{token}.md")

    assert made == "fact_20261120_k3v7mq"
    assert from_path.startswith("note-")
    assert secrets_in(made, cut=True) == secrets_in(from_path, cut=True) == ()


KEYS = (
    "bob.smith-415-555-2671",
    "call_415-234-5678",
    "card-4111-1111-1111-1111",
    "ssn.123-45-6789",
    "birthday-1990-05-17",
    "host-93.184.216.34",
)


@pytest.mark.req("002-10", "002-42")
@pytest.mark.attack("personal data in the key of a value")
def test_keys_with_personal_data_are_refused_and_masked(record_property: Property) -> None:
    record_property("tried", len(KEYS))
    for key in KEYS:
        assert screened_key(key, personal=True).startswith("REDACTED-"), key
        for action in (PiiAction.REFUSE, PiiAction.REDACT):
            with pytest.raises(PiiDetected):
                privacy.admitted({"key": key, "value": 1}, action, names=("key",))
    for key in ("backup-2026-05-17", "build.1.2.3", "user.settings-v2", "a_b.c-d"):
        assert screened_key(key, personal=True) == key


def test_fields_for_addresses_and_births_are_masked_by_their_name() -> None:
    value = {"dob": "17/05/90", "home_address": "The Old Mill 3", "address": "10.0.0.1"}
    value |= {"생일": "5월 17일"}

    assert screened(value, personal=True).value == {
        "dob": "[REDACTED:birth_date]",
        "home_address": "[REDACTED:address]",
        "address": "10.0.0.1",
        "생일": "[REDACTED:birth_date]",
    }


@pytest.mark.attack("text that makes the detector slow")
def test_a_value_is_judged_once_however_many_names_it_repeats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judged: list[str] = []

    def count(value: str, *, chosen: bool) -> bool:
        judged.append(value)
        return False

    monkeypatch.setattr(detector, "is_secret", count)
    assert secrets_in("password=" * 100_000) == ()
    assert sum(map(len, judged)) <= 3 * len("password=" * 100_000)


SLOW: dict[str, tuple[Callable[[str], object], Callable[[int], str], int]] = {
    "string of a terminal": (clean, lambda size: "\x90" * size, 20_000),
    "blank lines before a command": (inert, lambda size: "\n" * size + "::", 20_000),
    "word": (tokenize, lambda size: "a" * size + "1a", 20_000),
    "word of a question": (query_terms, lambda size: "a" * size, 20_000),
    "blank lines of an item": (items_of, lambda size: "- a" + "\n" * size, 160_000),
    "keys without an end": (
        secrets_in,
        lambda size: f"-----BEGIN PRIVATE KEY-----{'a' * 32}\n" * size,
        300,
    ),
    "streets": (personal_in, lambda size: f"{'A-' * size},straße 1 " * 2_000, 10),
}
"""A reader, the text of a size, and a size."""


@pytest.mark.attack("text that makes the detector slow")
@pytest.mark.parametrize("name", SLOW)
def test_a_text_takes_no_more_than_linear_time(name: str) -> None:
    read, text, size = SLOW[name]
    assert_linear(lambda size: read(text(size)), size)
