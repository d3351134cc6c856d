"""Users that an OpenID provider signs in: its keys, the check of its tokens, and who they name.

The server is a protected resource in the sense of MCP: clients learn from its metadata (RFC 9728)
where to get a token. `tokens.toml` states the rights of groups; PyJWT, which mcp requires, checks
signatures.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlsplit

import anyio
import httpx2
import jwt
from mcp.shared.auth import ProtectedResourceMetadata
from pydantic import AnyHttpUrl
from starlette.responses import JSONResponse, Response

from mimo.api import DataError, Invalid, loads, loopback
from mimo.extensions.team import tokens
from mimo.extensions.team.tokens import Identity

log = logging.getLogger("mind.oidc")

WELL_KNOWN = "/.well-known/oauth-protected-resource"
GROUPS = "groups"
"""The default claim with the groups of a user."""

SCOPES = ("openid", "profile", "email")
"""The scopes that clients ask for, which every OpenID provider has."""

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""Signatures with a public key alone: `none`, and secrets that several parties share, are not."""

_TYPES = ("", "jwt", "at+jwt", "application/at+jwt")
"""The types of access tokens; a logout token has another."""

MOST_TOKEN = 12 * 1024
_MOST_DOCUMENT = 1024 * 1024
_LEEWAY_SECONDS = 30

FETCH_SECONDS = 5.0
AGAIN_SECONDS = 15.0
"""The time after which the keys are fetched again for a token with an unknown key."""
FRESH_SECONDS = 600.0
"""The time after which the keys are fetched again in any case."""
STALE_SECONDS = 24 * 3600.0
"""The time for which keys are used that can't be fetched again."""


class Unavailable(Exception):
    """The keys of the provider can't be read."""


