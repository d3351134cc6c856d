"""Secrets are detected, look-alikes are ignored, and no text takes long."""

import re
import re._parser as parser  # type: ignore[import-not-found]
from base64 import b64encode
from typing import Any

import pytest

from mimo.memory.model import Kind
from mimo.privacy import model
from mimo.privacy import secrets as detector
from mimo.privacy.model import without
from mimo.privacy.rules import FORMS, TOKENS, is_own_id
from mimo.privacy.secrets import secrets_in
from mimo.privacy.values import screened
from tests import personal_fakes, privacy_fakes
from tests.privacy_fakes import ALNUM, Draw, Fake

FAKES = privacy_fakes.secrets(7)
TOKEN = privacy_fakes.TOKENS["github_token"][0](Draw(3))
OTHER = privacy_fakes.TOKENS["stripe_key"][0](Draw(3))


def kinds(text: str, **options: Any) -> list[str]:
    return [secret.kind for secret in secrets_in(text, **options)]


def shown(text: str, **options: Any) -> str:
    return without(text, secrets_in(text, **options))


@pytest.mark.parametrize("fake", FAKES, ids=lambda fake: fake.kind)
def test_each_format_is_found_by_kind_and_replaced_whole(fake: Fake) -> None:
    assert kinds(fake.text) == [fake.kind]
    assert fake.secret not in shown(fake.text)
    assert fake.text.partition(fake.secret)[0][:20] in shown(fake.text) + fake.text[:20]


def test_every_rule_has_a_fake() -> None:
    rules = {rule.kind for rule in TOKENS} | {form.kind for form in FORMS}
    rules |= {"private_key", "basic_auth_url"}

    assert rules - set(privacy_fakes.TOKENS) - set(privacy_fakes.IN_PLACE) == set()


@pytest.mark.parametrize("kind", Kind)
def test_ids_of_every_type_of_memory_are_not_secrets(kind: Kind) -> None:
    assert is_own_id(f"{kind}_auth_strategy")
    assert not is_own_id(f"x{kind}_auth_strategy")


@pytest.mark.parametrize("decoy", personal_fakes.decoys(7), ids=lambda decoy: decoy.kind)
def test_look_alikes_of_secrets_are_ignored(decoy: Fake) -> None:
    assert kinds(decoy.text) == []


@pytest.mark.parametrize(
    "hidden",
    [
        TOKEN.translate({n + 48: 0xFF10 + n for n in range(10)}),
        TOKEN[:9] + "\N{ZERO WIDTH SPACE}" + TOKEN[9:20] + "\N{SOFT HYPHEN}" + TOKEN[20:],
        TOKEN.replace("a", "\N{CYRILLIC SMALL LETTER A}").replace(
            "e", "\N{CYRILLIC SMALL LETTER IE}"
        ),
        TOKEN[:17] + "\n" + TOKEN[17:],
        TOKEN[:17] + " \\\n    " + TOKEN[17:],
        TOKEN[:17] + '" +\n    "' + TOKEN[17:],
        b64encode(f"token {TOKEN}".encode()).decode(),
    ],
    ids=["full-width", "invisible", "homoglyphs", "wrapped", "continued", "concatenated", "base64"],
)
@pytest.mark.req("002-63")
def test_disguised_secrets_are_found(hidden: str) -> None:
    assert shown(f"use {hidden} for it") == "use [REDACTED:github_token] for it"


def test_lines_after_a_token_are_kept() -> None:
    assert shown(f"{TOKEN}\nnext line") == "[REDACTED:github_token]\nnext line"
    jwt = next(fake for fake in FAKES if fake.kind == "jwt").secret
    assert shown(f"{jwt}\nDEBUG=1\nword\n{'a' * 400}") == (
        f"[REDACTED:jwt]\nDEBUG=1\nword\n{'a' * 400}"
    )


WRAPPED = {
    "jwt": "eyJhbGciOiJSUzI1NiJ9.eyJ{0}.{1}{2}",
    "webhook_url": "https://hooks.slack.com/services/T0{0}",
    "azure_key": "AccountName=shop;AccountKey={0}{1}==",
    "azure_sas": "https://shop.blob.core.windows.net/a?sig={0}%3D",
    "authorization_header": "Authorization: Bearer {0}{1}{2}",
    "credential": "api_token = {0}{1}{2}",
}


