"""An issuer of signed identities on this machine: real HTTP, keys that change, answers that can be spoiled."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms

AUDIENCE = "https://gate.example"
CLAIMS = {
    "repository": "example/example",
    "workflow_ref": "example/example/.github/workflows/a.yml@refs/heads/main",
}
_MADE: dict[str, Any] = {}  # keys take a while to make


def private_key(algorithm: str, number: int = 0) -> Any:
    """One of a few keys for an algorithm."""
    kind = "RSA" if algorithm[0] in "RP" else algorithm
    name = f"{kind} {number}"
    if name not in _MADE:
        _MADE[name] = _made(kind)
    return _MADE[name]


def _made(kind: str) -> Any:
    if kind == "RSA":
        return rsa.generate_private_key(65537, 2048)
    if kind == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    curve = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}[kind]
    return ec.generate_private_key(curve())


def public_jwk(key: Any, kid: str | None, algorithm: str, **more: Any) -> dict[str, Any]:
    """As an issuer publishes it."""
    made = json.loads(get_default_algorithms()[algorithm].to_jwk(key.public_key()))
    return {**made, "use": "sig", **({} if kid is None else {"kid": kid}), **more}


@dataclass
class Issuer:
    """What it says, and what it was asked."""

    address: str = ""
    keys: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    discovery: dict[str, Any] = field(default_factory=dict)  # members that differ
    redirect: str | None = None
    hold: threading.Event | None = None  # until when it does not answer

    def trust(self, **changes: Any) -> dict[str, Any]:
        """A trust in it, as it is sent."""
        return {
            "type": "oidc",
            "name": "local",
            "issuer": self.address,
            "audience": AUDIENCE,
            "claims": {"repository": CLAIMS["repository"]},
            "scopes": ["submit"],
            **changes,
        }

    def sign(self, algorithm: str = "RS256", kid: str | None = "one", number: int = 0, **claims: Any) -> str:
        """An identity; claims that are None are left out."""
        moment = datetime.now(UTC)
        whole = {
            "iss": self.address,
            "aud": AUDIENCE,
            "sub": "repo:example/example:ref:refs/heads/main",
            "iat": moment,
            "nbf": moment,
            "exp": moment + timedelta(minutes=5),
            **CLAIMS,
            **claims,
        }
        kept = {name: value for name, value in whole.items() if value is not None}
        headers = {} if kid is None else {"kid": kid}
        return jwt.encode(kept, private_key(algorithm, number), algorithm=algorithm, headers=headers)


@contextmanager
def issuer() -> Iterator[Issuer]:
    """A running one with an RSA key called `one`."""
    made = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            if made.hold is not None:
                made.hold.wait(8)
            if made.redirect is not None:
                self.send_response(302)
                self.send_header("Location", made.redirect)
                self.end_headers()
                return
            known = {
                "/.well-known/openid-configuration": {
                    "issuer": made.address,
                    "jwks_uri": f"{made.address}/keys",
                    **made.discovery,
                },
                "/keys": {"keys": made.keys},
            }
            found = known.get(self.path)
            body = json.dumps(found).encode()
            self.send_response(200 if found is not None else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    made.address = f"http://127.0.0.1:{server.server_port}"
    made.keys = [public_jwk(private_key("RS256"), "one", "RS256")]
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