class Provider:
    """An OpenID provider, and the address under which its tokens are valid here."""

    def __init__(
        self, issuer: str, resource: str, *, audience: str | None = None, claim: str | None = None
    ) -> None:
        """Takes the issuer and the public URL of the server. Raises `Invalid`.

        Without an `audience`, tokens must be for that URL or for the one of a project below it. The
        `claim` has the groups of a user.
        """
        self.issuer, self._resource = _checked(issuer), resource
        self._audience, self._claim = audience, claim or GROUPS
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._tried = self._read_at = -STALE_SECONDS
        self._fetching = anyio.Lock()

    # What clients learn.

    def metadata(self, path: str) -> Response | None:
        """Returns the metadata of the resource that a well-known path names; None for others."""
        root, within = urlsplit(self._resource).path, path.removeprefix(WELL_KNOWN)
        if not path.startswith(WELL_KNOWN) or not (within == "" or _is_below(within, root)):
            return None
        document = ProtectedResourceMetadata(
            resource=AnyHttpUrl(self._url(within or root)),
            authorization_servers=[AnyHttpUrl(self.issuer)],
            scopes_supported=[*SCOPES],
            resource_name="mind",
        )
        body = document.model_dump(mode="json", exclude_none=True)
        # The issuer is compared letter by letter, and pydantic may add a slash.
        return JSONResponse({**body, "authorization_servers": [self.issuer]})

    def challenge(self, path: str, *, has_token: bool) -> str:
        """Returns the value of `WWW-Authenticate` for a path."""
        root = urlsplit(self._resource).path
        parts = urlsplit(self._url(path if _is_below(path, root) else root))
        place = f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path}"
        error = 'error="invalid_token", ' if has_token else ""
        return f'Bearer {error}resource_metadata="{place}", scope="{" ".join(SCOPES)}"'

    def _url(self, path: str) -> str:
        root = urlsplit(self._resource).path
        return f"{self._resource}{quote(path.removeprefix(root).rstrip('/'))}"

    # The check of a token.

    async def identity(self, token: str, path: str) -> Identity | None:
        """Returns the user that a token for a path names; None if it is not valid.

        Raises `Unavailable`.
        """
        if len(token) > MOST_TOKEN:
            return None
        root = urlsplit(self._resource).path
        audiences = [self._resource]
        if self._audience:
            audiences = [self._audience]
        elif _is_below(path, root):
            audiences.append(self._url(path))
        try:
            header = jwt.get_unverified_header(token)
            if str(header.get("typ", "")).lower() not in _TYPES:
                return None
            key = await self._key(header.get("kid"))
            if key is None:
                return None
            claims = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=audiences,
                issuer=self.issuer,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
            return self._named(claims)
        except (jwt.PyJWTError, ValueError, OverflowError) as error:
            log.info("a token was refused: %s", type(error).__name__)
            return None

    def _named(self, claims: Mapping[str, Any]) -> Identity:
        """Returns the user of valid claims. Raises `ValueError`."""
        subject = claims["sub"]
        if not isinstance(subject, str) or not subject:
            raise ValueError("no subject")
        digest = tokens.digest_of(f"{self.issuer}\n{subject}")
        name = subject if tokens.is_name(subject) else digest[:16]
        titles = (claims.get(key) for key in ("name", "preferred_username"))
        host = urlsplit(self.issuer).hostname or "localhost"
        # An address that anyone may set would let a user commit as another one.
        email = claims.get("email") if claims.get("email_verified") is True else None
        return Identity(
            name=name,
            full_name=next(filter(tokens.is_name, titles), name),
            email=email if tokens.is_email(email) else f"{digest[:16]}@{host}",
            digest=digest,
            groups=frozenset(_texts(claims, self._claim)),
            expires=datetime.fromtimestamp(int(claims["exp"]) + _LEEWAY_SECONDS, UTC),
        )

    async def _key(self, kid: object) -> jwt.PyJWK | None:
        """Returns the key of that id. Raises `Unavailable` if no key is known."""
        if not isinstance(kid, str):
            return None
        age = time.monotonic() - self._read_at
        if kid not in self._keys or age > FRESH_SECONDS:
            await self.refresh()
        if not self.is_known:
            raise Unavailable
        return self._keys.get(kid)

    @property
    def is_known(self) -> bool:
        """Returns whether the keys can be used."""
        return time.monotonic() - self._read_at < STALE_SECONDS

    async def refresh(self) -> None:
        """Fetches the keys, unless that was tried just before; a failure is logged."""
        async with self._fetching:
            if time.monotonic() - self._tried < AGAIN_SECONDS:
                return
            self._tried = time.monotonic()
            try:
                with anyio.fail_after(FETCH_SECONDS):
                    self._keys = await self._fetched()
            except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, DataError) as error:
                log.warning("the keys of the issuer can't be read: %s", type(error).__name__)
            except (Invalid, jwt.PyJWTError, ValueError) as error:
                log.warning("the keys of the issuer can't be used: %s", error)
            else:
                self._read_at = self._tried

    async def _fetched(self) -> Mapping[str, jwt.PyJWK]:
        """Returns the keys of the provider for signatures by their ids."""
        async with httpx2.AsyncClient(timeout=FETCH_SECONDS) as http:
            address = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
            document = await _document(http, address)
            if document.get("issuer") != self.issuer:
                raise ValueError("the discovery document names another issuer")
            keys = await _document(http, _checked(str(document.get("jwks_uri"))))
        usable = (
            key
            for key in jwt.PyJWKSet.from_dict(keys).keys
            if key.key_id and key.public_key_use in ("sig", None)
        )
        result = {str(key.key_id): key for key in usable if key.algorithm_name in ALGORITHMS}
        if not result:
            raise ValueError("the issuer has no public keys for signatures")
        return result


async def _document(http: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    """Returns the object of JSON at a URL, without following it to another place."""
    data = b""
    async with http.stream("GET", url) as answer:
        answer.raise_for_status()
        async for part in answer.aiter_bytes():
            data += part
            if len(data) > _MOST_DOCUMENT:
                raise ValueError("an answer of the issuer is too large")
    document = loads(data)
    if not answer.is_success or not isinstance(document, dict):
        raise ValueError("an answer of the issuer is not an object")
    return document


def _checked(url: str) -> str:
    """Returns the URL of a provider. Raises `Invalid` unless it is encrypted or on loopback."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        parts, host = urlsplit(""), ""
    is_local = host in loopback.NAMES or _is_loopback(host)
    if not host or parts.query or parts.fragment or parts.username is not None:
        raise Invalid(f"`{url}` is not the URL of an issuer", hint="such as https://id.example.org")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_local):
        raise Invalid(f"`{url}` is not encrypted", hint="use https")
    return url


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")


def _texts(claims: Mapping[str, Any], name: str) -> list[str]:
    """Returns the texts of a claim, which may be in another: `realm_access.roles`."""
    value: Any = claims.get(name)
    if value is None:
        value = claims
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
    values = value if isinstance(value, list) else [value]
    return [text for text in values if isinstance(text, str)]
