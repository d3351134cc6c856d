"""The rules for secrets: formats of tokens, telling names, and what their values look like.

`secrets` applies them to texts and `values` to the fields of values. Each format names words of
which at least one is in every text that holds such a secret: a text without them is not searched.
All quantifiers are bounded, so that no text takes more than linear time.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from math import log2

from mimo.frozen import NamedTuple
from mimo.text.clean import compiled

ALLOWED = "mind:allow-secret"
"""A mark that exempts its line."""

# Formats of tokens and keys.

_ALNUM = "A-Za-z0-9"
_WORD = "A-Za-z0-9_-"
_HEX_DIGITS = "a-f0-9"


class Token(NamedTuple):
    """A secret with a known beginning, followed by a number of characters of a kind."""

    kind: str
    start: str
    """A pattern."""
    tail: str
    """The characters that follow, as in a character class."""
    least: int
    most: int = 0
    """0 if all have the same length."""
    words: tuple[str, ...] = ()
    """By default, the beginning itself."""
    apart: bool = False
    """True if a letter or digit before it makes it part of another word."""


class Form(NamedTuple):
    """A secret of another shape; the first group of the pattern, if any, is the secret."""

    kind: str
    words: tuple[str, ...]
    pattern: str


TOKENS: tuple[Token, ...] = (
    Token(
        "aws_access_key", "A(?:KI|SI|BI|CC)A", "A-Z2-7", 16, words=("AKIA", "ASIA", "ABIA", "ACCA")
    ),
    Token(
        "github_token", "gh[pousr]_", _ALNUM, 36, 255, words=tuple(f"gh{sort}_" for sort in "pousr")
    ),
    Token("github_token", "github_pat_", "A-Za-z0-9_", 60, 255),
    Token(
        "gitlab_token",
        "gl(?:pat|dt|rt|ptt|ft|imt|soat|cbt|agent)-",
        "A-Za-z0-9_.=-",
        20,
        300,
        words=tuple(f"gl{s}-" for s in "pat dt rt ptt ft imt soat cbt agent".split()),
    ),
    Token(
        "slack_token", "xox[a-es-z.opr](?:-|\\.xox[bp]-)", "A-Za-z0-9%/+-", 20, 400, words=("xox",)
    ),
    Token("slack_token", "xapp-", "A-Za-z0-9-", 40, 200),
    Token("stripe_key", "[rs]k_(?:live|test)_", _ALNUM, 16, 250, words=("k_live_", "k_test_")),
    Token("stripe_key", "whsec_", "A-Za-z0-9+/=", 32, 100),
    Token("google_api_key", "AIza", _WORD, 35),
    Token("google_oauth", "GOCSPX-", _WORD, 28),
    Token("google_oauth", r"ya29\.", _WORD, 30, 400),
    Token("google_oauth", "1//0", _WORD, 40, 200, apart=True),
    Token("openai_key", "sk-proj-", _WORD, 40, 300),
    Token("openai_key", "sk-svcacct-", _WORD, 40, 300),
    Token("openai_key", "sk-admin-", _WORD, 40, 300),
    Token("anthropic_key", "sk-ant-", _WORD, 32, 300),
    Token("openrouter_key", "sk-or-v1-", _HEX_DIGITS, 64),
    Token("openai_key", "sk-", _ALNUM, 32, 64, apart=True),
    Token("groq_key", "gsk_", _ALNUM, 52),
    Token("xai_key", "xai-", _ALNUM, 70, 90),
    Token("perplexity_key", "pplx-", _ALNUM, 48, 56),
    Token("replicate_token", "r8_", _ALNUM, 37, apart=True),
    Token("huggingface_token", "hf_", _ALNUM, 34, 40, apart=True),
    Token("npm_token", "npm_", _ALNUM, 36),
    Token("pypi_token", "pypi-AgE", _WORD, 50, 400),
    Token("rubygems_token", "rubygems_", _HEX_DIGITS, 48),
    Token("docker_token", "dckr_pat_", _WORD, 27, 40),
    Token("docker_token", "dckr_oat_", _WORD, 27, 40),
    Token("sendgrid_key", r"SG\.", "A-Za-z0-9_.-", 66, 70, apart=True),
    Token("twilio_key", "SK", _HEX_DIGITS, 32, apart=True),
    Token("mailgun_key", "key-", _HEX_DIGITS, 32, apart=True),
    Token("digitalocean_token", "do[opr]_v1_", _HEX_DIGITS, 64, words=("_v1_",)),
    Token("shopify_token", "shp(?:at|ca|pa|ss)_", "a-fA-F0-9", 32, words=("shp",)),
    Token("square_token", "sq0(?:atp|csp)-", _WORD, 22, 43, words=("sq0",)),
    Token("dropbox_token", r"sl\.", _WORD, 130, 1500, apart=True),
    Token("atlassian_token", "ATATT3", "A-Za-z0-9_=-", 100, 300),
    Token("linear_key", "lin_api_", _ALNUM, 40),
    Token("notion_token", "ntn_", _ALNUM, 40, 50),
    Token("notion_token", "secret_", _ALNUM, 43),
    Token("figma_token", "figd_", _WORD, 40, 50),
    Token("postman_key", "PMAK-", "a-f0-9-", 59),
    Token("grafana_token", "glsa_", "A-Za-z0-9_", 41),
    Token("grafana_token", "glc_", "A-Za-z0-9+/=", 60, 400),
    Token("newrelic_key", "NRAK-", "A-Z0-9", 27),
    Token("sentry_token", "sntrys_", "A-Za-z0-9+/=_", 60, 400),
    Token("sentry_token", "sntryu_", _HEX_DIGITS, 64),
    Token("vault_token", r"hv[sbr]\.", _WORD, 24, 300, words=("hvs.", "hvb.", "hvr.")),
    Token("databricks_token", "dapi", _HEX_DIGITS, 32, apart=True),
    Token("heroku_key", "HRKU-", _WORD, 36, 70),
    Token(
        "planetscale_token", "pscale_(?:tkn|pw|oauth)_", "A-Za-z0-9_=.-", 32, 64, words=("pscale_",)
    ),
    Token("supabase_token", "sbp_", _HEX_DIGITS, 40),
    Token("doppler_token", r"dp\.[psc]t\.", "A-Za-z0-9_.-", 40, 80, words=("dp.",)),
    Token("alibaba_key", "LTAI", _ALNUM, 17, 21, apart=True),
    Token("netlify_token", "nfp_", _ALNUM, 36, 40),
    Token("age_key", "AGE-SECRET-KEY-1", "AC-HJ-NP-Z02-9", 58),
    Token("discord_token", r"mfa\.", _WORD, 80, 100, apart=True),
    Token("fly_token", "fm2_", "A-Za-z0-9+/=", 80, 1500),
)

FORMS: tuple[Form, ...] = (
    Form(
        "jwt",
        ("eyJ",),
        r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{0,24}?eyJ[A-Za-z0-9_-]{8,2000}"
        r"\.eyJ[A-Za-z0-9_-]{8,6000}(?:\.[A-Za-z0-9_-]{0,1000})?",
    ),
    Form(
        "webhook_url",
        ("hooks.slack.com/",),
        r"hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/_-]{24,120})",
    ),
    Form(
        "webhook_url",
        ("/api/webhooks/",),
        r"discord(?:app)?\.com/api/webhooks/(\d{16,20}/[A-Za-z0-9_-]{50,80})",
    ),
    Form(
        "webhook_url",
        (".webhook.office.com/",),
        r"\.webhook\.office\.com/([A-Za-z0-9@/_-]{80,300})",
    ),
    Form(
        "azure_key",
        ("AccountKey=", "SharedAccessKey="),
        r"(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{42,86}={0,2})",
    ),
    Form(
        "azure_key",
        ("8Q~", "7Q~"),
        r"(?<![A-Za-z0-9_~.-])([A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~.-]{31,34})(?![A-Za-z0-9_~.-])",
    ),
    Form("azure_sas", ("sig=",), r"[?&]sig=([A-Za-z0-9%/+]{40,80}(?:%3D|=))"),
    Form("telegram_token", (":A",), r"\d{8,10}:A[A-Za-z0-9_-]{34}(?![A-Za-z0-9_-])"),
    Form(
        "discord_token",
        (".",),
        r"\.(?<=[A-Za-z0-9_-]{24}\.)([A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38})"
        r"(?!\.?[A-Za-z0-9_-])",
    ),
    Form("mailchimp_key", ("-us",), r"(?<![A-Za-z0-9])([a-f0-9]{32}-us\d{1,2})(?![A-Za-z0-9])"),
    Form(
        "terraform_token",
        (".atlasv1.",),
        r"(?<![A-Za-z0-9])([A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,80})",
    ),
    Form(
        "airtable_token",
        ("pat",),
        r"pat(?<![A-Za-z0-9]pat)[A-Za-z0-9]{14}\.[a-f0-9]{64}(?![A-Za-z0-9])",
    ),
    Form(
        "authorization_header",
        ("uthorization", "UTHORIZATION"),
        r"(?i:authorization)[\"'`]{0,2}\s{0,4}[:=]\s{0,4}[\"'`]?(?i:bearer|basic|token|bot)\s{1,3}"
        r"([A-Za-z0-9._~+/=-]{16,2000})",
    ),
    Form(
        "docker_auth",
        ("auth",),
        r"auth(?<![A-Za-z0-9]auth)[\"']?\s{0,4}[:=]\s{0,4}[\"']?([A-Za-z0-9+/]{8,2000}={0,2})"
        r"(?![A-Za-z0-9+/=])",
    ),
    Form(
        "password",
        ("machine ", "machine\t", "default login", "default\n"),
        r"(?:machine[ \t]{1,20}[^\s]{1,200}|default)"
        r"(?:\s{1,20}(?:login|account)\s{1,20}[^\s]{1,200}){1,2}\s{1,20}password\s{1,20}([^\s]{4,256})",
    ),
    Form(
        "password",
        ("curl ",),
        r"curl [^\n]{0,200}?(?:-u|--user)[ =][\"']?[^\s:\"'<>$]{1,64}:([^\s:\"'<>@]{6,128})",
    ),
    Form(
        "connection_string",
        ("assword=", "wd=", "ASSWORD=", "WD="),
        r"(?i:server|data source|host|addr)=[^\n;]{1,200};[^\n]{0,300}?"
        r"(?i:password|pwd)=([^;\s\"'<>]{4,128})",
    ),
)

BASIC = ("authorization_header", "docker_auth")
"""Kinds whose secret can be `user:password` in base64."""

MIXED = ("telegram_token", "discord_token")
"""Kinds whose shape occurs in names of programs as well: their secrets mix cases and digits."""

# Names in texts, as in `password = …`.

CHOSEN = ("passw", "passphrase", "pwd", "secret", "비밀번호", "비번", "암호", "패스워드")
"""Parts of names whose values people choose."""
DRAWN = (
    "token",
    "api_key",
    "api-key",
    "api key",
    "apikey",
    "access_key",
    "access-key",
    "access key",
    "accesskey",
    "account_key",
    "auth_key",
    "encryption_key",
    "signing_key",
    "private_key",
    "credential",
    "토큰",
    "api 키",
    "api키",
    "인증 키",
    "인증키",
    "시크릿",
)
"""Parts of names whose values are generated."""

ABOUT_ONE = (
    r"(?i)(?:hash|digest|sum|_?ids?|ur[il]|names?|file|path|types?|version|algorithm|hint|ref)$"
)
"""Ends of names that describe a secret: the value of `token_hash` is not a secret."""

# Values of such names.

_PLACEHOLDER = (
    r"[<>{}]|^[$(=|-]|^[@*#&~]{2}|^%\w{1,40}%$|\.\.\.|…|x{4}|X{4}|\*{3}|_{3}|0{6}|1234567|abcdef[^0-9]|abcdefgh|"
    r"(?i:example|sample|change_?me|your|placeholder|redacted|insert|dummy|replace|secrets?\.|"
    r"\benv\b|environ|getenv|foobar|lorem|ENC\[|op://|vault:|fake)"
)
_FILLER = r"(?i:example|x{5}|redacted|placeholder|your[_-]|1234567890|abcdefghij)"
_FEIGNED = r"(?i)s3cr|passw0rd"
"""Spellings of passwords that are made up for an example."""
_WORD = r"(?:[A-Za-z]{3,}|[A-Za-z]{1,2}(?![A-Za-z]))?\d{0,4}"
_HEX = r"[0-9a-f]+|[0-9A-F]+"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_PATH = r"(?:\.{0,2}|~)/[a-z.]+(?:/|$)|\.\w|[A-Za-z]:[\\/]|[a-z][a-z0-9+.-]{0,20}://|\w[\w.-]{0,60}\.[a-z]{2,5}$"
_OWN_ID = (
    r"[\w.-]{0,128}_\d{8}_[a-z2-7]{6}(?:\.\d{1,6})?"
    r"|(?:fact|observation|action|plan|decision|checkpoint|insight|context|issue|edge)_[a-z0-9_.-]{1,120}"
)
_PARTS_OF_NAMES = r"(?i)passw|pwd|secret|token|key"
_TYPICAL = r"(?!(?i:passw|secret|admin|test|user|my|welcome))[A-Z][a-z]{2,20}\d{2,4}[!@#$%^&*]{1,3}"
"""A typical chosen password: a word, a year and a sign."""
_ENOUGH = 96
"""Characters of a value that decide whether it is a secret."""
_CASES = ("[a-z]", "[A-Z]", r"\d", r"[^A-Za-z0-9]")
_STOCK = frozenset(
    "password passwd pass pwd secret token user username admin root postgres mysql test guest "
    "default changeme letmein qwerty foo bar baz guest rabbit redis mongo mongodb "
    "api_key apikey key p password123 password1 12345 123456 12345678 pw abc123 "
    "passw0rd dev prod local localhost".split()
)


def entropy(text: str) -> float:
    """Returns Shannon's entropy of a text in bits per character."""
    size = len(text)
    counts = Counter(text).values()
    return -sum(n / size * log2(n / size) for n in counts)