@pytest.mark.parametrize("width", [40, 64, 76, 80, 100])
@pytest.mark.parametrize(
    ("start", "between"),
    [("", "\n"), ("token:\n      ", "\n      "), ("# ", "\n# "), ('t = "', '" +\r\n  "')],
    ids=["plain", "indented", "comment", "string"],
)
@pytest.mark.parametrize("kind", WRAPPED)
@pytest.mark.attack("secret broken over lines")
def test_secrets_of_every_shape_are_found_over_lines(
    kind: str, start: str, between: str, width: int
) -> None:
    draw = Draw(width)
    parts = [draw.some(ALNUM, 43) for _ in range(3)]
    whole = WRAPPED[kind].format(*parts)
    lines = [whole[at : at + width] for at in range(0, len(whole), width)]
    text = f"{start}{between.join(lines)}\n\nThe next paragraph.\n"
    (secret,) = secrets_in(text)
    assert secret.kind == kind
    left = without(text, [secret])
    assert left.endswith("\n\nThe next paragraph.\n")
    # A last piece that looks like a word is left.
    assert not any(part[n : n + 5] in left for part in parts for n in range(38))


@pytest.mark.parametrize(
    "text",
    [
        "DB_PASS={}",
        'export SMTP_PASS="{}"',
        "SSHPASS={} ssh -V",
        "smtp_pass = {}",
        "smtpPass: {}",
        "pass: {}",
        '{{"pass": "{}"}}',
        "auth: {{ user: 'bob', pass: '{}' }}",
        "mysqldump --password {}",
        "run --db-pass '{}'",
    ],
)
def test_names_that_end_in_pass_are_those_of_passwords(text: str) -> None:
    password = Draw(4).password()
    assert kinds(text.format(password)) == ["password"]
    assert password not in shown(text.format(password))
    assert screened({"db_pass": password}).kinds == ("password",)


@pytest.mark.parametrize(
    ("end", "left"),
    [("&3x", ""), ("&user=ann", "&user=ann"), (" && make", " && make"), ("&amp;a=1", "&amp;a=1")],
)
def test_an_ampersand_ends_a_password_only_before_another_field(end: str, left: str) -> None:
    password = Draw(4).password()
    assert shown(f"db_pass={password}{end}") == f"db_pass=[REDACTED:password]{left}"


@pytest.mark.parametrize("end", ["", "…", "..."])
def test_truncated_tokens_are_found_with_cut(end: str) -> None:
    text = f"they use {TOKEN[:20]}{end}"

    assert kinds(text) == []
    assert shown(text, cut=True) == f"they use [REDACTED:github_token]{end}"


def test_private_key_without_its_last_line_ends_with_its_text() -> None:
    key = privacy_fakes.TOKENS["private_key"][0](Draw(5))
    begun = "\n".join(key.splitlines()[:4])

    assert shown(f"before\n{begun}\n\nAfter that, prose.") == (
        "before\n[REDACTED:private_key]\n\nAfter that, prose."
    )
    assert kinds("a file begins with -----BEGIN PRIV" + "ATE KEY----- as usual") == []


def test_secrets_have_lines_and_overlaps_are_merged() -> None:
    text = f"a {TOKEN}\nb\nhttps://ci:{TOKEN}@git.corp/x {OTHER}"

    assert [(secret.kind, secret.line) for secret in secrets_in(text)] == [
        ("github_token", 1),
        ("github_token", 3),
        ("stripe_key", 3),
    ]


def test_marked_line_is_exempt_if_marks_are_allowed() -> None:
    text = f"a {TOKEN} <!-- mind:allow-secret -->\nb {OTHER}"

    assert kinds(text) == ["stripe_key"]
    assert kinds(text, allowing=False) == ["github_token", "stripe_key"]


@pytest.mark.parametrize(
    "text",
    [
        "password: hunter2",
        "password: correct horse battery staple",
        "password = config.get('db')",
        "token_id: 3f786850e387550fdab836ed7e6dc881de23001b",
        "secret: my-secret-name-2",
        "api_key=YOUR_API_KEY_HERE_12345678",
        "postgres://user:password@db/x postgres://app:app@db/x",
        "postgres://app:${DB_PASSWORD}@db/x https://user:<token>@host/",
        "Authorization: Bearer MY-PERSONAL-ACCESS-TOKEN",
        "the PRIVATE KEY is on the host, as a PuTTY-User-Key-File",
        "DB_PASS=changeme pass: hunter2 pass=$(pass show db/Prod1)",
        "second pass: A1b2-C3d4! bypass=Zx9qW3rtLp! BYPASS=Zx9qW3rtLp! compass: Zx9qW3rtLp!",
        "pass_rate: 99.5%-Ok passes=A1b2-C3d4 one --single-passes Zx9qW3rtLp!",
        "tests pass 12/13-A and fail 1, {'pass': 12, 'fail': 1}",
    ],
)
def test_words_in_the_place_of_a_secret_are_ignored(text: str) -> None:
    assert kinds(text) == []


