"""Secrets as everyday files and sentences show them; and one decision about placeholders."""

import re
import tomllib
from base64 import b64encode
from pathlib import Path

import pytest

from mimo.errors import SecretDetected
from mimo.guard import privacy
from mimo.privacy.model import texts_of, without
from mimo.privacy.secrets import secrets_in
from mimo.privacy.values import screened
from tests.privacy_fakes import ALNUM, HEX, IN_PLACE, TOKENS, WORD, Draw

DRAW = Draw(58)
TABLE = Path(__file__).with_name("clothes.toml")


def body(start: str, size: int) -> str:
    whole = start + b64encode(DRAW.bytes(size)).decode().rstrip("=")
    return "\n".join(whole[at : at + 64] for at in range(0, len(whole), 64))


SECRETS = {
    "password": DRAW.password(),
    "token": DRAW.some(ALNUM, 40),
    "rsa": body("MIIEowIBAAKC" + "AQEA", 1_176),
    "pkcs8": body("MIIEvQIBADANBgkqhkiG" + "9w0BAQEFAASC", 1_176),
    "ec": body("MHcCAQEE" + "I", 111),
    "openssh": body("b3BlbnNzaC1rZXkt" + "djEA", 300),
    "body": body("", 480),
    "bcrypt": "$2b$12$" + DRAW.some(ALNUM, 53),
    "sha512crypt": "$6$" + DRAW.some(ALNUM, 16) + "$" + DRAW.some(ALNUM, 86),
    "argon2": "$argon2id$v=19$m=65536,t=3,p=4$" + DRAW.some(ALNUM, 22) + "$" + DRAW.some(ALNUM, 43),
    "phpass": DRAW.some(ALNUM, 31),
    "django": "pbkdf2_sha256$600000$" + DRAW.some(ALNUM, 22) + "$" + DRAW.some(ALNUM, 43) + "=",
    "werkzeug": "scrypt:32768:8:1$" + DRAW.some(ALNUM, 16) + "$" + DRAW.some(HEX, 128),
    "ssha": "{SSHA}" + b64encode(DRAW.bytes(24)).decode(),
    "xprv": TOKENS["wallet_key"][0](DRAW),
    "okta": "00" + DRAW.some(WORD, 40),
    "hook": DRAW.some(WORD, 68),
}
NAMES = f"§({'|'.join(sorted(SECRETS, key=len, reverse=True))})"
CLOTHES = {
    f"{kind}: {name}": (kind, *texts)
    for kind, rows in tomllib.loads(TABLE.read_text("utf-8")).items()
    for name, texts in rows.items()
}


def dressed(text: str) -> str:
    return re.sub(NAMES, lambda match: SECRETS[match[1]], text)


@pytest.mark.parametrize("name", CLOTHES)
@pytest.mark.attack("secret in everyday clothes")
def test_secrets_in_everyday_clothes_are_found_and_their_look_alikes_are_not(name: str) -> None:
    kind, text, decoy = CLOTHES[name]
    used = [SECRETS[word] for word in re.findall(NAMES, text)]

    for whole in (dressed(text), f"{dressed(text)}\n\n{decoy}", f"# Notes\n\n{dressed(text)}\n"):
        hits = secrets_in(whole)
        assert [hit.kind for hit in hits] == [kind]
        left = without(whole, hits)
        assert not any(part in left for secret in used for part in secret.split("\n"))
    assert secrets_in(dressed(decoy)) == ()


@pytest.mark.attack("secret in everyday clothes")
def test_the_name_of_an_entry_in_a_value_is_that_of_its_value() -> None:
    entry = {"env": [{"name": "DB_PASSWORD", "value": SECRETS["password"]}]}

    assert secrets_in("\n".join(texts_of(entry)))
    with pytest.raises(SecretDetected):
        privacy.check_secrets({"value": entry}, by_person=False)
    masked = {"env": [{"name": "DB_PASSWORD", "value": "[REDACTED:password]"}]}
    assert screened(entry) == (masked, ("password",))
    clean = {"env": [{"name": "BUILD", "value": SECRETS["password"]}, {"value": 3}]}
    assert screened(clean) == (clean, ())


PLACEHOLDERS = (
    "gh" + "p_" + "aB1" * 12,
    "gh" + "p_abcdefghijABCDEFGHIJ0123456789abcdef",
    "np" + "m_" + "x1Y2" * 9,
    "AK" + "IAIOSFODNN7EXAMPLE",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "wJalrXUtnFEMI/K7MDENG/bPxRfi",
    "postgres://app:" + "aB1" * 8 + "@db/x",
    "Authorization: Bearer " + "aB1-" * 8,
)


@pytest.mark.parametrize("frame", ["{}", "use {}…", "secret_key = {}", "the token is {}"])
@pytest.mark.parametrize("text", PLACEHOLDERS)
def test_one_decision_about_placeholders_holds_for_checks_and_masks(text: str, frame: str) -> None:
    whole = frame.format(text)

    assert secrets_in(whole) == secrets_in(whole, cut=True) == ()
    assert screened({"a": [whole]}, personal=True) == ({"a": [whole]}, ())
    assert privacy.check_secrets({"content": whole}, by_person=False) is None


@pytest.mark.parametrize("kind", [*TOKENS, *IN_PLACE])
def test_what_a_mask_hides_is_refused_or_has_a_warning(kind: str) -> None:
    for make in (*TOKENS.get(kind, ()), *IN_PLACE.get(kind, ())):
        made = make(DRAW)
        text = made if isinstance(made, str) else made[0]
        for part in (text, text[:-1], text[: len(text) // 2], f"{text} and more"):
            masked = bool(screened(part).kinds)
            try:
                hit = privacy.check_secrets({"content": part}, by_person=False)
                assert bool(hit) == masked
            except SecretDetected:
                assert masked


def test_a_token_in_a_sentence_is_refused_although_the_sentence_alone_is_not() -> None:
    token = TOKENS["github_token"][0](DRAW)

    assert [hit.kind for hit in secrets_in(f"the token is {token}+x")] == ["github_token"]
    with pytest.raises(SecretDetected):
        privacy.check_secrets({"content": f"the token is {token}+x"}, by_person=False)
    secret = privacy.check_secrets(
        {"content": dressed("a\nthe password is §password")}, by_person=False
    )
    assert secret == ("content", "secret_in_prose", 2)