def is_placeholder(value: str) -> bool:
    """Returns whether a value is only a placeholder for a secret."""
    return bool(compiled(_PLACEHOLDER).search(value)) or value.lower() in _STOCK


def is_random(value: str) -> bool:
    """Returns whether the variable part of a token looks random."""
    return not compiled(_FILLER).search(value) and len(set(value)) >= min(8, 3 + len(value) // 5)


def is_mixed(value: str) -> bool:
    """Returns whether lower case, upper case and digits alternate as in a random text."""
    kinds = [char.isdigit() + 2 * char.isupper() for char in value]
    return sum(kind != following for kind, following in pairwise(kinds)) >= 3


def is_secret(value: str, *, chosen: bool) -> bool:
    """Returns whether a value that is assigned to a name of a secret is one.

    Notes contain `password: <yours>` and `token = config.token` far more often than a secret.
    `chosen` is for passwords, which people make up: they are shorter than generated values.
    """
    value = value[:_ENOUGH]
    if not any(map(str.isdigit, value)):
        return False
    if is_placeholder(value) or compiled(_FEIGNED).search(value):
        return False
    if chosen and compiled(_TYPICAL).fullmatch(value):
        return True
    value = value.rstrip("!")
    if len(value) < 8 or _is_named(value):
        return False
    if compiled(_HEX).fullmatch(value):
        return len(value) >= 32 and entropy(value) >= 3 and not value.isdigit()
    kinds = sum(bool(re.search(characters, value)) for characters in _CASES)
    if len(value) >= 20 and kinds >= 2 and entropy(value) >= 3.5:
        return True
    return chosen and kinds >= 3


def is_words(value: str) -> bool:
    """Returns whether a value consists of words about secrets, as in `docker-password`."""
    return bool(compiled(_PARTS_OF_NAMES).search(value)) and _is_named(value)


def is_own_id(text: str) -> bool:
    """Returns whether a text is the id of a memory, or the end of one."""
    return compiled(_OWN_ID).fullmatch(text) is not None


def _is_named(value: str) -> bool:
    """Returns whether a value is a path, an address, or words as programs write them."""
    if compiled(_PATH).match(value) or compiled(_UUID).fullmatch(value) or is_own_id(value):
        return True
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", value)
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", words) if part]
    return all(compiled(_WORD).fullmatch(part) for part in parts)