HOSTILE = [
    *(words[0] * 20_000 for _, words in detector._TOKENS),
    *(form.words[0] * 20_000 for form in FORMS),
    "://" * 50_000,
    "a://b:" * 30_000,
    "password=" * 20_000,
    "pass=" * 40_000,
    "--a-password '" * 20_000,
    ("aB1" * 20 + "\n") * 3_000,
    ("aB1" * 20 + "\r") * 3_000,
    ("token = " + "aB1" * 20 + "\n" + "aB1" * 20 + "\n") * 1_500,
    ("aB1" * 1_333 + "\n") * 50,
    ("/" * 4_000 + " x\n") * 50,
    ("\"'`+\\ " * 8 + "\n") * 4_000,
    "".join(f"password=a{n}" for n in range(15_000)),
    "password for " * 15_000,
    "비밀번호는 " * 30_000,
    ("-----BEGIN PRIV" + "ATE KEY-----\n" + "A" * 32 + "\n\n") * 3_000,
    "eyJhbGciOiJIUzI1NiJ9".rjust(28, "a") * 7_000,
    "QUJD" * 50_000,
    "machine a login b " * 10_000,
    "\\_" * 100_000,
    "\\n\n" * 60_000,
    "\x1b[" * 100_000,
    "\x9d" * 100_000,
    "".join(map(chr, range(0x300, 0x3000))) * 10,
    "password" * 20_000,
    "password: " + "a-" * 60_000,
    "-----BEGIN PRIV" + "ATE KEY-----" * 10_000,
    ("-----BEGIN PRIV" + "ATE KEY-----\n") * 5_000,
    "eyJ" + "a" * 200_000,
    ("eyJ" + "a" * 8 + ".") * 10_000,
    "curl -u " * 20_000,
    "host=;" * 30_000 + "pwd=",
    "A" * 200_000,
    "Authorization: " * 10_000,
    "password|x\n-|-\n" * 15_000,
    "|-|-|\n" * 40_000,
    "| password |\n|---|\n" + "| a |\n" * 30_000,
    "'password'\n" * 20_000,
    "name: password {\n" * 12_000,
    "password\n" * 20_000,
    "<password a='>" * 15_000,
    "mysql -p" * 25_000,
    "value: '" * 25_000,
    "$1$" * 60_000,
    "MIIEowIBAAKC" * 15_000,
    ("A" * 64 + "\n") * 3_000 + "-----END PRIV" + "ATE KEY-----",
    ("gh" + "p_") + "a\n" * 100_000,
    "\N{ZERO WIDTH SPACE}" * 100_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: f"{text[:12]!r}")
def test_hostile_texts_take_linear_time(text: str) -> None:
    """Each is some 200 kB: in quadratic time it would take hours."""
    assert len(set(kinds(text))) <= 1


@pytest.mark.parametrize(
    "pattern",
    [
        *(detector._token(rule).pattern for rule in TOKENS),
        *(form.pattern for form in FORMS),
        *(
            value
            for name, value in (*vars(detector).items(), *vars(model).items())
            if re.fullmatch("_[A-Z0-9]+", name) and isinstance(value, str)
        ),
    ],
)
def test_patterns_have_no_nested_or_unbounded_repetition(pattern: str) -> None:
    """So that matching takes at most a fixed number of steps at each character."""
    _check(parser.parse(pattern), inside=False)


def _check(parsed: Any, *, inside: bool) -> None:
    for code, argument in parsed:
        name = str(code)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, what = argument
            assert most < parser.MAXREPEAT
            wide = what.getwidth()[1] > 1 and least != most
            assert not (inside and wide)
            _check(what, inside=most > 1)
        elif name == "SUBPATTERN":
            _check(argument[-1], inside=inside)
        elif name == "BRANCH":
            for branch in argument[1]:
                _check(branch, inside=inside)
