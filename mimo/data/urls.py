"""URLs in settings: of an encoder, and of the database of the shared index."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mimo.errors import Invalid
from mimo.frozen import NamedTuple


def encoder_place(value: str) -> str:
    """Returns a folder or a URL without a password. Raises `Invalid` for all others.

    Whether the URL's machine may be asked is checked when it is used.
    """
    if "/" in value and "://" not in value:
        if value.startswith("~") or Path(value).is_absolute():
            return value
        raise Invalid(
            f"setting `embedding.encoder`: the folder `{value}` is relative, and commands run in"
            " many folders",
            hint=f"give it as a whole: {Path(value).absolute()}",
            details={"setting": "embedding.encoder"},
        )
    try:
        url = urlsplit(value)
        is_usable = url.scheme in ("http", "https") and url.port != 0
        is_usable = is_usable and bool(url.hostname) and not url.username
    except ValueError:
        is_usable = False
    if is_usable:
        return value
    raise Invalid(
        f"setting `embedding.encoder` must be on, off, a folder or a URL, not `{value}`",
        hint="for example http://127.0.0.1:11434/v1, or ~/models/e5; see docs/encoders.md",
        details={"setting": "embedding.encoder"},
    )


class DatabaseUrl(NamedTuple):
    """The parts of a URL of PostgreSQL that messages need."""

    place: str
    """The server and the database, without roles and parameters."""
    passwords: tuple[str, ...]
    """The passwords in the URL, as they are written and as they are meant."""


_HOST = r"(?:\[[^\]/?#@\s]*\]|[^:,/?#@\[\]\s]*)(?::\d*)?"
_URL = (
    r"postgres(?:ql)?://(?:[^:@/?#\s]*(?::(?P<password>[^@/?#\s]*))?@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)(?P<database>/[^:@/?#\s]*)?(?:\?(?P<query>[^@#\s]*))?"
)


def database_url(url: str) -> DatabaseUrl:
    """Returns the parts of a URL of PostgreSQL. Raises `Invalid`, which names no part of it.

    It is stricter than PostgreSQL: that takes a part of a password with a `/` for a port, and names
    it in its error.
    """
    if not url.startswith(("postgresql://", "postgres://")):
        raise Invalid(
            "the URL of the shared index must begin with `postgresql://`",
            hint="for example postgresql://ana@db.example.org/mind",
        )
    match = re.fullmatch(_URL, url)
    if match is None or re.search(r"%(?![0-9A-Fa-f]{2})", url):
        raise Invalid(
            "the URL of the shared index is invalid",
            hint="it is postgresql://USER@HOST:PORT/DATABASE, with `@`, `/`, `:`, `?`, `#` and `%`"
            " in a name or a password written as %40, %2F, %3A, %3F, %23 and %25",
        )
    query = (each.partition("=") for each in (match["query"] or "").split("&"))
    parameters = [(unquote(name), value) for name, _, value in query]
    passwords = [match["password"] or ""]
    passwords += [value for name, value in parameters if name.endswith("password")]
    # Parameters override the parts before them.
    options = {name: unquote(value) for name, value in parameters if value}
    service = f"service {options['service']}" if "service" in options else ""
    host = options.get("host") or match["hosts"] or service or "this machine"
    port = f":{options['port']}" if "port" in options else ""
    database = f"/{options['dbname']}" if "dbname" in options else match["database"] or ""
    return DatabaseUrl(
        place=f"{host}{port}{database}".rstrip("/"),
        passwords=tuple({form for word in passwords if word for form in (word, unquote(word))}),
    )


def without_password(url: str) -> str:
    """Returns a URL of PostgreSQL. Raises `Invalid` for another one, or for one with a password."""
    if url and database_url(url).passwords:
        raise Invalid(
            "the URL of the shared index has a password",
            hint="put the password into ~/.pgpass, a service file, or PGPASSWORD",
        )
    return url
