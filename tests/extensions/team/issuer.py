"""An OpenID provider on loopback: discovery, keys that rotate, and tokens for clients."""

import json
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

RSA_KEY = rsa.generate_private_key(65537, 2048)
OTHER_RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())


class Issuer:
    """A running provider; tests change its fields."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.keys: dict[str, Any] = {"rsa": RSA_KEY, "ec": EC_KEY}
        self.extra_keys: list[Mapping[str, Any]] = []
        self.failing = False
        self.answers: dict[str, bytes] = {}
        """Other answers at a path."""
        self.asked: list[str] = []
        self.groups: list[str] = []
        """The groups of the client that asks for a token."""

    def token(self, kid: str | None = "rsa", *, key: Any = None, **claims: Any) -> str:
        """Returns a token; None leaves out a claim, and `_alg` and `_typ` change its header."""
        key = key or self.keys[kid or "rsa"]
        now = int(time.time())
        defaults = {"iss": self.url, "sub": "u-1", "exp": now + 300, "iat": now, "groups": ["eng"]}
        headers = {"typ": claims.pop("_typ", "at+jwt"), **({"kid": kid} if kid else {})}
        algorithm = claims.pop(
            "_alg", "ES256" if isinstance(key, ec.EllipticCurvePrivateKey) else "RS256"
        )
        body = {name: value for name, value in {**defaults, **claims}.items() if value is not None}
        return jwt.encode(body, key, algorithm=algorithm, headers=headers)

    def document(self, path: str) -> Any:
        """Returns the answer at a path; None if there is none."""
        if path in ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"):
            return {
                "issuer": self.url,
                "jwks_uri": f"{self.url}/jwks",
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "response_types_supported": ["code"],
                "grant_types_supported": ["client_credentials"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            }
        if path == "/jwks":
            return {"keys": [*map(public, self.keys.items()), *self.extra_keys]}
        return None


def public(named: tuple[str, Any]) -> dict[str, Any]:
    """Returns a public key as JSON."""
    kid, key = named
    algorithm: Any = ECAlgorithm if isinstance(key, ec.EllipticCurvePrivateKey) else RSAAlgorithm
    return {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"}


@contextmanager
def provided() -> Iterator[Issuer]:
    """Yields a provider that runs meanwhile."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.asked.append(self.path)
            document = issuer.document(self.path)
            data = issuer.answers.get(self.path, json.dumps(document).encode())
            self.answer(503 if issuer.failing else 200 if document else 404, data)

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
            issuer.asked.append(f"{self.path} {form.get('resource')} {form.get('scope')}")
            basic = b64decode(self.headers["authorization"].partition(" ")[2]).decode()
            token = issuer.token(
                sub=basic.partition(":")[0], aud=form["resource"], groups=issuer.groups
            )
            body = {"access_token": token, "token_type": "Bearer", "expires_in": 300}
            self.answer(200, json.dumps(body).encode())

        def answer(self, status: int, data: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer = Issuer(server.server_port)
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
