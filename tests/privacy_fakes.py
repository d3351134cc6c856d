"""Format-valid fakes of secrets and personal data, drawn from a seed.

No token stands here whole: every beginning is put together, so that the scanners of forges do not
take this file for a leak.
"""

import random
import string
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from typing import NamedTuple

ALNUM = string.ascii_letters + string.digits
WORD = ALNUM + "_-"
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits


class Fake(NamedTuple):
    """A text, and what of it must be found."""

    kind: str
    text: str
    secret: str


class Draw:
    """Draws fakes, always the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def some(self, characters: str, count: int) -> str:
        return "".join(self.random.choices(characters, k=count))

    def number(self, digits: int) -> str:
        return self.some("123456789", 1) + self.some(string.digits, digits - 1)

    def password(self) -> str:
        """Returns a password as careful people choose them: all kinds of characters."""
        parts = [self.some(ALNUM, 9), self.some("!%^*_+~", 2), self.some(string.digits, 2)]
        return f"{self.some(string.ascii_uppercase, 1)}{''.join(parts)}{self.some('qzkvj', 2)}"

    def bytes(self, count: int) -> bytes:
        return self.random.randbytes(count)


Make = Callable[[Draw], str]


def _after(start: str, characters: str, count: int, end: str = "") -> Make:
    return lambda draw: start.replace("·", "") + draw.some(characters, count) + end


def _jwt(draw: Draw) -> str:
    def part(data: bytes) -> str:
        return urlsafe_b64encode(data).decode().rstrip("=")

    claims = f'{{"sub":"{draw.number(10)}","iat":{draw.number(10)}}}'.encode()
    return ".".join([part(b'{"alg":"HS256","typ":"JWT"}'), part(claims), part(draw.bytes(32))])


def _private_key(draw: Draw, of: str) -> str:
    body = b64encode(draw.bytes(300)).decode()
    lines = [body[n : n + 64] for n in range(0, len(body), 64)]
    return "\n".join(
        [f"-----BEGIN {of}PRIV" + "ATE KEY-----", *lines, f"-----END {of}PRIV" + "ATE KEY-----"]
    )


TOKENS: dict[str, list[Make]] = {
    "aws_access_key": [
        _after("AK·IA", string.ascii_uppercase + "234567", 16),
        _after("AS·IA", string.ascii_uppercase + "234567", 16),
    ],
    "github_token": [
        _after("gh·p_", ALNUM, 36),
        _after("gh·o_", ALNUM, 36),
        _after("gh·s_", ALNUM, 36),
        lambda draw: (
            "github·_pat_".replace("·", "") + draw.some(ALNUM, 22) + "_" + draw.some(ALNUM, 59)
        ),
    ],
    "gitlab_token": [
        _after("glp·at-", WORD, 20),
        _after("gld·t-", ALNUM, 20),
        _after("glr·t-", ALNUM, 20),
    ],
    "slack_token": [
        lambda draw: "-".join(
            ["xox" + "b", draw.number(12), draw.number(12), draw.some(ALNUM, 24)]
        ),
        lambda draw: "-".join(
            ["xox" + "p", draw.number(11), draw.number(11), draw.number(12), draw.some(HEX, 32)]
        ),
        lambda draw: "-".join(
            ["xa" + "pp-1", "A" + draw.some(UPPER, 10), draw.number(13), draw.some(HEX, 64)]
        ),
    ],
    "stripe_key": [
        _after("sk_·live_", ALNUM, 24),
        _after("rk_·live_", ALNUM, 99),
        _after("sk_·test_", ALNUM, 24),
        _after("whs·ec_", ALNUM, 32),
    ],
    "google_api_key": [_after("AI·za", WORD, 35)],
    "google_oauth": [_after("GOC·SPX-", ALNUM, 28), _after("ya·29.", WORD, 120)],
    "openai_key": [
        lambda draw: "sk-" + "proj-" + draw.some(WORD, 74) + "T3BlbkFJ" + draw.some(WORD, 74),
        lambda draw: "sk" + "-" + draw.some(ALNUM, 20) + "T3BlbkFJ" + draw.some(ALNUM, 20),
    ],
    "anthropic_key": [_after("sk-·ant-api03-", WORD, 93, "AA")],
    "openrouter_key": [_after("sk-·or-v1-", HEX, 64)],
    "groq_key": [_after("gs·k_", ALNUM, 52)],
    "xai_key": [_after("xa·i-", ALNUM, 80)],
    "perplexity_key": [_after("pp·lx-", ALNUM, 48)],
    "replicate_token": [_after("r·8_", ALNUM, 37)],
    "huggingface_token": [_after("h·f_", string.ascii_letters, 34)],
    "wallet_key": [_after("xp·rv9s21ZrQH143K", BASE58, 95)],
    "npm_token": [_after("np·m_", ALNUM, 36)],
    "pypi_token": [_after("py·pi-AgE", WORD, 150)],
    "rubygems_token": [_after("ruby·gems_", HEX, 48)],
    "docker_token": [_after("dck·r_pat_", WORD, 27)],
    "sendgrid_key": [
        lambda draw: ".".join(["S" + "G", draw.some(ALNUM, 22), draw.some(WORD[:-1], 43)])
    ],
    "twilio_key": [_after("S·K", HEX, 32)],
    "mailgun_key": [_after("ke·y-", HEX, 32)],
    "digitalocean_token": [_after("do·p_v1_", HEX, 64)],
    "shopify_token": [_after("shp·at_", HEX, 32), _after("shp·ss_", HEX, 32)],
    "square_token": [_after("sq0·atp-", ALNUM, 22), _after("sq0·csp-", ALNUM, 43)],
    "dropbox_token": [_after("s·l.", WORD, 140)],
    "atlassian_token": [_after("ATA·TT3", WORD, 180)],
    "linear_key": [_after("lin_·api_", ALNUM, 40)],
    "notion_token": [_after("nt·n_", ALNUM, 46), _after("sec·ret_", ALNUM, 43)],
    "figma_token": [_after("fig·d_", WORD, 43)],
    "postman_key": [lambda draw: "-".join(["PM" + "AK", draw.some(HEX, 24), draw.some(HEX, 34)])],
    "grafana_token": [lambda draw: "gl" + "sa_" + draw.some(ALNUM, 32) + "_" + draw.some(HEX, 8)],
    "newrelic_key": [_after("NR·AK-", UPPER, 27)],
    "sentry_token": [_after("snt·ryu_", HEX, 64), _after("snt·rys_", ALNUM, 100)],
    "vault_token": [_after("hv·s.", WORD, 95)],
    "databricks_token": [_after("da·pi", HEX, 32)],
    "heroku_key": [_after("HR·KU-", WORD, 60)],
    "planetscale_token": [_after("psc·ale_tkn_", WORD, 43)],
    "supabase_token": [_after("sb·p_", HEX, 40)],
    "doppler_token": [_after("dp.·pt.", ALNUM, 43)],
    "alibaba_key": [_after("LT·AI", ALNUM, 20)],
    "netlify_token": [_after("nf·p_", ALNUM, 36)],
    "age_key": [_after("AGE-·SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)],
    "fly_token": [_after("fm·2_", ALNUM + "+/", 300)],
    "telegram_token": [
        lambda draw: draw.number(9) + ":A" + "A" + draw.some(WORD[:-1], 33),
        lambda draw: draw.number(10) + ":A" + "F" + draw.some(WORD[:-1], 33),
    ],
    "mailchimp_key": [lambda draw: draw.some(HEX, 32) + "-u" + "s" + draw.number(2)],
    "terraform_token": [
        lambda draw: ".".join([draw.some(ALNUM, 14), "atlas" + "v1", draw.some(ALNUM, 67)])
    ],
    "airtable_token": [
        lambda draw: ".".join(["pa" + "t" + draw.some(ALNUM, 14), draw.some(HEX, 64)])
    ],
    "azure_key": [
        lambda draw: draw.some(ALNUM, 3) + "8" + "Q~" + draw.some(ALNUM, 34),
    ],
    "jwt": [_jwt],
    "private_key": [lambda draw: _private_key(draw, "RSA "), lambda draw: _private_key(draw, "")],
}
"""Makers of what is a secret wherever it stands. A `·` only keeps a beginning apart."""


IN_PLACE: dict[str, list[Callable[[Draw], tuple[str, str]]]] = {
    "docker_auth": [
        lambda draw: within(
            '{"auths": {"registry.corp": {"au' + 'th": "§"}}}',
            b64encode(f"ci:{draw.some(ALNUM, 14)}".encode()).decode(),
        ),
        lambda draw: within(
            "//npm.corp/:_au" + "th=§", b64encode(f"ci:{draw.password()}".encode()).decode()
        ),
    ],
    "discord_token": [
        lambda draw: within(
            "M" + draw.some(ALNUM, 23) + ".§", draw.some(ALNUM, 6) + "." + draw.some(ALNUM, 30)
        )
    ],
    "webhook_url": [
        lambda draw: within(
            "https://hooks.slack" + ".com/services/§",
            f"T{draw.some(UPPER, 8)}/B{draw.some(UPPER, 8)}/{draw.some(ALNUM, 24)}",
        ),
        lambda draw: within(
            "https://discord" + ".com/api/webhooks/§",
            f"{draw.number(18)}/{draw.some(WORD[:-2], 68)}",
        ),
    ],
    "azure_key": [
        lambda draw: within(
            "DefaultEndpointsProtocol=https;AccountName=logs;Account" + "Key=§;EndpointSuffix=core",
            b64encode(draw.bytes(64)).decode(),
        )
    ],
    "azure_sas": [
        lambda draw: within(
            "https://logs.blob.core/c?sv=2024-05-04&sp=r&si" + "g=§",
            b64encode(draw.bytes(32)).decode().rstrip("=").replace("/", "%2F").replace("+", "%2B")
            + "%3D",
        )
    ],
    "authorization_header": [
        lambda draw: within("curl -H 'Authorization: Bea" + "rer §' api", draw.some(ALNUM, 40)),
        lambda draw: within(
            "authorization: Bas" + "ic §", b64encode(f"svc:{draw.password()}".encode()).decode()
        ),
    ],
    "connection_string": [
        lambda draw: within("postgres" + "://app:§@db.internal:5432/app", draw.password()),
        lambda draw: within("DATABASE_URL=mysql" + "://root:§@10.0.0.3/app", draw.some(ALNUM, 12)),
        lambda draw: within("redis" + "://:§@cache:6379/0", draw.some(ALNUM, 16)),
        lambda draw: within("Server=db;Database=app;User Id=sa;Pass" + "word=§;", draw.password()),
    ],
    "basic_auth_url": [
        lambda draw: within("git clone https" + "://ci:§@git.corp/a.git", draw.some(ALNUM, 14)),
    ],
    "password": [
        lambda draw: within("password: §", draw.password()),
        lambda draw: within('DB_PASSWORD="§"', draw.password()),
        lambda draw: within("curl -u deploy" + ":§ https://api.corp/", draw.some(ALNUM, 14)),
        lambda draw: within("client_secret = '§'", draw.some(WORD, 32)),
        lambda draw: within("machine api.corp login ci pass" + "word §", draw.some(ALNUM, 12)),
    ],
    "credential": [
        lambda draw: within('"api_key": "§"', draw.some(ALNUM, 32)),
        lambda draw: within("export SERVICE_TOKEN=§", draw.some(HEX, 40)),
        lambda draw: within("accessKey: §", b64encode(draw.bytes(30)).decode()),
    ],
    "secret_in_prose": [
        lambda draw: within("the admin password is §", draw.password()),
        lambda draw: within("the pass" + "word for staging is §", draw.password()),
        lambda draw: within("스테이징 비밀" + "번호는 §입니다", draw.password()),
    ],
    "okta_token": [lambda draw: within("Authorization: SSWS §", "00" + draw.some(WORD, 40))],
    "password_hash": [
        lambda draw: within("bob:$2b$12$§", draw.some(ALNUM, 53)),
        lambda draw: within("root:$6$§:19000", f"{draw.some(ALNUM, 16)}${draw.some(ALNUM, 86)}"),
        lambda draw: within(
            "pbkdf2_sha256$600000$§=", f"{draw.some(ALNUM, 22)}${draw.some(ALNUM, 43)}"
        ),
    ],
}
"""Makers of what is a secret because of where it stands; `§` is its place."""


def within(text: str, secret: str) -> tuple[str, str]:
    return text.replace("§", secret), secret


FRAMES = (
    "{}",
    "the deploy uses {} since Monday",
    "```\nexport X={}\n```",
    '{{"value": "{}"}}',
    "- {}\n- and nothing else",
)
"""Texts around a token."""


def secrets(seed: int, each: int = 5) -> list[Fake]:
    """Returns fakes of every kind of secret, in different surroundings."""
    draw = Draw(seed)
    fakes = []
    for kind, makers in TOKENS.items():
        for number in range(each):
            secret = makers[number % len(makers)](draw)
            fakes.append(Fake(kind, FRAMES[number % len(FRAMES)].format(secret), secret))
    for kind, placed in IN_PLACE.items():
        for number in range(each):
            text, secret = placed[number % len(placed)](draw)
            fakes.append(Fake(kind, text, secret))
    return fakes
