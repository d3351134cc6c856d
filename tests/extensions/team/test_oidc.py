"""Users whom an OpenID provider signs in: the check of its tokens, and the rights of groups."""

import base64
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from mcp.client import Client
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client

from mimo.call import Call, Caller, Surface
from mimo.data.disk import system_clock
from mimo.errors import Denied, Invalid
from mimo.extensions.team import oidc, tokens
from mimo.extensions.team.oidc import Provider, Unavailable
from mimo.extensions.team.tokens import Identity, Member, Scope, Tokens
from tests.extensions.team.issuer import OTHER_RSA_KEY, RSA_KEY, Issuer, provided
from tests.extensions.team.over_http import Served, served, two_projects
from tests.extensions.team.test_http import INITIALIZE, JSON
from tests.extensions.team.test_team import member
from tests.redteam.test_procedure_callers import call_tool
from tests.sample_procedures import put

RESOURCE = "https://mind.example.org/mcp"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with provided() as running:
        yield running


@pytest.fixture
def provider(issuer: Issuer) -> Provider:
    return Provider(issuer.url, RESOURCE)


def identity(provider: Provider, token: str, path: str = "/mcp") -> Identity | None:
    return anyio.run(provider.identity, token, path)


@pytest.mark.parametrize("kid", ["rsa", "ec"])
def test_a_token_of_the_provider_names_its_user(
    issuer: Issuer, provider: Provider, kid: str
) -> None:
    ana = {"name": "Ana Ruiz", "email": "ana@example.org", "email_verified": True}
    token = issuer.token(kid, aud=RESOURCE, **ana)

    user = identity(provider, token)

    assert user
    assert (user.name, user.full_name, user.email) == ("u-1", "Ana Ruiz", "ana@example.org")
    assert user.groups == {"eng"}
    assert user.expires > system_clock()


FORGED = {
    "expired": {"exp": int(time.time()) - 3600},
    "not valid yet": {"nbf": int(time.time()) + 3600},
    "without expiry": {"exp": None},
    "for another server": {"aud": "https://other.example.org/mcp"},
    "for a longer address": {"aud": f"{RESOURCE}.evil.example"},
    "for nobody": {"aud": None},
    "by another issuer": {"iss": "https://other.example.org"},
    "by an issuer with a slash": {"iss": "SLASH"},
    "without issuer": {"iss": None},
    "without subject": {"sub": None},
    "with a number as subject": {"sub": 7},
    "of a logout": {"_typ": "logout+jwt"},
    "without key id": {"kid": None},
    "of an unknown key": {"kid": "other", "key": OTHER_RSA_KEY},
    "with the signature of another key": {"key": OTHER_RSA_KEY},
    "with the key of another algorithm": {"_alg": "PS256"},
    "too large": {"padding": "x" * oidc.MOST_TOKEN},
}


@pytest.mark.attack("http")
@pytest.mark.parametrize("changes", FORGED.values(), ids=FORGED)
def test_no_other_token_comes_in(
    issuer: Issuer, provider: Provider, changes: dict[str, Any]
) -> None:
    fields = {"aud": RESOURCE, **changes}
    if fields.get("iss") == "SLASH":
        fields["iss"] = f"{issuer.url}/"

    assert identity(provider, issuer.token(**fields)) is None
    assert identity(provider, issuer.token(aud=RESOURCE))


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def unsigned(issuer: Issuer) -> str:
    claims = issuer.token(aud=RESOURCE).split(".")[1]
    return f"{part({'alg': 'none', 'kid': 'rsa'})}.{claims}."


