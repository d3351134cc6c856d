"""The formats of tokens and keys, as data.

Each rule names words of which one stands in every text that has such a secret: a text without them
is never searched. The quantifiers are bounded, so that no text takes more than linear time.
"""

from typing import NamedTuple

_ALNUM = "A-Za-z0-9"
_WORD = "A-Za-z0-9_-"
_HEX = "a-f0-9"


class Token(NamedTuple):
    """A secret that begins in a known way and goes on with so many characters of a kind."""

    kind: str
    words: tuple[str, ...]
    start: str
    """A pattern."""
    tail: str
    """The characters that follow, as inside of brackets."""
    least: int
    most: int
    apart: bool = False
    """Whether a letter or digit before the beginning makes it part of another word."""


class Form(NamedTuple):
    """A secret with any other shape; the pattern's first group, where it has one, is the secret."""

    kind: str
    words: tuple[str, ...]
    pattern: str


def _fixed(
    kind: str, start: str, tail: str, least: int, most: int | None = None, *, apart: bool = False
) -> Token:
    """Returns the rule of a token whose beginning is always the same."""
    word = next((one for one in _SHARED if start.startswith(one)), start.replace("\\", ""))
    return Token(kind, (word,), start, tail, least, most or least, apart)


_SHARED = ("sk-", "gl", "dckr_", "gh")
"""Beginnings that several rules look for."""


TOKENS: tuple[Token, ...] = (
    Token(
        "aws_access_key", ("AKIA", "ASIA", "ABIA", "ACCA"), "A(?:KI|SI|BI|CC)A", "A-Z2-7", 16, 16
    ),
    Token(
        "github_token",
        ("gh",),
        "gh[pousr]_",
        _ALNUM,
        36,
        255,
    ),
    _fixed("github_token", "github_pat_", "A-Za-z0-9_", 60, 255),
    Token(
        "gitlab_token",
        ("gl",),
        "gl(?:pat|dt|rt|ptt|ft|imt|soat|cbt|agent)-",
        "A-Za-z0-9_.=-",
        20,
        300,
    ),
    Token(
        "slack_token",
        ("xox",),
        "xox[a-es-z.opr](?:-|\\.xox[bp]-)",
        "A-Za-z0-9%/+-",
        20,
        400,
    ),
    _fixed("slack_token", "xapp-", "A-Za-z0-9-", 40, 200),
    Token(
        "stripe_key",
        ("k_live_", "k_test_"),
        "[rs]k_(?:live|test)_",
        _ALNUM,
        16,
        250,
    ),
    _fixed("stripe_key", "whsec_", "A-Za-z0-9+/=", 32, 100),
    _fixed("google_api_key", "AIza", _WORD, 35),
    _fixed("google_oauth", "GOCSPX-", _WORD, 28),
    _fixed("google_oauth", r"ya29\.", _WORD, 30, 400),
    _fixed("google_oauth", "1//0", _WORD, 40, 200, apart=True),
    _fixed("openai_key", "sk-proj-", _WORD, 40, 300),
    _fixed("openai_key", "sk-svcacct-", _WORD, 40, 300),
    _fixed("openai_key", "sk-admin-", _WORD, 40, 300),
    _fixed("anthropic_key", "sk-ant-", _WORD, 32, 300),
    _fixed("openrouter_key", "sk-or-v1-", _HEX, 64),
    _fixed("openai_key", "sk-", _ALNUM, 32, 64, apart=True),
    _fixed("groq_key", "gsk_", _ALNUM, 52),
    _fixed("xai_key", "xai-", _ALNUM, 70, 90),
    _fixed("perplexity_key", "pplx-", _ALNUM, 48, 56),
    _fixed("replicate_token", "r8_", _ALNUM, 37, apart=True),
    _fixed("huggingface_token", "hf_", _ALNUM, 34, 40, apart=True),
    _fixed("npm_token", "npm_", _ALNUM, 36),
    _fixed("pypi_token", "pypi-AgE", _WORD, 50, 400),
    _fixed("rubygems_token", "rubygems_", _HEX, 48),
    _fixed("docker_token", "dckr_pat_", _WORD, 27, 40),
    _fixed("docker_token", "dckr_oat_", _WORD, 27, 40),
    _fixed("sendgrid_key", r"SG\.", "A-Za-z0-9_.-", 66, 70, apart=True),
    _fixed("twilio_key", "SK", _HEX, 32, apart=True),
    _fixed("mailgun_key", "key-", _HEX, 32, apart=True),
    Token("digitalocean_token", ("_v1_",), "do[opr]_v1_", _HEX, 64, 64),
    Token(
        "shopify_token",
        ("shp",),
        "shp(?:at|ca|pa|ss)_",
        "a-fA-F0-9",
        32,
        32,
    ),
    Token("square_token", ("sq0",), "sq0(?:atp|csp)-", _WORD, 22, 43),
    _fixed("dropbox_token", r"sl\.", _WORD, 130, 1500, apart=True),
    _fixed("atlassian_token", "ATATT3", "A-Za-z0-9_=-", 100, 300),
    _fixed("linear_key", "lin_api_", _ALNUM, 40),
    _fixed("notion_token", "ntn_", _ALNUM, 40, 50),
    _fixed("notion_token", "secret_", _ALNUM, 43),
    _fixed("figma_token", "figd_", _WORD, 40, 50),
    _fixed("postman_key", "PMAK-", "a-f0-9-", 59),
    _fixed("grafana_token", "glsa_", "A-Za-z0-9_", 41),
    _fixed("grafana_token", "glc_", "A-Za-z0-9+/=", 60, 400),
    _fixed("newrelic_key", "NRAK-", "A-Z0-9", 27),
    _fixed("sentry_token", "sntrys_", "A-Za-z0-9+/=_", 60, 400),
    _fixed("sentry_token", "sntryu_", _HEX, 64),
    Token("vault_token", ("hvs.", "hvb.", "hvr."), r"hv[sbr]\.", _WORD, 24, 300),
    _fixed("databricks_token", "dapi", _HEX, 32, apart=True),
    _fixed("heroku_key", "HRKU-", _WORD, 36, 70),
    Token(
        "planetscale_token",
        ("pscale_",),
        "pscale_(?:tkn|pw|oauth)_",
        "A-Za-z0-9_=.-",
        32,
        64,
    ),
    _fixed("supabase_token", "sbp_", _HEX, 40),
    Token("doppler_token", ("dp.",), r"dp\.[psc]t\.", "A-Za-z0-9_.-", 40, 80),
    _fixed("alibaba_key", "LTAI", _ALNUM, 17, 21, apart=True),
    _fixed("netlify_token", "nfp_", _ALNUM, 36, 40),
    _fixed("age_key", "AGE-SECRET-KEY-1", "AC-HJ-NP-Z02-9", 58),
    _fixed("discord_token", r"mfa\.", _WORD, 80, 100, apart=True),
    _fixed("fly_token", "fm2_", "A-Za-z0-9+/=", 80, 1500),
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
