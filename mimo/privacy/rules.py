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
    program: str | None = None
    """For an argument that is a password, what is before it: its value is that of a name."""


TOKENS: tuple[Token, ...] = (
    Token(
        "aws_access_key", "A(?:KI|SI|BI|CC)A", "A-Z2-7", 16, words=("AKIA", "ASIA", "ABIA", "ACCA")
    ),
    Token(
        "github_token", "gh[pousr]_", _ALNUM, 36, 255, words=tuple(f"gh{sort}_" for sort in "pousr")
    ),
    Token("github_token", "github_pat_", "A-Za-z0-9_", 60, 255),
    Token(
        "gitlab_token", "gl(?:pat|[dr]t|ptt|ft|imt|soat|cbt|agent)-", f".={_WORD}", 20, 300, ("gl",)
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
    Token("openai_key", "sk-(?:proj|svcacct|admin)-", _WORD, 40, 300, words=("sk-",)),
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
    Token("docker_token", "dckr_[po]at_", _WORD, 27, 40, words=("dckr_",)),
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
    Token("wallet_key", "[t-z]prv", "1-9A-HJ-NP-Za-km-z", 107, words=("prv",)),
)

_QUOTES = "„“”«»‘’"  # noqa: RUF001
LITERAL = (
    r"(?:(?P<quote>[\"'`])(?P<quoted>[^\"'`\s]{8,256})(?P=quote)"
    rf"|(?P<bare>(?!&|\w{{1,60}}(?:\.\w{{1,60}}){{1,6}}\()(?:[^\s\"'`,;<>(){{}}\[\]|&…{_QUOTES}\x00\u3000-\u30ff가-힣]"
    r"|&(?![\s&]|\Z|[#\w]{1,10};|[\w.\[\]-]{1,60}=)){8,256}))"
)
"""A value: in quotes, or bare, neither the name of a function nor a further field of a query."""
_LINE_END = r"(?:\r?\n|\\n)[ \t>#*]{0,40}"
_LINES = rf"(?:[A-Za-z0-9+/]{{16,80}}={{0,2}}{_LINE_END}){{1,120}}+"
_KEY = (
    r"[A-Za-z0-9+/]{16,8000}+"
    rf"(?:{_LINE_END}[A-Za-z0-9+/]{{16,80}}+){{0,120}}+(?:{_LINE_END}[A-Za-z0-9+/]{{1,80}}={{1,2}})?={{0,2}}"
)
"""A private key in base64, after the bytes that identify it."""

_PROGRAMS = (
    r"\b(?:(?:mysql|maria|mongo)\w{0,16}|sshpass|redis-cli|7za?"
    r"|(?:docker|podman|az|oc|registry)[ \t]login)(?:[ \t][^\n|;]{0,200})?\Z"
)
_OPTION = (
    r"(?:--(?<![\w-]--)(?:[a-z]{1,20}-){0,3}pass(?:word|wd)?|requirepass"
    r"|wpa_passphrase[ \t](?:([\"']).{1,40}?\1|\S{1,40}))[ \t]{1,4}" + LITERAL
)
_REVERSED = (
    rf"(?:value|Value)[\"']?[ \t]{{0,4}}[:=][ \t]{{0,4}}{LITERAL}[\s,]{{1,40}}[\"']?"
    r"(?i:name|key)[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?[\w.-]{0,40}(?i:passw|pwd|secret)"
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
        ("/webhooks/",),
        r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/(\d{16,20}/[A-Za-z0-9_-]{50,80})",
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
    Form(
        "mailchimp_key", ("-us",), r"[a-f0-9](?<![A-Za-z0-9].)[a-f0-9]{31}-us\d{1,2}(?![A-Za-z0-9])"
    ),
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
    Form("okta_token", ("SSWS ",), r"SSWS[ \t]{1,4}(00[A-Za-z0-9_-]{38,42})"),
    Form(
        "password_hash",
        ("$",),
        r"\$(?:2[abxy]?\$\d\d\$([\w./]{53})|[PHS]\$([\w./]{31,52})"
        r"|(?:[1567]|apr1|g?y\$[\w./]{1,8})\$((?:rounds=\d{1,9}\$)?[\w./]{1,32}\$[\w./]{22,86})"
        r"|(?:argon2i?d?|s?crypt|pbkdf2[\w-]{0,12})(?:\$[\w=,]{2,60}){1,2}\$([\w./+=$-]{22,300})"
        r"|(?<=sha\d{3}\$)\d{3,8}\$([\w./+=]{1,64}\$[\w./+=]{22,128})"
        r"|\w{8,32}\$([a-f0-9]{40,128})|\d{4,7}:[\w+/=]{16,60}\$([\w+/=:]{56,160}))",
    ),
    Form("password_hash", ("SHA}",), r"\{S?SHA\d{0,3}\}([A-Za-z0-9+/]{28,120}={0,2})"),
    Form(
        "private_key",
        ("MI", "CAQ"),
        r"M(?<![A-Za-z0-9+/]M)(?:II[A-Za-z0-9+/]{2}(?:[AQgw]IBA(?:AJB|AKB|AKC|DANBgkqhkiG)"
        r"|[DTjz]B.BgkqhkiG9w0BBQ0)|HcCAQEEI|I(?:GkAgEBBD|HcAgEBBE|G[H2]AgEAMB|HuAgEAMB)"
        rf"|[CE][4c]CAQAwBQYDK2V){_KEY}",
    ),
    Form("private_key", ("b3BlbnNzaC1rZXktdjE",), rf"b3BlbnNzaC1rZXktdjE{_KEY}"),
    Form(
        "private_key",
        ("PRIVATE KEY-----", "Private-Lines:"),
        rf"(?<![A-Za-z0-9+/=])(?:{_LINES}(?:[A-Za-z0-9+/]{{1,80}}={{0,2}}{_LINE_END})?"
        rf"(?=-----END [A-Z0-9 ]{{0,40}}PRIVATE KEY)|(?<=Private-Lines: \d\d\n){_LINES}"
        rf"|(?<=Private-Lines: \d\n){_LINES})",
    ),
    Form("password", ("-pass", "requirepass", "wpa_pass"), _OPTION, program=""),
    Form("password", ("value", "Value"), _REVERSED, program=""),
    Form("password", (" -p", " -a "), rf" -[pa][ \t]{{0,2}}{LITERAL}", program=_PROGRAMS),
)

BASIC = ("authorization_header", "docker_auth")
"""Kinds whose secret can be `user:password` in base64."""

MIXED = ("telegram_token", "discord_token")
"""Kinds whose shape occurs in names of programs as well: their secrets mix cases and digits."""

# Names in texts, as in `password = …`.


class Name(NamedTuple):
    """A part of names of secrets."""

    words: tuple[str, ...]
    chosen: bool
    """True if people choose the values, False if they are generated."""
    start: str = ""
    """A pattern of the beginning of the name, up to the end of the word."""
    is_end: bool = False
    """True if the name ends with the word, and if prose gives it other meanings."""


_KEYS = r"(?:(?:api|access)[_ -]?|(?:account|auth|encryption|signing|private)[_-])key\Z"
_END_OF_NAME = (
    r"(?:(?<![A-Za-z0-9])(?<![A-Za-z0-9] )(?:pass|Pass|PASS)"
    r"|(?<=[a-z0-9])Pass|(?<=[A-Z0-9])(?<!BY)(?<!COM)PASS|(?i:(?<![a-z])pw|identified))\Z"
)
NAMES: tuple[Name, ...] = (
    Name(("passw", "passphrase", "pwd", "psk", "kennwort", "contrase"), True),
    Name(("secret",), True, r"(?<!-> )secret\Z"),  # Not a type that a function returns.
    Name(("clave", "mot de passe"), True, r"(?<![a-z])(?:clave|mot de passe)\Z"),
    Name(("pass", "pw", "identified"), True, _END_OF_NAME, is_end=True),
    Name(("token", "credential"), False),
    Name(("key",), False, _KEYS),
)
FOREIGN_NAMES: tuple[Name, ...] = (
    Name(("비밀번호", "비번", "암호", "패스워드", "密码", "密碼", "口令"), True),
    Name(("パスワード", "暗証番号", "пapoль"), True),
    Name(("토큰", "api 키", "api키", "인증 키", "인증키", "시크릿", "schlüssel"), False),
    Name(("密钥", "密鑰", "令牌", "apiキー", "トークン", "тoкeн", "clé"), False),
)
"""Names in texts with other letters; Cyrillic ones as they are folded."""

# Between a name and its value.

_SIGN = r"[ \t]{0,4}(?:=>|:=|:-|[?|+]{0,2}={1,3}|:)[ \t]{0,4}"
_NEXT_LINE = (
    r"[ \t\\]{0,4}(?:#[^\n]{0,80})?(?:\r?\n[ \t>#*]{0,40}){1,2}(?:-[ \t])?"
    r"(?=\S{8,260}[ \t]{0,4}(?:[\r\n\x00]|\Z))"
)
SEPARATORS = (
    # A type before the sign; anchors and tags of YAML, prefixes, calls and markup after it.
    rf"(?:\[\d{{0,4}}\])?(?::?[ \t]{{1,2}}[\w.\[\]|]{{2,30}}(?=[ \t]{{0,2}}=))?{_SIGN}"
    r"(?:[&!]\S{0,40}[ \t]{1,4}){0,2}"
    r"(?:(?:new )?[\w.]{1,30}\((?=[\"'])|[bruN@](?=[\"']))?(?:\"{3}|'{3})?"
    r"[ \t]?\*{0,2}[ \t]?(?:</?(?:b|i|em|strong|code|kbd|tt|td)>[ \t]{0,2}){0,2}"
    # The next line, also after the sign of a block or three quotes; an explicit key of YAML.
    rf"|{_SIGN}(?:[|>][+-]?\d?|\"{{3}}|'{{3}})?{_NEXT_LINE}"
    r"|[ \t]{0,4}\r?\n[ \t]{0,40}:[ \t]{1,4}"
    # The next argument; a call, SQL, a macro; the next cell of a table.
    r"|(?<=[\"'`])[ \t]{0,4},\s{0,4}(?=[\"'])"
    r"|(?:[ \t]{0,2}\([ \t]?|[ \t]{1,4}(?:(?i:by|as|to)[ \t]{1,4})?)(?=[\"'])"
    r"|[ \t]{0,20}\|[ \t]{0,20}\*{0,2}"
    # An element of XML, or the element after that of the name.
    r"|(?:[ \t][^<>\n]{0,60}[\"'])?>\s{0,40}(?:<!\[CDATA\[|<value>)?"
    r"|</[\w:.-]{1,40}>\s{0,40}<[\w:.-]{1,40}>"
    # The value of an entry, an attribute, or a variable.
    r"|(?![\"'`]{0,2}[ \t]{0,4}[:=])(?=[\"',\r\n]|[ \t][{,])(?:(?!\b(?i:name|key)\b)"
    r"[^<>\[\]}\x00]){0,160}?\b(?i:value|default)[\"']?[ \t]{0,20}[:=][ \t]{0,4}"
)
FOR_SIGN = (
    r"(?:[ \t](?i:for|of|to|on|in|at|für|von|zum|zur|der|des|beim|im|pour|de|du|sur|para|del|en"
    r"|для|oт|к|нa)(?:[ \t][^\s:=,;.()\[\]]{1,40}){1,6}?)?[ \t]?[:=][ \t]{1,4}[ \t]?\*{0,2}"
)
SENTENCE = (
    r"(?:[ \t][^\s:=,;.()\[\]]{1,40}){0,6}?[ \t](?:is|was|becomes|(?:set |changed )?to|ist|war"
    r"|lautet|wurde|est|es|era|é|è|этo|был|-|->|→)(?:[ \t](?:now|still|currently|(?:re)?set to"
    r"|changed to|jetzt|nun|maintenant|ahora|тeпepь))?[ \t]{0,2}[ \t:]|[ \t]{1,2}(?=\S)"
    r"|(?:[ \t]?\([^()\n]{1,40}\))?(?:[은는이가을를][ \t]{1,4}|(?<=[가-힣])[ \t]{1,4}"
    r"|[ \t]?(?:是|为|為|は|が|を|改为|改為|改成|设为|設為)[ \t:]{0,3})"
)
OPENING = rf"[ \t]?[{_QUOTES}「『*_]{{0,2}}[ \t]?"
"""Signs of a sentence before a value."""

SAMPLE = "A1b2-C3d4!e5F6_g7H8+i9"
"""A value that is secret after each name of a secret."""
ABOUT_ONE = (
    r"(?i)(?:hash|digest|sum|_?ids?|ur[il]|names?|file|path|types?|version|algorithm|hint|ref)$"
)
"""Ends of names that describe a secret: the value of `token_hash` is not a secret."""

# Values of such names.

_FILLER = (
    r"(?i:example|x{5}|redacted|placeholder|your[_-]|1234567890|abcdefghij)"
    r"|wJalrXUtnFEMI|je7MtGbClwBF|Eby8vdM02xNOcqFl|(.{2,6})\1{4}"
)
"""Words and rows of examples, the beginnings of documented keys, and repeated patterns."""
_VARIABLE = (
    r"[<>{}]|^[$(]|^[@*#&~]{2}|^%\w{1,40}%$|\.\.\.|…|x{4}|X{4}|\*{3}|_{3}|0{6}|1234567|abcdef[^0-9]"
    r"|abcdefgh|(?i:sample|change_?me|your|insert|dummy|replace|secrets?\.|\benv\b|environ|getenv"
    r"|foobar|lorem|ENC\[|op://|vault:|fake)"
)
"""Variables, and words in the place of a value."""
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


def is_placeholder(value: str, *, of_token: bool = False) -> bool:
    """Returns whether a value only stands for a secret: every check, refusal and mask asks this.

    The rest of a token with a known beginning is random, and no variable.
    """
    value = value[:_ENOUGH]
    if len(set(value)) < min(8, 3 + len(value) // 5) or compiled(_FILLER).search(value):
        return True
    return not of_token and bool(value.lower() in _STOCK or compiled(_VARIABLE).search(value))


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
    if value.startswith(("=", "|", "-")) or not any(map(str.isdigit, value)):
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