def signed_with_the_public_key(issuer: Issuer) -> str:
    claims = issuer.token(aud=RESOURCE).split(".")[1]
    text = f"{part({'alg': 'HS256', 'kid': 'rsa'})}.{claims}"
    key = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    digest = hmac.new(key, text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def signed_with_a_shared_secret(issuer: Issuer) -> str:
    issuer.extra_keys = [
        {"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXM", "kid": "shared"}
    ]
    return issuer.token("shared", key=b"secret-secret-secret-secret-s", _alg="HS256", aud=RESOURCE)


@pytest.mark.attack("http")
@pytest.mark.filterwarnings("ignore:The HMAC key")
@pytest.mark.parametrize(
    "forge", [unsigned, signed_with_the_public_key, signed_with_a_shared_secret]
)
def test_only_a_signature_with_a_public_key_counts(
    issuer: Issuer, provider: Provider, forge: Callable[[Issuer], str]
) -> None:
    assert identity(provider, forge(issuer)) is None


@pytest.mark.attack("http")
@pytest.mark.parametrize(
    "text", ["", "x", "a.b", "a.b.c", "...", "\udcff.a.b", f"{part([[]])}.e30.x", "e30.e30."]
)
def test_what_is_no_token_is_refused_without_a_request(
    issuer: Issuer, provider: Provider, text: str
) -> None:
    assert identity(provider, text) is None
    assert issuer.asked == []


def test_a_token_is_for_the_server_or_the_project_that_is_asked(
    issuer: Issuer, provider: Provider
) -> None:
    token = issuer.token(aud=f"{RESOURCE}/shop")

    assert identity(provider, token, "/mcp/shop")
    assert identity(provider, token, "/mcp/bank") is None
    assert identity(provider, token, "/mcp") is None
    assert identity(provider, issuer.token(aud=[RESOURCE, "account"]), "/mcp/bank")
    named = Provider(issuer.url, RESOURCE, audience="api://mind")
    assert identity(named, issuer.token(aud="api://mind"), "/mcp/bank")
    assert identity(named, token, "/mcp/shop") is None


def test_an_address_that_the_provider_did_not_verify_is_not_used(
    issuer: Issuer, provider: Provider
) -> None:
    def named(**claims: Any) -> tuple[str, str, str]:
        user = identity(provider, issuer.token(aud=RESOURCE, **claims))
        assert user
        return user.name, user.full_name, user.email.partition("@")[2]

    boss = {"email": "boss@example.org", "email_verified": False}
    assert named(sub="u-2", **boss) == ("u-2", "u-2", "127.0.0.1")
    assert named(sub="u-2", email="boss@example.org")[2] == "127.0.0.1"
    assert named(sub="u-2", email="a <b@example.org>\n")[2] == "127.0.0.1"
    assert named(sub="u-2", name="Eve <boss@example.org>")[1] == "u-2"
    name, full_name, _ = named(sub="auth0|2", preferred_username="eve")
    assert (len(name), full_name) == (16, "eve")


@pytest.mark.parametrize(
    ("claim", "claims", "groups"),
    [
        ("groups", {"groups": "ops"}, {"ops"}),
        ("groups", {"groups": None}, set()),
        ("groups", {"groups": ["ops", 1, None, {}]}, {"ops"}),
        ("realm_access.roles", {"realm_access": {"roles": ["ops"]}}, {"ops"}),
        ("https://a.example/groups", {"https://a.example/groups": ["ops"]}, {"ops"}),
        ("realm_access.roles", {"realm_access": ["roles"]}, set()),
    ],
)
def test_groups_are_in_a_claim(
    issuer: Issuer, claim: str, claims: dict[str, Any], groups: set[str]
) -> None:
    user = identity(
        Provider(issuer.url, RESOURCE, claim=claim), issuer.token(aud=RESOURCE, **claims)
    )

    assert user
    assert user.groups == groups


def test_a_new_key_is_fetched_and_a_withdrawn_one_ends(
    issuer: Issuer, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = issuer.token(aud=RESOURCE)
    assert identity(provider, old)
    del issuer.keys["rsa"]
    issuer.keys["new"] = OTHER_RSA_KEY
    new = issuer.token("new", aud=RESOURCE)
    assert identity(provider, new) is None  # The keys were fetched just before.

    monkeypatch.setattr(oidc, "AGAIN_SECONDS", 0.0)

    assert identity(provider, new)
    assert identity(provider, old) is None


@pytest.mark.attack("http")
def test_unknown_keys_make_no_request_for_each_token(issuer: Issuer, provider: Provider) -> None:
    for number in range(20):
        identity(provider, issuer.token(f"key-{number}", key=RSA_KEY, aud=RESOURCE))

    assert issuer.asked == ["/.well-known/openid-configuration", "/jwks"]


def test_known_keys_are_used_for_a_while_if_the_provider_fails(
    issuer: Issuer, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert identity(provider, issuer.token(aud=RESOURCE))
    issuer.failing = True
    monkeypatch.setattr(oidc, "AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(oidc, "FRESH_SECONDS", 0.0)

    assert identity(provider, issuer.token(aud=RESOURCE))

    monkeypatch.setattr(oidc, "STALE_SECONDS", 0.0)
    with pytest.raises(Unavailable):
        identity(provider, issuer.token(aud=RESOURCE))


BROKEN = {
    "another issuer": ("/.well-known/openid-configuration", b'{"issuer":"https://a.example"}'),
    "no object": ("/.well-known/openid-configuration", b"[]"),
    "no JSON": ("/jwks", b"<html>"),
    "deep": ("/jwks", b"[" * 100_000),
    "no keys": ("/jwks", b"{}"),
    "keys of another form": ("/jwks", b'{"keys":{"a":1}}'),
    "unknown keys": ("/jwks", b'{"keys":[{"kty":"x","kid":"rsa"},7]}'),
    "too large": ("/jwks", b" " * (2 * 1024 * 1024)),
}


@pytest.mark.attack("http")
@pytest.mark.parametrize(("path", "data"), BROKEN.values(), ids=BROKEN)
def test_a_broken_answer_of_the_provider_admits_no_one(
    issuer: Issuer, provider: Provider, path: str, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    issuer.answers[path] = data

    with caplog.at_level(logging.WARNING), pytest.raises(Unavailable):
        identity(provider, issuer.token(aud=RESOURCE))

    assert "the keys of the issuer can't be" in caplog.text


@pytest.mark.attack("http")
def test_keys_are_fetched_from_no_place_in_the_clear(issuer: Issuer, provider: Provider) -> None:
    document = issuer.document("/.well-known/openid-configuration")
    document["jwks_uri"] = "http://keys.example.org/jwks"
    issuer.answers["/.well-known/openid-configuration"] = json.dumps(document).encode()

    with pytest.raises(Unavailable):
        identity(provider, issuer.token(aud=RESOURCE))


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://id.example.org",
            "id.example.org",
            "https://",
            "file:///etc/passwd",
            "",
            "https://[",
        ),
        *("https://id.example.org?x=1", "https://id.example.org#x", "https://a:b@id.example.org"),
    ],
)
def test_an_issuer_has_an_encrypted_address(url: str) -> None:
    with pytest.raises(Invalid):
        Provider(url, RESOURCE)


# The rights of groups.


def entry(name: str, group: str, scope: Scope = Scope.WRITE, **fields: Any) -> Member:
    return Member(name=name, email="", scope=scope, digest="", group=group, **fields)


def user_in(*groups: str) -> Identity:
    expires = system_clock() + timedelta(hours=1)
    return Identity(
        name="u-1",
        full_name="Ana Ruiz",
        email="ana@example.org",
        digest="d" * 64,
        groups=frozenset(groups),
        expires=expires,
    )


def test_a_user_has_the_rights_of_each_group_the_widest_first(tmp_path: Path) -> None:
    path, now = tmp_path / "tokens.toml", system_clock()
    entries = [
        entry("all", "*", Scope.READ),
        entry("developers", "eng", projects=("shop",)),
        entry("operators", "ops", Scope.ADMIN),
        entry("gone", "eng", expires=now - timedelta(days=1)),
    ]
    tokens.write(path, [*entries, member("ana")])
    users = Tokens(path)

    rights = users.granted(user_in("eng"), now)

    assert [(each.scope, each.projects) for each in rights] == [
        (Scope.WRITE, ("shop",)),
        (Scope.READ, ()),
    ]
    assert rights[0].author == "Ana Ruiz <ana@example.org>"
    assert rights[0].name == "u-1"
    assert [each.scope for each in users.granted(user_in("ops"), now)] == [Scope.ADMIN, Scope.READ]
    assert all(users.is_current(each, now) for each in rights)
    assert not users.is_current(rights[0], now + timedelta(hours=2))
    assert users.holder("", now) is None  # A group has no token.


def test_a_group_that_loses_its_rights_ends_sessions(tmp_path: Path) -> None:
    path, now = tmp_path / "tokens.toml", system_clock()
    tokens.write(path, [entry("developers", "eng")])
    users = Tokens(path)
    [right] = users.granted(user_in("eng"), now)

    tokens.write(path, [entry("developers", "eng", Scope.READ)])

    assert not users.is_current(right, now)


def test_a_user_has_no_name_of_another_with_a_token(tmp_path: Path) -> None:
    path, now = tmp_path / "tokens.toml", system_clock()
    tokens.write(path, [entry("developers", "eng"), member("u-1")])

    [right] = Tokens(path).granted(user_in("eng"), now)

    assert right.name == "d" * 16


def test_a_run_in_a_process_of_its_own_needs_a_token_of_the_server(
    call: Call, tmp_path: Path
) -> None:
    path = tmp_path / "tokens.toml"
    tokens.write(path, [entry("developers", "eng")])
    [right] = Tokens(path).granted(user_in("eng"), system_clock())
    caller = Caller(surface=Surface.MCP, name="cursor", permissions=right)
    put(call, "tea", "initial_state: made\nstates:\n  made: {}\n")

    with pytest.raises(Denied, match="needs a token of this server"):
        call_tool(call, "run_procedure", caller, name="tea", **{"async": True})


# The server.


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = two_projects(tmp_path_factory)
    entries = [
        entry("developers", "eng", projects=("shop",)),
        entry("readers", "sales", Scope.READ),
    ]
    tokens.write(
        folder / "home/tokens.toml", [*entries, entry("o", "ops", Scope.ADMIN), member("ana")]
    )
    return folder


@pytest.fixture(scope="module")
def running() -> Iterator[Issuer]:
    with provided() as issuer:
        yield issuer


@pytest.fixture(scope="module")
def server(team: Path, running: Issuer) -> Iterator[Served]:
    with served(team / "home", "--oidc", running.url, "--log-json") as process:
        yield process


def post(server: Served, token: str | None, at: str = "", body: Any = INITIALIZE) -> Any:
    headers = {**JSON, **({"authorization": f"Bearer {token}"} if token else {})}
    return httpx2.post(f"{server.url}{at}", json=body, headers=headers, timeout=30)


def test_clients_learn_where_to_sign_in(server: Served, running: Issuer) -> None:
    for at in ("", "/shop", "/caf%C3%A9"):
        answer = post(server, None, at)
        assert answer.status_code == 401
        place = f"{server.base}/.well-known/oauth-protected-resource/mcp{at}"
        challenge = f'Bearer resource_metadata="{place}", scope="openid profile email"'
        assert answer.headers["www-authenticate"] == challenge
        document = httpx2.get(place).json()
        assert document["resource"] == f"{server.url}{at}"
        assert document["authorization_servers"] == [running.url]
        assert document["bearer_methods_supported"] == ["header"]
    root = httpx2.get(f"{server.base}/.well-known/oauth-protected-resource")
    assert root.json()["resource"] == server.url
    assert 'error="invalid_token"' in post(server, "x").headers["www-authenticate"]
    for path in ("oauth-authorization-server", "oauth-protected-resource/other", "x"):
        assert httpx2.get(f"{server.base}/.well-known/{path}").status_code == 404


def test_groups_have_rights_and_other_users_none(server: Served, running: Issuer) -> None:
    def status(at: str, *groups: str) -> int:
        token = running.token(aud=server.url, groups=groups)
        code: int = post(server, token, at).status_code
        return code

    assert (status("/shop", "eng"), status("/bank", "eng")) == (200, 404)
    assert (status("/bank", "sales"), status("/bank", "eng", "sales")) == (200, 200)
    assert post(server, running.token(aud=server.url, more="x" * 20_000)).status_code == 431
    answer = post(server, running.token(aud=server.url, groups=["x"]), "/shop")
    assert answer.status_code == 403
    assert "None of your groups" in answer.json()["error"]["message"]
    assert post(server, "the-secret-token-of-ana", "/shop").status_code == 200
    metrics = f"{server.base}/metrics"
    for group, code in (("eng", 403), ("ops", 200)):
        bearer = {"authorization": f"Bearer {running.token(aud=server.url, groups=[group])}"}
        assert httpx2.get(metrics, headers=bearer).status_code == code


class Storage:
    """The tokens of a client."""

    tokens: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return None

    async def set_client_info(self, client_info: Any) -> None:
        pass


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_a_client_of_the_sdk_signs_in_and_works(
    team: Path, server: Served, running: Issuer, era: Any
) -> None:
    running.groups = ["eng"]
    running.asked.clear()

    async def talk() -> Any:
        sign_in = ClientCredentialsOAuthProvider(
            f"{server.url}/shop", Storage(), "a-bot", "secret", issuer=running.url
        )
        async with httpx2.AsyncClient(auth=sign_in, timeout=30) as http:
            transport = streamable_http_client(f"{server.url}/shop", http_client=http)
            async with Client(transport, mode=era) as client:
                arguments = {"operation": "store", "content": f"Deploys of {era} need a tag"}
                return await client.call_tool("memory", arguments)

    result = anyio.run(talk)

    assert not result.is_error, result.content
    asked = f"/token ['{server.url}/shop'] ['openid profile email']"
    assert asked in running.asked
    log = (team / "shop/.mind/.local/audit.jsonl").read_text(encoding="utf-8")
    assert "a-bot" in {json.loads(line)["event"].get("user") for line in log.splitlines()}


def test_a_session_goes_on_with_the_next_token_of_its_user_alone(
    server: Served, running: Issuer
) -> None:
    first = post(server, running.token(aud=server.url), "/shop")
    session = {"mcp-session-id": first.headers["mcp-session-id"]}
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}

    def status(**claims: Any) -> int:
        token = running.token("ec", aud=server.url, **claims)
        headers = {**JSON, **session, "authorization": f"Bearer {token}"}
        answer = httpx2.post(f"{server.url}/shop", json=ping, headers=headers, timeout=30)
        return answer.status_code

    assert status() == 200
    assert status(sub="u-2") == 404
    assert status(exp=int(time.time()) - 60) == 401


def test_a_provider_that_does_not_answer_is_no_sign_in(team: Path) -> None:
    with served(team / "home", "--oidc", "http://127.0.0.1:1") as process:
        with provided() as other:
            token = other.token(aud=process.url)
        assert post(process, token).status_code == 503
        assert post(process, "the-secret-token-of-ana", "/shop").status_code == 200
        ready = httpx2.get(f"{process.base}/readyz")
        assert (ready.status_code, ready.json()["failed"]) == (503, ["issuer"])


def test_behind_a_proxy_the_address_is_that_of_the_host(team: Path, running: Issuer) -> None:
    host = ["--allow-host", "mind.example.org"]
    with served(team / "home", "--oidc", running.url, *host) as process:
        place = httpx2.get(
            f"{process.base}/.well-known/oauth-protected-resource/mcp/shop",
            headers={"host": "mind.example.org"},
        )
        assert place.json()["resource"] == "https://mind.example.org/mcp/shop"
        assert post(process, running.token(aud=RESOURCE), "/shop").status_code == 200


def test_without_a_provider_the_answers_name_the_static_token(team: Path) -> None:
    for options in ([], ["--tokens", str(team / "home/tokens.toml")]):
        with served(team / "home", *options) as process:
            answer = post(process, None)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert "static token" in answer.json()["error"]["message"]
            for path in (
                "/.well-known/oauth-protected-resource",
                "/.well-known/oauth-protected-resource/mcp",
                "/.well-known/oauth-authorization-server",
                "/.well-known/openid-configuration",
                "/register",
            ):
                assert httpx2.get(f"{process.base}{path}").status_code == 404
                assert httpx2.post(f"{process.base}{path}", json={}).status_code == 404
